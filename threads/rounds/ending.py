"""The one terminal write of a round and its cell."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil

from django.db import transaction
from django.utils import timezone, translation

from threads.core.faults import WHOLE, Condition, Ending, Verdict
from threads.core.reasons import redacted
from threads.core.substitution import is_substitute
from threads.models import Cell, JournalEntry, Round, Thread, ToolRun
from threads.rounds import exchanges, folding
from threads.sentences import ADDENDA, edited_words, sentence

logger = logging.getLogger(__name__)

TOLD_WAIT_SECONDS = 30.0
"""A shorter wait is over by the time that the sentence has been read (D22)."""

STOPPED = Verdict(code="stopped", ending=Ending.STOPPED, condition=Condition.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a round ended. The text is not here: it is in the journal."""

    verdict: Verdict
    params: Mapping[str, str] = field(default_factory=dict)
    model_served: str = ""
    request_id: str = ""
    reasoning_ms: int | None = None


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
        Round.objects.filter(pk=round_id)
        .select_related("answer_cell", "model__gateway")
        .first()
    )
    if round_ is None:
        logger.warning(
            "TERMINAL_WRITE_LOST round=%s code=%s", round_id, outcome.verdict.code
        )
        return False
    asked = round_.model.wire_id if round_.model else round_.model_requested
    substituted = is_substitute(asked, outcome.model_served)
    params = {
        "model": _model_name(round_, asked),
        **outcome.verdict.params,
        **outcome.params,
    }
    if substituted and outcome.verdict.ending not in WHOLE:
        params["served"] = outcome.model_served
    wait = outcome.verdict.retry_after_seconds or 0
    if wait >= TOLD_WAIT_SECONDS:
        params["wait"] = str(ceil(wait / 60))
    outcome = replace(outcome, params=params)
    # Not inside: a catalogue that cannot be read must not keep a round from ending.
    key = outcome.verdict.sentence_key
    edited = edited_words(round_.locale, key, *ADDENDA.values()) if key else {}
    with transaction.atomic():
        held = Round.objects.select_for_update().filter(pk=round_id, state=leaving)
        if worker is not None:
            held = held.filter(worker=worker)
        # Read under the lock, so that no marker is set in between.
        marker = held.values_list("stop_requested_at", flat=True).first()
        if marker is not None:
            outcome = _stopped(outcome)
        verdict, now = outcome.verdict, ended_at or timezone.now()
        won = held.update(
            state=_state(verdict),
            ending=verdict.ending.value,
            code=verdict.code,
            model_served=outcome.model_served,
            ended_at=now,
        )
        if won:
            exchanges.end_all(round_id)
            outcome = _told_of_tools(outcome, round_id)
            text = _sentence(outcome, round_.locale, edited)
            _end_cell(round_.answer_cell, outcome, text, now)
            Thread.objects.filter(pk=round_.thread_id).update(updated_at=now)
    if not won:
        logger.warning(
            "TERMINAL_WRITE_LOST round=%s code=%s", round_id, outcome.verdict.code
        )
    elif substituted:
        logger.warning(
            "MODEL_SUBSTITUTED requested=%s served=%s round=%s",
            redacted(asked),
            redacted(outcome.model_served),
            round_id,
        )
    return bool(won)


def _told_of_tools(outcome: Outcome, round_id: int) -> Outcome:
    """Name the tool of which nobody knows what became of it (requirement F6).

    Of several the last one that began; one that the sentence names already needs no
    other.
    """
    runs = ToolRun.objects.filter(round=round_id).order_by("-started_at")
    tool = next(iter(ToolRun.unknown_names(runs)), "")
    if not tool or tool == outcome.params.get("tool"):
        return outcome
    return replace(outcome, params={**outcome.params, "unknown_tool": tool})


def _sentence(outcome: Outcome, locale: str, edited: Mapping[str, str]) -> str:
    """Render the sentence that is frozen with the round.

    A mistake in a catalogue row must not keep a round from ending.
    """
    verdict = outcome.verdict
    if not verdict.sentence_key:
        return ""
    try:
        return sentence(verdict.sentence_key, outcome.params, locale, edited=edited)
    except Exception:
        logger.exception("Sentence %s cannot be written", verdict.sentence_key)
        return ""


def _stopped(outcome: Outcome) -> Outcome:
    return replace(outcome, verdict=STOPPED, params={})


def _model_name(round_: Round, asked: str) -> str:
    """Name the model that was asked as the round's language does, or else by its
    wire id. Of a route it is the last one: how that ended is how the round ended.

    Names of practice models say what they show and are no names in a sentence.
    """
    model = round_.model
    if model is None or model.gateway.is_practice:
        return asked
    with translation.override(round_.locale):
        return model.name or model.wire_id


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
