"""Opening, claiming and recording rounds: short atomic writes, each conditional.

Every change of a round's state filters on the state it leaves, so of several
writers one wins. Plain functions: a loop runs them through `loops.in_database`.
"""

import logging
from dataclasses import asdict
from enum import Enum

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from threads.core.answer import clean
from threads.gateway.calls import AttemptRecord
from threads.models import (
    Agent,
    CallAttempt,
    Cell,
    LanguageModel,
    Round,
    Thread,
    ToolRun,
)
from threads.models.conversation import TITLE_LENGTH
from threads.rounds.broadcast import Place
from threads.rounds.ending import STOPPED, Outcome, finish_round

__all__ = [
    "STOPPED",
    "Outcome",
    "ThreadBusyError",
    "begin_tool_runs",
    "claim_round",
    "end_if_stopped_unclaimed",
    "end_tool_run",
    "finish_round",
    "open_round",
    "place_of",
    "record_attempt",
    "request_stop",
]

logger = logging.getLogger(__name__)


class ThreadBusyError(Exception):
    """The thread is being answered; one round at a time."""

    def __init__(self, round_id: int) -> None:
        super().__init__(f"round {round_id} is under way")
        self.round_id = round_id


def open_round(
    *,
    thread: Thread,
    prompt: str,
    model: LanguageModel | None,
    model_requested: str,
    locale: str,
    attended: bool,
    agent: Agent | None = None,
    submission_key: str | None = None,
) -> Round:
    """Write a question, its empty answer and the queued round that will fill it.

    The same message with the same submission key opens one round, however often
    it is sent.

    Raises:
        ThreadBusyError: another round of this thread is queued or running.
    """
    try:
        with transaction.atomic():
            Thread.objects.select_for_update().get(pk=thread.pk)
            known = _already_open(thread, submission_key, clean(prompt))
            if known is not None:
                return known
            if Round.objects.filter(
                thread=thread, submission_key=submission_key
            ).exists():
                # A page that was copied together with its key: another message
                # is another message.
                submission_key = None
            question, answer = _add_cells(thread, clean(prompt))
            return Round.objects.create(
                thread=thread,
                user_cell=question,
                answer_cell=answer,
                model=model,
                agent=agent,
                model_requested=model_requested,
                locale=locale,
                attended=attended,
                submission_key=submission_key,
            )
    except IntegrityError:
        known = _already_open(thread, submission_key, clean(prompt))
        if known is None:
            raise
        return known


def _already_open(
    thread: Thread, submission_key: str | None, prompt: str
) -> Round | None:
    if submission_key is not None:
        known = Round.objects.filter(
            thread=thread, submission_key=submission_key, user_cell__text=prompt
        ).first()
        if known is not None:
            return known
    active = Round.objects.filter(thread=thread, state__in=Round.ACTIVE).first()
    if active is not None:
        raise ThreadBusyError(active.pk)
    return None


def _add_cells(thread: Thread, prompt: str) -> tuple[Cell, Cell]:
    last = Cell.objects.filter(thread=thread).aggregate(last=Max("position"))["last"]
    position = 0 if last is None else last + 1
    now = timezone.now()
    question = Cell.objects.create(
        thread=thread,
        position=position,
        role=Cell.Role.USER,
        text=prompt,
        created_at=now,
        ended_at=now,
    )
    answer = Cell.objects.create(
        thread=thread,
        position=position + 1,
        role=Cell.Role.ASSISTANT,
        question=question,
        status=Cell.Status.STREAMING,
        created_at=now,
    )
    # Only an empty title is filled: the caller's row may be older than a rename.
    stored = Thread.objects.filter(pk=thread.pk)
    stored.update(updated_at=now)
    stored.filter(title="").update(title=title_of(prompt))
    return question, answer


def title_of(prompt: str) -> str:
    """Make a title of a prompt's first words."""
    words = " ".join(prompt[: TITLE_LENGTH * 4].split())
    if len(words) <= TITLE_LENGTH:
        return words
    head = words[:TITLE_LENGTH]
    whole_words = head.rsplit(" ", 1)[0] if " " in head else head
    return f"{whole_words}…"


def place_of(round_id: int, *, over: bool = False) -> Place | None:
    """Return where a round happens; None when it is gone, or must be over and is not."""
    rounds = Round.objects.filter(pk=round_id)
    if over:
        rounds = rounds.exclude(state__in=Round.ACTIVE)
    row = rounds.values_list(
        "thread_id", "thread__owner_id", "user_cell_id", "answer_cell_id"
    ).first()
    return None if row is None else Place(round_id, *row)


def claim_round(round_id: int, worker: str) -> bool:
    """Take a queued round for this worker; False when it is not to be had."""
    now = timezone.now()
    return bool(
        Round.objects.filter(
            pk=round_id, state=Round.State.QUEUED, stop_requested_at=None
        ).update(
            state=Round.State.RUNNING, worker=worker, claimed_at=now, heartbeat_at=now
        )
    )


def request_stop(round_id: int) -> None:
    """Put the stop marker; a round that nobody has claimed ends here and now."""
    Round.objects.filter(
        pk=round_id, state__in=Round.ACTIVE, stop_requested_at=None
    ).update(stop_requested_at=timezone.now())
    end_if_stopped_unclaimed(round_id)


def end_if_stopped_unclaimed(round_id: int) -> bool:
    """End a queued round that carries the stop marker, without a request.

    Raises:
        DatabaseError: the marker cannot be read. That is not a stop, nor a leave
            to go on: the round stays queued and is tried again (requirement H7).
    """
    queued = Round.objects.filter(pk=round_id, state=Round.State.QUEUED)
    try:
        stopped = queued.exclude(stop_requested_at=None).exists()
    except DatabaseError:
        logger.warning("STOP_MARKER_UNREADABLE round=%s", round_id)
        raise
    if not stopped:
        return False
    return finish_round(round_id, Outcome(STOPPED), leaving=Round.State.QUEUED)


def record_attempt(round_id: int, record: AttemptRecord) -> None:
    """Write one attempt's row.

    A second record of the same attempt is dropped, and so is one of a round that
    has been deleted meanwhile.
    """
    with transaction.atomic():
        if Round.objects.select_for_update().filter(pk=round_id).exists():
            CallAttempt.objects.bulk_create(
                [CallAttempt(round_id=round_id, **columns(record))],
                ignore_conflicts=True,
            )


def columns(record: AttemptRecord) -> dict[str, object]:
    """Return a record's values by column; enums by value."""
    return {
        name: value.value if isinstance(value, Enum) else value
        for name, value in asdict(record).items()
    }


def begin_tool_runs(runs: list[ToolRun]) -> list[ToolRun]:
    """Write tool runs before any of them is run."""
    return ToolRun.objects.bulk_create(runs)


def end_tool_run(run_id: int, *, state: str, result: str) -> bool:
    """Write what became of a tool run, unless its round has ended meanwhile."""
    running = ToolRun.objects.filter(pk=run_id, state=ToolRun.State.RUNNING)
    return bool(running.update(state=state, result=result, ended_at=timezone.now()))
