"""Any stream, whatever was done to it, ends in exactly one named ending.

`STREAM_EXAMPLES` sets how many streams are played (400 in CI, else 200); with it the
examples are drawn anew, and `--hypothesis-seed` counts.
"""

import os
from collections.abc import Iterator
from typing import get_args

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.gateway.calling import KEY, PROMPT, Called
from tests.gateway.reading import Reading, read
from tests.gateway.stage import HURRIED, UNHURRIED, Leaving, Stage, open_stage
from tests.gateway.streams import Play, plays
from threads.core.events import (
    AttemptStarted,
    Envelope,
    ReasoningDelta,
    TextDelta,
    ToolCallBegan,
)
from threads.core.faults import WHOLE, Condition, Ending, KeyEffect
from threads.gateway.calls import AttemptRecord, CallEnded
from threads.sentences import ENGLISH

ASKED_FOR = os.environ.get("STREAM_EXAMPLES")
EXAMPLES = int(ASKED_FOR or (400 if os.environ.get("CI") == "true" else 200))

many = settings(
    deadline=None,
    derandomize=ASKED_FOR is None,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow],
)

OF_A_CALL = frozenset(Ending) - {Ending.STOPPED, Ending.INTERRUPTED}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with open_stage() as stage:
        yield stage


@many
@given(plays())
def test_any_stream_ends_in_exactly_one_named_ending(stage: Stage, play: Play) -> None:
    reading = read(play.raw, ended=play.after != "keep")
    is_silent = ends_in_silence(play, reading)

    seen = stage.call(play.delivery, HURRIED if is_silent else UNHURRIED)

    event(f"{seen.verdict.ending} {seen.verdict.code}")
    is_certain = not is_silent and play.after != "rst" and not reading.is_compressed
    has_one_named_ending(seen)
    has_a_true_record(seen)
    keeps_what_came(seen, reading, is_certain=is_certain)
    if is_certain:
        keeps_all_that_came(seen, reading)
    if not play.is_spoiled:
        keeps_what_was_meant(seen, play, is_all=is_certain and not play.is_cut)


@settings(many, max_examples=max(1, EXAMPLES // 8))
@given(
    play=plays(),
    events=st.integers(1, 6),
    turns=st.integers(0, 40),
    leaving=st.sampled_from(get_args(Leaving)),
)
def test_a_call_that_is_left_at_any_point_leaves_nothing_behind(
    stage: Stage, play: Play, events: int, turns: int, leaving: Leaving
) -> None:
    reading = read(play.raw, ended=play.after != "keep")
    is_silent = ends_in_silence(play, reading)

    seen = stage.leave(
        play.delivery,
        HURRIED if is_silent else UNHURRIED,
        events=events,
        turns=turns,
        leaving=leaving,
    )

    endings = [each for each in seen if isinstance(each, CallEnded)]
    event(f"ended: {len(endings)}")
    assert endings in ([], seen[-1:])
    shown = "".join(each.text for each in seen if isinstance(each, TextDelta))
    assert any(text.startswith(shown) for text, _ in reading.texts)


def ends_in_silence(play: Play, reading: Reading) -> bool:
    """Tell whether a call may have to wait for its bound, or for a long while."""
    is_open = play.after == "keep" and not reading.is_whole
    return is_open or b"retry-after:" in play.raw.lower()


def has_one_named_ending(seen: Called) -> None:
    first, *middle, record, ended = seen.events
    assert isinstance(first, AttemptStarted)
    assert isinstance(record, AttemptRecord)
    assert isinstance(ended, CallEnded)
    for each in middle:
        assert isinstance(each, Envelope | TextDelta | ReasoningDelta | ToolCallBegan)
    assert sum(isinstance(each, ToolCallBegan) for each in middle) <= 1
    served = [each.model for each in middle if isinstance(each, Envelope)]
    assert served in ([seen.record.model_served], ["", seen.record.model_served])
    verdict = seen.verdict
    assert verdict.ending in OF_A_CALL
    if verdict.ending is Ending.COMPLETED:
        assert (verdict.code, verdict.sentence_key) == ("", "")
    else:
        assert verdict.code
        assert verdict.sentence_key in ENGLISH
    assert isinstance(verdict.condition, Condition)
    is_of_the_key = verdict.condition is Condition.ACCOUNT_KEY
    assert verdict.key_effect is KeyEffect.NONE or is_of_the_key
    assert not (verdict.transient and verdict.ending in WHOLE)
    assert (ended.text, ended.reasoning) == (seen.shown, seen.thought)
    if ended.tool_calls:
        assert verdict.ending in WHOLE


def has_a_true_record(seen: Called) -> None:
    record, ended = seen.record, seen.ended
    is_whole = seen.verdict.ending in WHOLE
    assert (record.stream_state == "complete") is is_whole
    assert (record.outcome == "completed") is is_whole
    assert (record.condition == "") is is_whole
    assert (record.ending, record.code) == (seen.verdict.ending, seen.verdict.code)
    words = repr(record) + repr(ended)
    assert KEY not in words
    assert PROMPT not in words
    for text in (words, ended.text, ended.reasoning, record.provider_reason):
        assert "\0" not in text
        assert text.encode().decode() == text
    assert len(record.provider_reason) <= 300
    assert len(record.provider_reason.splitlines()) <= 1
    assert len(record.request_id) <= 200


def keeps_what_came(seen: Called, reading: Reading, *, is_certain: bool) -> None:
    """The kept text is what some leading frames of these very bytes say."""
    least = reading.sure if is_certain else 0
    if seen.verdict.ending in WHOLE:
        # Nothing of a whole answer may be missing before what proved its end.
        assert reading.proof is not None
        least = max(least, reading.proof)
    assert (seen.shown, seen.thought) in reading.texts[least:]
    assert reading.has_tool_calls or not seen.ended.tool_calls


def keeps_all_that_came(seen: Called, reading: Reading) -> None:
    """Where nothing can get lost on the way, the ending is known, too."""
    ending, status = seen.verdict.ending, reading.status
    if status is None or not 200 <= status < 300:
        assert ending in (Ending.REFUSED, Ending.BLOCKED)
        assert seen.record.http_status == status
        return
    calls = any(isinstance(each, ToolCallBegan) for each in seen.events)
    has_output = bool(seen.shown.strip()) or calls
    is_proven = reading.proof is not None and reading.proof <= reading.plain
    is_odd = reading.has_odd_finish or reading.has_strays
    if is_proven and has_output and not is_odd:
        assert ending in WHOLE


def keeps_what_was_meant(seen: Called, play: Play, *, is_all: bool) -> None:
    """Cutting alone: a prefix of what was meant, or all of it."""
    if not play.answer.is_plain:
        return
    assert play.answer.text.startswith(seen.shown)
    assert play.answer.reasoning.startswith(seen.thought)
    if is_all:
        assert (seen.shown, seen.thought) == (play.answer.text, play.answer.reasoning)
