"""Which push may change which cell."""

from itertools import product

import pytest

from threads.core.snapshot import Position, continues, supersedes

POSITIONS = [Position(*pair) for pair in product(range(3), range(3))]


@pytest.mark.parametrize(
    ("new", "old", "changes"),
    [
        (Position(0, 5), Position(0, 4), True),
        (Position(0, 4), Position(0, 4), False),
        (Position(0, 3), Position(0, 4), False),
        (Position(1, 0), Position(0, 9), True),
        (Position(0, 9), Position(1, 0), False),
        (Position(1, 1), Position(1, 0), True),
    ],
)
def test_text_grows_inside_a_generation_and_only_a_newer_one_shortens_it(
    new: Position, old: Position, changes: bool
) -> None:
    assert supersedes(new, old) is changes


@pytest.mark.parametrize("new", POSITIONS)
@pytest.mark.parametrize("old", POSITIONS)
def test_after_the_end_nothing_changes(new: Position, old: Position) -> None:
    assert not supersedes(new, old, ended=True)


@pytest.mark.parametrize("one", POSITIONS)
@pytest.mark.parametrize("other", POSITIONS)
def test_of_two_different_positions_exactly_one_supersedes(
    one: Position, other: Position
) -> None:
    assert supersedes(one, other) + supersedes(other, one) == (one != other)


@pytest.mark.parametrize(
    ("start", "shown", "fits"),
    [
        (Position(0, 4), Position(0, 4), True),
        (Position(0, 5), Position(0, 4), False),
        (Position(0, 3), Position(0, 4), False),
        (Position(1, 4), Position(0, 4), False),
    ],
)
def test_text_is_appended_only_where_it_begins_at_what_is_shown(
    start: Position, shown: Position, fits: bool
) -> None:
    assert continues(start, shown) is fits


def test_a_cell_begins_empty() -> None:
    assert Position() == Position(generation=0, length=0)
