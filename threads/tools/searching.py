"""The tool that finds threads of one's own by what is written in them."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Greatest, Length, StrIndex, Substr, Upper

from threads.models import Cell, Thread
from threads.models.conversation import words_of
from threads.tools.paging import Fields, Item, Row, ellipsis, moment, page_of
from threads.tools.registry import ToolContext, ToolError

WINDOW = 240
"""Characters of a message that are read; the words stand after a third of them."""

LONGEST_TITLE = 60


def search_threads(
    context: ToolContext, query: str, limit: float | None = None
) -> Fields:
    """Return the owner's threads with these words, those last used first.

    Finds what the site's own search finds: what was deleted, or is no longer the
    current version of a message, does not count.

    Raises:
        ToolError: nothing is looked for.
    """
    words = words_of(query)
    if not words:
        raise ToolError("The query is empty. Search for a word.")
    found = Thread.objects.owned_by(context.owner_id).containing(words)
    rows = found.order_by("-updated_at", "-pk")
    named = rows.values("pk", "title", "updated_at")
    return page_of(named, limit, partial(_items, words))


def _items(words: str, threads: Sequence[Row]) -> list[Item]:
    """Pair each thread with its newest message that has the words; two queries."""
    said = Cell.objects.filter(thread=OuterRef("pk")).shown().containing(words)
    newest = Subquery(said.reverse().values("pk")[:1])
    ids = [thread["pk"] for thread in threads]
    hits = Thread.objects.filter(pk__in=ids).annotate(hit=newest)
    cells = Cell.objects.filter(
        pk__in=[hit for _, hit in hits.values_list("pk", "hit")]
    )
    by_thread = {cell["thread"]: cell for cell in _windows(words, cells)}
    return [
        partial(_item, thread, words, by_thread.get(thread["pk"])) for thread in threads
    ]


def _windows(words: str, cells: QuerySet[Cell]) -> QuerySet[Any, Row]:
    """Read of each message no more than what surrounds the words."""
    at = StrIndex(Upper("text"), Upper(Value(words)))
    start = Greatest(at - WINDOW // 3, 1)
    return cells.annotate(
        at=at, start=start, window=Substr("text", start, WINDOW), length=Length("text")
    ).values("pk", "thread", "role", "created_at", "at", "start", "window", "length")


def _item(thread: Row, words: str, hit: Row | None, share: int) -> Fields:
    return {
        "thread": thread["pk"],
        "title": ellipsis(thread["title"], min(share, LONGEST_TITLE)),
        "cell": hit and hit["pk"],
        "role": hit and hit["role"],
        "date": moment(hit["created_at"] if hit else thread["updated_at"]),
        "excerpt": _excerpt(hit, len(words), share) if hit else "",
    }


def _excerpt(hit: Row, width: int, share: int) -> str:
    """Cut out what surrounds the words, in one line; … stands for the rest."""
    window, start = hit["window"], hit["start"]
    share = min(max(share, 1), len(window))
    middle = max(hit["at"] - start, 0) + width // 2
    begin = max(0, min(middle - share // 2, len(window) - share))
    before = "…" if start + begin > 1 else ""
    after = "…" if start - 1 + begin + share < hit["length"] else ""
    return before + " ".join(window[begin : begin + share].split()) + after
