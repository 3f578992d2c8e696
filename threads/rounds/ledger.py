"""Claiming and recording rounds: short atomic writes, each conditional.

Every change of a round's state filters on the state it leaves, so of several
writers one wins. Plain functions: a loop runs them through `database.in_database`.
"""

import logging
from dataclasses import asdict
from decimal import Decimal
from enum import Enum

from django.db import DatabaseError, transaction
from django.utils import timezone

from threads.core.events import UsageSource
from threads.core.substitution import is_substitute
from threads.gateway.calls import AttemptRecord
from threads.models import CallAttempt, LanguageModel, Round
from threads.rounds import keyhealth
from threads.rounds.broadcast import Place
from threads.rounds.ending import STOPPED, Outcome, finish_round
from threads.rounds.exchanges import Exchange, reread
from threads.rounds.keyhealth import Key
from threads.rounds.opening import ThreadBusyError, open_round

__all__ = [
    "STOPPED",
    "Outcome",
    "ThreadBusyError",
    "claim_round",
    "end_if_stopped_unclaimed",
    "finish_round",
    "open_round",
    "park_round",
    "place_of",
    "record_attempt",
    "request_stop",
]

logger = logging.getLogger(__name__)


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


def park_round(exchange: Exchange, worker: str) -> bool:
    """Let go of a round whose person has to decide on a tool first.

    False when its worker has more to do: something has been allowed, or nothing waits
    for a word any more. True as well when it is not this worker's: he has no more to
    do with it. A stop that was pressed meanwhile ends it here.
    """
    round_id = exchange.turn.round_id
    with transaction.atomic():
        held = Round.objects.select_for_update().filter(
            pk=round_id, state=Round.State.RUNNING, worker=worker
        )
        stands = reread(exchange)
        has_more = stands.ready or not stands.is_open
        if has_more and held.filter(stop_requested_at=None).exists():
            return False
        held.update(state=Round.State.ASKING, worker="")
    end_if_stopped_unclaimed(round_id)
    return True


def end_if_stopped_unclaimed(round_id: int) -> bool:
    """End a round that nobody works on and that carries the stop marker.

    Raises:
        DatabaseError: the marker cannot be read. That is not a stop, nor a leave
            to go on: the round stays queued and is tried again (requirement H7).
    """
    unclaimed = Round.objects.filter(
        pk=round_id, state__in=[Round.State.QUEUED, Round.State.ASKING]
    )
    try:
        stopped = unclaimed.exclude(stop_requested_at=None)
        state = stopped.values_list("state", flat=True).first()
    except DatabaseError:
        logger.warning("STOP_MARKER_UNREADABLE round=%s", round_id)
        raise
    if state is None:
        return False
    return finish_round(round_id, Outcome(STOPPED), leaving=state)


def record_attempt(
    round_id: int,
    record: AttemptRecord,
    *,
    key: Key | None = None,
    model_id: int | None = None,
) -> None:
    """Write one attempt's row, and with it what it says of the key that was used.

    What the attempt cost is written here once, at the prices of this moment. A
    second record of the same attempt is dropped, and of one whose round has been
    deleted meanwhile only the word on the key is kept. `model_id` is the model of a
    route that was asked: the round is its from now on.
    """
    known = CallAttempt.objects.filter(
        round_id=round_id, call=record.call, attempt=record.attempt
    )
    with transaction.atomic():
        if Round.objects.select_for_update().filter(pk=round_id).exists():
            if known.exists():
                return
            if model_id is not None:
                _turn_to(model_id, round_id, record)
            CallAttempt.objects.bulk_create(
                [
                    CallAttempt(
                        round_id=round_id,
                        cost=_cost(round_id, record),
                        **columns(record),
                    )
                ],
                ignore_conflicts=True,
            )
        if key is not None:
            keyhealth.note(key, record)


def _turn_to(model_id: int, round_id: int, record: AttemptRecord) -> None:
    """Keep which model of a route was asked, and the first one apart from it."""
    round_ = Round.objects.filter(pk=round_id)
    round_.update(model_id=model_id)
    if (record.call, record.attempt) == (1, 1):
        round_.update(model_requested=record.model_requested)


def _cost(round_id: int, record: AttemptRecord) -> Decimal | None:
    """What an attempt cost in USD; None where that is not known (requirement G3).

    Only the provider's own count is priced, and only where the model that was
    asked answered: what another one costs is not known.
    """
    if record.usage_source != UsageSource.PROVIDER:
        return None
    if is_substitute(record.model_requested, record.model_served):
        return None
    model = LanguageModel.objects.filter(rounds=round_id).first()
    if model is None or model.wire_id != record.model_requested:
        return None
    return model.cost_of(record.input_tokens, record.output_tokens)


def columns(record: AttemptRecord) -> dict[str, object]:
    """Return a record's values by column; enums by value."""
    return {
        name: value.value if isinstance(value, Enum) else value
        for name, value in asdict(record).items()
    }
