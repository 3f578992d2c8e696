"""Positions, and pieces that become a text."""

import pytest

from threads.core.snapshot import Position, laid_end_to_end


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
