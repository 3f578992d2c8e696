"""Opening, claiming and ending rounds: short atomic writes, each conditional.

Every change of a round's state filters on the state it leaves, so of several
writers one wins. Plain functions: a loop runs them through `loops.in_database`.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import Enum

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from threads.core.answer import clean
from threads.core.faults import WHOLE, Condition, Ending, Verdict
from threads.gateway.calls import AttemptRecord
from threads.models import (
    Agent,
    CallAttempt,
    Cell,
    JournalEntry,
    LanguageModel,
    Round,
    Thread,
    ToolRun,
)
from threads.models.conversation import TITLE_LENGTH
from threads.rounds import folding
from threads.rounds.broadcast import Place
from threads.sentences import sentence

logger = logging.getLogger(__name__)

STOPPED = Verdict(code="stopped", ending=Ending.STOPPED, condition=Condition.UNKNOWN)


class ThreadBusyError(Exception):
    """The thread is being answered; one round at a time."""

    def __init__(self, round_id: int) -> None:
        super().__init__(f"round {round_id} is under way")
        self.round_id = round_id


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a round ended. The text is not here: it is in the journal."""

    verdict: Verdict
    params: Mapping[str, str] = field(default_factory=dict)
    model_served: str = ""
    request_id: str = ""
    reasoning_ms: int | None = None


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

    The same submission key opens one round, however often it is sent.

    Raises:
        ThreadBusyError: another round of this thread is queued or running.
    """
    try:
        with transaction.atomic():
            Thread.objects.select_for_update().get(pk=thread.pk)
            known = _already_open(thread, submission_key)
            if known is not None:
                return known
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
        known = _already_open(thread, submission_key)
        if known is None:
            raise
        return known


def _already_open(thread: Thread, submission_key: str | None) -> Round | None:
    if submission_key is not None:
        known = Round.objects.filter(
            thread=thread, submission_key=submission_key
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
    thread.updated_at = now
    if not thread.title:
        thread.title = title_of(prompt)
    thread.save(update_fields=["updated_at", "title"])
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


def finish_round(
    round_id: int,
    outcome: Outcome,
    *,
    leaving: str = Round.State.RUNNING,
    worker: str | None = None,
    ended_at: datetime | None = None,
) -> bool:
    """End a round: the one terminal write, of round and cell together.

    It takes place only while the round is in the state `leaving` and, if given,
    held by `worker`; whoever comes second changes nothing, leaves
    TERMINAL_WRITE_LOST in the log and gets False. The stop marker wins over
    every other outcome. The answer's text is what the journal holds.
    """
    round_ = (
        Round.objects.filter(pk=round_id).select_related("answer_cell", "model").first()
    )
    if round_ is None:
        logger.warning(
            "TERMINAL_WRITE_LOST round=%s code=%s", round_id, outcome.verdict.code
        )
        return False
    params = {"model": _model_name(round_), **outcome.verdict.params, **outcome.params}
    outcome = replace(outcome, params=params)
    text = _sentence(outcome, round_.locale)
    with transaction.atomic():
        held = Round.objects.select_for_update().filter(pk=round_id, state=leaving)
        if worker is not None:
            held = held.filter(worker=worker)
        stopped = held.exclude(stop_requested_at=None).exists()
        if stopped:
            outcome, text = _stopped(outcome), ""
        verdict, now = outcome.verdict, ended_at or timezone.now()
        won = held.update(
            state=_state(verdict),
            ending=verdict.ending.value,
            code=verdict.code,
            model_served=outcome.model_served,
            ended_at=now,
        )
        if won:
            _end_cell(round_.answer_cell, outcome, text, now)
            _end_tool_runs(round_id, now)
            Thread.objects.filter(pk=round_.thread_id).update(updated_at=now)
    if not won:
        logger.warning(
            "TERMINAL_WRITE_LOST round=%s code=%s", round_id, outcome.verdict.code
        )
    return bool(won)


def _sentence(outcome: Outcome, locale: str) -> str:
    """Render the sentence that is frozen with the round.

    A mistake in a catalogue row must not keep a round from ending.
    """
    verdict = outcome.verdict
    if not verdict.sentence_key:
        return ""
    try:
        return sentence(verdict.sentence_key, outcome.params, locale)
    except Exception:
        logger.exception("Sentence %s cannot be written", verdict.sentence_key)
        return ""


def _stopped(outcome: Outcome) -> Outcome:
    return replace(outcome, verdict=STOPPED, params={})


def _model_name(round_: Round) -> str:
    return round_.model.name if round_.model is not None else round_.model_requested


def _state(verdict: Verdict) -> Round.State:
    if verdict.ending == Ending.STOPPED:
        return Round.State.STOPPED
    return Round.State.DONE if verdict.ending in WHOLE else Round.State.ERROR


def _end_cell(cell: Cell, outcome: Outcome, text: str, now: datetime) -> None:
    verdict = outcome.verdict
    folded = folding.fold(cell)
    Cell.objects.filter(pk=cell.pk, status=Cell.Status.STREAMING).update(
        status=_state(verdict).value,
        text=folded.text,
        text_generation=folded.generation,
        reasoning=folded.reasoning,
        reasoning_ms=outcome.reasoning_ms,
        ending=verdict.ending.value,
        code=verdict.code,
        condition="" if verdict.ending in WHOLE else verdict.condition.value,
        transient=verdict.transient,
        sentence_key=verdict.sentence_key,
        sentence_params=dict(outcome.params) if verdict.sentence_key else {},
        sentence=text,
        provider_reason=verdict.provider_reason[:400],
        request_id=outcome.request_id[:200],
        ended_at=now,
    )
    JournalEntry.objects.filter(cell=cell).delete()


def _end_tool_runs(round_id: int, now: datetime) -> None:
    """Nobody will learn what became of a tool that still runs (requirement F6)."""
    ToolRun.objects.filter(round_id=round_id, state=ToolRun.State.RUNNING).update(
        state=ToolRun.State.UNKNOWN, ended_at=now
    )
