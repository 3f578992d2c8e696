"""Tags of a model's own tell thought from answer, wherever the text is cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.properties import steady
from threads.core.events import ReasoningDelta, TextDelta
from threads.gateway.tags import ThinkTags


def split(*pieces: str) -> tuple[str, str]:
    """Reasoning and answer that tags inside the pieces give."""
    tags = ThinkTags()
    events = [event for piece in pieces for event in tags.feed(piece)]
    events += tags.flush()
    return (
        "".join(e.text for e in events if isinstance(e, ReasoningDelta)),
        "".join(e.text for e in events if isinstance(e, TextDelta)),
    )


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>hm</think>yes", "hm", "yes"),
        ("\n<think>hm</think>\n\nyes", "hm", "yes"),
        ("<think></think>yes", "", "yes"),
        ("<think>a < b </thin k></think>yes", "a < b </thin k>", "yes"),
        ("<think>never closed", "never closed", ""),
        ("<think>hm</think>", "hm", ""),
        ("<think>hm</think> \n", "hm", ""),
        ("yes", "", "yes"),
        (" yes", "", " yes"),
        ("<thinker>", "", "<thinker>"),
        ("<thin", "", "<thin"),
        ("a <think>b</think>", "", "a <think>b</think>"),
        ("<think>a</think>b <think>c</think>", "a", "b <think>c</think>"),
    ],
)
def test_tags_at_the_very_start_tell_thought_from_answer(
    text: str, thought: str, answer: str
) -> None:
    assert split(text) == (thought, answer)


tagged_text = st.lists(
    st.sampled_from(["<think>", "</think>", "<", "/", "thi", "nk>", " ", "\n", "a"]),
    max_size=8,
)


@steady
@given(tagged_text, st.lists(st.integers(0, 60), max_size=20))
def test_the_cut_of_a_text_moves_no_tag(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(places)]

    assert split(*pieces) == split(text)
