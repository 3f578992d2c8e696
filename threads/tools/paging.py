"""One bounded page of a list, as every list tool answers it (requirement F9).

The database counts; what is not on the page is not read. A page fits into a tool's
result: the more items, the less of each one's text.
"""

import bisect
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet

from threads.tools.running import RESULT_LENGTH, text_of

DEFAULT_LIMIT = 50
MOST_ITEMS = 200
LEAST_TEXT = 20
"""Characters of a text below which items are left out sooner than texts cut."""

LIMIT = {
    "type": "integer",
    "description": f"How many at most. Default {DEFAULT_LIMIT}, never over {MOST_ITEMS}.",
}
"""The schema of the limit that every list tool takes."""

SHORTENED = (
    "Texts are cut so that all items fit; 'shortened_from' tells how many characters "
    "there are. Ask for fewer items to get longer texts."
)

Row = Mapping[str, Any]
Fields = dict[str, Any]
Item = Callable[[int], Fields]
"""An item, written with at most so many characters of each of its texts."""


def size_of(limit: float | None) -> int:
    """Return how many items are answered; JSON's 20.0 is an integer too."""
    return DEFAULT_LIMIT if limit is None else int(max(1, min(limit, MOST_ITEMS)))


def page_of(
    rows: QuerySet[Any, Row],
    limit: float | None,
    items_of: Callable[[Sequence[Row]], Sequence[Item]],
) -> Fields:
    """Answer the first of these rows; `count` is how many there are in all."""
    size = size_of(limit)
    found = list(rows[:size])
    return _fitted(max(rows.count(), len(found)), size, items_of(found))


def _fitted(count: int, size: int, items: Sequence[Item]) -> Fields:
    """Give each text as much room as there is; leave out items only if there is none."""

    def page(share: int) -> Fields:
        written = [item(share) for item in items]
        is_cut = count > len(written)
        return {"count": count, "limit": size, "truncated": is_cut, "items": written}

    def is_too_long(share: int) -> bool:
        return len(text_of(page(share))) > RESULT_LENGTH

    shares = range(LEAST_TEXT, RESULT_LENGTH)
    while items and is_too_long(LEAST_TEXT):
        items = items[: len(items) * 9 // 10]
    if not is_too_long(shares[-1]):
        return page(shares[-1])
    return page(LEAST_TEXT + bisect.bisect_left(shares, x=True, key=is_too_long) - 1)


def fair_share(lengths: Sequence[int], room: int) -> int:
    """Return how much of each text may be read so that all together fit."""

    def is_too_much(share: int) -> bool:
        return sum(min(length, share) for length in lengths) > room

    return bisect.bisect_left(range(1, room + 1), x=True, key=is_too_much)


def part_of(text: str, length: int, share: int) -> Fields:
    """Write a text of that length, of which `text` is the beginning; say if it is cut."""
    kept = min(share, len(text))
    if length <= kept:
        return {"text": text}
    return {"text": f"{text[: kept - 1]}…", "shortened_from": length}


def ellipsis(text: str, share: int) -> str:
    """Return at most that many characters of a text; … stands for the rest."""
    return text if len(text) <= share else f"{text[: share - 1]}…"


def moment(time: datetime) -> str:
    """Write a time to the minute."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")
