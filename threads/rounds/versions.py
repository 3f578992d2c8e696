"""Which version of a message or an answer counts: shown, and sent with what follows."""

from django.db import transaction

from threads.models import Cell, Round, Thread
from threads.rounds.opening import ThreadBusyError


class NotAVersionError(Exception):
    """There is no such cell in this thread, or the thread has been deleted."""


def choose(cell: Cell) -> list[int]:
    """Make a version the current one; a question comes with its newest answer.

    Returns the ids of the cells that are current now and were not, in order.

    Raises:
        ThreadBusyError: the thread is being answered.
        NotAVersionError: see there.
    """
    with transaction.atomic():
        threads = Thread.objects.select_for_update().filter(deleted_at=None)
        thread = threads.filter(pk=cell.thread_id).first()
        chosen = Cell.objects.filter(thread=thread, pk=cell.pk).first()
        if thread is None or chosen is None:
            raise NotAVersionError
        active = Round.objects.filter(thread=thread, state__in=Round.ACTIVE).first()
        if active is not None:
            raise ThreadBusyError(active.pk)
        if chosen.is_current:
            return []
        question = chosen.question or chosen
        answer = chosen if chosen.question_id else _newest_answer(question)
        now = [question] if answer is None else [question, answer]
        return _make_current(thread, now)


def _newest_answer(question: Cell) -> Cell | None:
    return Cell.objects.filter(question=question).order_by("-version").first()


def _make_current(thread: Thread, now: list[Cell]) -> list[int]:
    """Let these cells take their places; what stood there steps back first."""
    places = [now[0].position, now[0].position + 1]
    cells = Cell.objects.filter(thread=thread, position__in=places)
    fresh = [cell.pk for cell in now if not cell.is_current]
    kept = [cell.pk for cell in now]
    cells.filter(is_current=True).exclude(pk__in=kept).update(is_current=False)
    cells.filter(pk__in=fresh).update(is_current=True)
    return fresh
