"""Positions, pieces that become a text, and what a withdrawal takes away."""

from dataclasses import dataclass

import pytest

from threads.core.snapshot import (
    Entry,
    Generation,
    Position,
    generations_of,
    laid_end_to_end,
    last_read,
)


@dataclass(frozen=True)
class Row:
    """An entry of a journal, without a database."""

    part: str
    generation: int
    offset: int
    text: str


def text(generation: int, offset: int, words: str) -> Row:
    return Row("text", generation, offset, words)


def thought(generation: int, words: str) -> Row:
    return Row("reasoning", generation, 0, words)


def withdrawal(generation: int, kept: int = 0) -> Row:
    return Row("withdrawal", generation, kept, f"1.{generation}")


def shown(*rows: Entry) -> str:
    """What a page shows while the round goes on."""
    return generations_of(rows)[-1].text


def standing(*rows: Entry) -> tuple[str, int]:
    """What is read when the round is over: its text and generation."""
    stands = last_read(generations_of(rows))
    return stands.text, stands.number


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        (Position(0, 5), Position(0, 4)),
        (Position(1, 0), Position(0, 9)),
        (Position(1, 1), Position(1, 0)),
    ],
)
def test_text_grows_inside_a_generation_and_only_a_newer_one_shortens_it(
    newer: Position, older: Position
) -> None:
    assert newer > older


def test_a_cell_begins_empty() -> None:
    assert Position() == Position(generation=0, length=0)


@pytest.mark.parametrize(
    ("pieces", "before", "text"),
    [
        ([], "", ""),
        ([], "there", "there"),
        ([(0, "one "), (4, "two")], "", "one two"),
        ([(4, "two"), (0, "one ")], "", "one two"),
        ([(0, "one"), (9, "after a gap")], "", "one"),
        ([(2, "no beginning")], "", ""),
        ([(6, "more")], "there ", "there more"),
        ([(0, "there "), (6, "more")], "there ", "there more"),
        ([(1, "oday")], "there", "today"),
        ([(0, "ab"), (1, "xyz"), (4, "!")], "", "axyz!"),
    ],
)
def test_pieces_make_a_text_up_to_the_first_gap(
    pieces: list[tuple[int, str]], before: str, text: str
) -> None:
    assert laid_end_to_end(pieces, before) == text


def test_without_entries_there_is_one_empty_generation_or_what_was_folded() -> None:
    before = Generation(3, "there", "hm")

    assert generations_of([]) == [Generation()]
    assert generations_of([], before) == [before]
    assert last_read([before]) is before


def test_a_withdrawal_takes_the_text_away_at_once() -> None:
    assert shown(text(0, 0, "Half an ans"), withdrawal(1)) == ""


def test_a_withdrawal_leaves_the_text_of_earlier_calls() -> None:
    calls = [text(0, 0, "ha ha ha"), text(0, 8, "\n\nha ha")]

    assert shown(*calls, withdrawal(1, 8)) == "ha ha ha"
    assert shown(*calls, withdrawal(1, 8), text(1, 8, "\n\nha!")) == "ha ha ha\n\nha!"


def test_text_of_a_new_generation_may_be_shorter() -> None:
    rows = [text(0, 0, "A long beginning"), withdrawal(1), text(1, 0, "Short")]

    assert shown(*rows) == "Short"
    assert standing(*rows) == ("Short", 1)


def test_a_trailing_withdrawal_is_not_applied() -> None:
    assert standing(text(0, 0, "Half"), withdrawal(1)) == ("Half", 2)


def test_no_withdrawal_of_a_trailing_run_is_applied() -> None:
    rows = [text(0, 0, "Half"), withdrawal(1), withdrawal(2), withdrawal(3)]

    assert standing(*rows) == ("Half", 4)


def test_of_several_texts_that_were_withdrawn_the_last_one_stands() -> None:
    rows = [
        text(0, 0, "First"),
        withdrawal(1),
        text(1, 0, "Second"),
        withdrawal(2),
        withdrawal(3),
    ]

    assert standing(*rows) == ("Second", 4)


def test_white_space_is_no_text_that_was_read() -> None:
    rows = [text(0, 0, "Half"), withdrawal(1), text(1, 0, " \n")]

    assert standing(*rows) == ("Half", 2)


def test_the_last_text_stands_together_with_what_was_before_it() -> None:
    rows = [text(0, 0, "Call one."), text(0, 9, " Call two, ha"), withdrawal(1, 9)]

    assert shown(*rows) == "Call one."
    assert standing(*rows) == ("Call one. Call two, ha", 2)


def test_a_text_that_was_restated_empty_stands() -> None:
    assert standing(text(0, 0, "Half"), withdrawal(1), text(2, 0, "")) == ("", 2)


@pytest.mark.parametrize(
    ("rows", "reasoning", "number"),
    [
        ([thought(0, "hm")], "hm", 0),
        ([thought(0, "hm"), withdrawal(1)], "hm", 2),
        ([thought(0, "hm"), withdrawal(1), thought(1, "so"), withdrawal(2)], "so", 3),
        ([thought(0, "hm"), withdrawal(1), thought(1, "so")], "so", 1),
        (
            [text(0, 0, "Half"), thought(0, "hm"), withdrawal(1), thought(1, "so")],
            "hm",
            2,
        ),
    ],
    ids=["kept", "last", "later", "not withdrawn", "of its text"],
)
def test_thoughts_stand_with_the_text_that_they_led_to(
    rows: list[Row], reasoning: str, number: int
) -> None:
    stands = last_read(generations_of(rows))

    assert (stands.reasoning, stands.number) == (reasoning, number)


def test_a_withdrawal_of_nothing_but_thoughts_leaves_earlier_ones() -> None:
    rows = [
        text(0, 0, "Call one."),
        thought(0, "first second"),
        withdrawal(1, 9),
        thought(1, "first "),
    ]

    assert generations_of(rows)[-1] == Generation(1, "Call one.", "first ", 9)
    assert last_read(generations_of(rows)) == Generation(1, "Call one.", "first ", 9)


def test_entries_may_come_in_any_order() -> None:
    rows = [
        text(0, 0, "Half "),
        text(0, 5, "an"),
        withdrawal(1, 5),
        text(1, 5, "of it"),
        text(1, 10, "."),
    ]

    assert generations_of(reversed(rows)) == generations_of(rows)
    assert shown(*rows) == "Half of it."


def test_what_was_folded_goes_on_in_its_generation_and_is_kept_by_a_withdrawal() -> (
    None
):
    before = Generation(0, "folded", "hm")

    assert generations_of([text(0, 6, " more")], before)[-1].text == "folded more"
    assert generations_of([withdrawal(1, 3)], before)[-1].text == "fol"


def test_a_gap_is_not_bridged_by_a_withdrawal() -> None:
    assert shown(text(0, 0, "abc"), text(0, 9, "xyz"), withdrawal(1, 9)) == "abc"
