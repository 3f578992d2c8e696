"""Finding rounds that nobody works on any more, and ending them.

A dead process writes no outcome: another one decides (requirement H10). Text and
tools are kept, the cause is named.
"""

from collections.abc import Container
from datetime import datetime, timedelta

from threads.core.faults import Condition, Ending, Verdict
from threads.models import Round, ToolRun
from threads.rounds import ledger
from threads.rounds.worker import is_known_dead

STALE_SECONDS = 45
UNCLAIMED_SECONDS = 20
NEVER_STARTED_SECONDS = 300
DECISION_SECONDS = 24 * 3600

WORKER_LOST = Verdict(
    code="worker_lost",
    ending=Ending.INTERRUPTED,
    condition=Condition.OUR_BUG,
    transient=True,
    sentence_key="round.worker_lost",
)
NEVER_STARTED = Verdict(
    code="worker_never_started",
    ending=Ending.INTERRUPTED,
    condition=Condition.OUR_BUG,
    transient=True,
    sentence_key="round.worker_never_started",
)
NOT_DECIDED = Verdict(
    code="approval_expired",
    ending=Ending.INTERRUPTED,
    condition=Condition.REQUEST,
    transient=True,
    sentence_key="round.not_decided",
)


def end_lost_rounds(now: datetime, *, held: Container[int] = ()) -> list[int]:
    """End the rounds whose worker is gone, and those that none ever took.

    `held` are rounds that this process is certain to be working on. Returns the
    rounds that were ended here.
    """
    ended = []
    for round_ in Round.objects.filter(state=Round.State.RUNNING).only(
        "worker", "heartbeat_at", "claimed_at", "created_at"
    ):
        if round_.pk in held or not _is_lost(round_, now):
            continue
        outcome = ledger.Outcome(WORKER_LOST)
        if ledger.finish_round(round_.pk, outcome, worker=round_.worker):
            ended.append(round_.pk)
    too_old = now - timedelta(seconds=NEVER_STARTED_SECONDS)
    queued = Round.objects.filter(state=Round.State.QUEUED)
    for round_id in queued.filter(queued_at__lt=too_old).values_list("pk", flat=True):
        outcome = ledger.Outcome(NEVER_STARTED)
        if ledger.finish_round(round_id, outcome, leaving=Round.State.QUEUED):
            ended.append(round_id)
    return ended + _end_stopped() + _end_undecided(now)


def _end_stopped() -> list[int]:
    """End rounds that nobody works on and that carry the stop marker: who put it, or
    who let go of them, may have died in between."""
    unclaimed = [Round.State.QUEUED, Round.State.ASKING]
    stopped = Round.objects.filter(state__in=unclaimed).exclude(stop_requested_at=None)
    rounds = list(stopped.values_list("pk", flat=True))
    return [pk for pk in rounds if ledger.end_if_stopped_unclaimed(pk)]


def _end_undecided(now: datetime) -> list[int]:
    """End the rounds whose person was asked about a tool and never answered."""
    ended = []
    waiting = ToolRun.objects.filter(
        state=ToolRun.State.WAITING,
        round__state=Round.State.ASKING,
        asked_at__lt=now - timedelta(seconds=DECISION_SECONDS),
    )
    # Of several tools that wait, the first is named.
    tools = dict(waiting.order_by("-call", "-position").values_list("round", "name"))
    for round_id, tool in tools.items():
        outcome = ledger.Outcome(NOT_DECIDED, params={"tool": tool})
        if ledger.finish_round(round_id, outcome, leaving=Round.State.ASKING):
            ended.append(round_id)
    return ended


def _is_lost(round_: Round, now: datetime) -> bool:
    if is_known_dead(round_.worker):
        return True
    beat = round_.heartbeat_at or round_.claimed_at or round_.created_at
    return now - beat > timedelta(seconds=STALE_SECONDS)


def unclaimed_rounds(now: datetime) -> list[int]:
    """Return queued rounds that wait longer than a live process would let them."""
    return list(
        Round.objects.filter(
            state=Round.State.QUEUED,
            queued_at__lt=now - timedelta(seconds=UNCLAIMED_SECONDS),
        ).values_list("pk", flat=True)
    )
