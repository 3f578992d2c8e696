"""The tools that read threads of one's own, and the versions of a message."""

from collections.abc import Sequence
from functools import partial

from django.db.models.functions import Left, Length

from threads.core.faults import Ending
from threads.models import Cell, Thread
from threads.tools.paging import Fields, Item, Row, fair_share, moment, page_of, part_of
from threads.tools.registry import ToolContext, ToolError
from threads.tools.running import RESULT_LENGTH

FIRST_CHARACTERS = 200
"""Of a version: enough to tell it from another."""

READ = ("pk", "role", "status", "ending", "code", "created_at", "length")


def read_thread(
    context: ToolContext,
    thread: float | None = None,
    before: float | None = None,
    limit: float | None = None,
) -> Fields:
    """Return messages of a thread of the owner as it reads now, newest first.

    Without a number it is the thread in which the tool is called. `before` is a
    cell of it: only what stands above that one is returned. Of an answer that is
    being written there is what has been stored.

    Raises:
        ToolError: the owner has no such thread, or it no such cell.
    """
    wanted = int(context.thread_id if thread is None else thread)
    own = Thread.objects.owned_by(context.owner_id).filter(pk=wanted).first()
    if own is None:
        raise ToolError(f"There is no thread {wanted}.")
    rows = own.cells.shown().reverse()
    if before is not None:
        place = own.cells.filter(pk=int(before)).values_list("position").first()
        if place is None:
            raise ToolError(f"There is no cell {int(before)} in thread {wanted}.")
        rows = rows.filter(position__lt=place[0])
    return page_of(rows.annotate(length=Length("text")).values(*READ), limit, _messages)


def _messages(cells: Sequence[Row]) -> list[Item]:
    share = fair_share([cell["length"] for cell in cells], RESULT_LENGTH)
    shown = Cell.objects.filter(pk__in=[cell["pk"] for cell in cells])
    texts = dict(shown.annotate(begun=Left("text", share)).values_list("pk", "begun"))
    return [partial(_message, cell, texts.get(cell["pk"], "")) for cell in cells]


def _message(cell: Row, text: str, share: int) -> Fields:
    return {
        "cell": cell["pk"],
        "role": cell["role"],
        "date": moment(cell["created_at"]),
        **_outcome(cell),
        **part_of(text, cell["length"], share),
    }


def cell_versions(
    context: ToolContext, cell: float, limit: float | None = None
) -> Fields:
    """Return the versions of a message or an answer of the owner, newest first.

    Raises:
        ToolError: the owner has no such cell.
    """
    own = Cell.objects.filter(thread__in=Thread.objects.owned_by(context.owner_id))
    asked = own.filter(pk=int(cell)).only("thread", "position", "question").first()
    if asked is None:
        raise ToolError(f"There is no cell {int(cell)}.")
    versions = Cell.objects.filter(
        thread=asked.thread_id, position=asked.position, question=asked.question_id
    )
    rows = versions.order_by("-version").annotate(
        length=Length("text"), begun=Left("text", FIRST_CHARACTERS)
    )
    named = rows.values(*READ, "is_current", "begun")
    return page_of(named, limit, partial(_versions, rows.count()))


def _versions(count: int, cells: Sequence[Row]) -> list[Item]:
    """Number them as a page does: within their question, from one."""
    return [partial(_version, count - place, cell) for place, cell in enumerate(cells)]


def _version(number: int, cell: Row, share: int) -> Fields:
    return {
        "version": number,
        **({"current": True} if cell["is_current"] else {}),
        "cell": cell["pk"],
        "date": moment(cell["created_at"]),
        "status": cell["status"],
        **_outcome(cell),
        **part_of(cell["begun"], cell["length"], share),
    }


def _outcome(cell: Row) -> Fields:
    """Say how a cell ended, unless all went well."""
    if cell["status"] == Cell.Status.DONE and cell["ending"] in ("", Ending.COMPLETED):
        return {}
    told = {name: cell[name] for name in ("status", "ending", "code")}
    return {name: value for name, value in told.items() if value}
