"""Text that can be stored and sent, however it was cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.properties import steady
from threads.core.answer import Cleaner, clean

HIGH, LOW = "\ud83d", "\ude42"

wild_text = st.text(
    st.sampled_from([HIGH, LOW, "\0", "a", "é", "🙂", " ", "\n", "\ud800", "\udfff"])
)
"""Much of what breaks, and little else."""


def fed(pieces: list[str]) -> str:
    cleaner = Cleaner()
    return "".join([cleaner.feed(piece) for piece in pieces]) + cleaner.flush()


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("", ""),
        ("plain ⅷ 👩‍👧", "plain ⅷ 👩‍👧"),
        ("a\0b", "ab"),
        (f"bad {LOW} end", "bad \ufffd end"),
        (f"bad {HIGH}", "bad \ufffd"),
        (f"ok {HIGH}{LOW}!", "ok 🙂!"),
        (f"{LOW}{HIGH}", "\ufffd\ufffd"),
    ],
    ids=ascii,
)
def test_nul_goes_halves_meet_and_orphans_are_marked(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["ok " + HIGH, LOW + "!"], ["ok ", "🙂!"]),
        ([HIGH, LOW], ["", "🙂"]),
        ([HIGH, "", LOW], ["", "", "🙂"]),
        ([HIGH, HIGH, LOW], ["", "\ufffd", "🙂"]),
        ([HIGH, "a"], ["", "\ufffda"]),
        ([LOW], ["\ufffd"]),
        (["a\0", "b"], ["a", "b"]),
    ],
    ids=ascii,
)
def test_the_first_half_of_a_character_waits_for_the_second(
    pieces: list[str], shown: list[str]
) -> None:
    cleaner = Cleaner()

    assert [cleaner.feed(piece) for piece in pieces] == shown
    assert cleaner.flush() == ""


def test_a_half_that_waited_in_vain_is_marked_once() -> None:
    cleaner = Cleaner()

    assert cleaner.feed("a" + HIGH) == "a"
    assert cleaner.flush() == "\ufffd"
    assert cleaner.flush() == ""


@steady
@given(wild_text)
def test_clean_text_can_be_encoded_and_stays_as_it_is(text: str) -> None:
    cleaned = clean(text)

    assert cleaned.encode().decode() == cleaned
    assert "\0" not in cleaned
    assert clean(cleaned) == cleaned


@steady
@given(st.lists(wild_text))
def test_the_cut_of_a_text_makes_no_difference(pieces: list[str]) -> None:
    assert fed(pieces) == fed(["".join(pieces)])


@steady
@given(wild_text)
def test_a_text_in_one_piece_is_cleaned_as_a_whole(text: str) -> None:
    assert fed([text]) == clean(text)
