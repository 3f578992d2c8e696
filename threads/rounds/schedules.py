"""Prompts by the clock: who is due, opened once, and what their failures count for.

How it works. The sweeper of every process that keeps house asks for what is due.
A schedule is claimed by moving its next time on, from the one that was read: of
several processes one moves it, and opens the round in the same write. Times that
were missed are not made up for: the next one is counted from now. How a round ended
is read when the sweeper comes by again; nothing in a round knows of schedules.
"""

import logging
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db import DatabaseError, InterfaceError, transaction
from django.utils import timezone, translation
from django.utils.formats import date_format

from threads.choices import Choice, default_choice
from threads.core.faults import Condition
from threads.endpoints import models_of
from threads.models import Round, Schedule, Thread
from threads.rounds.opening import ThreadBusyError, open_round

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 20
"""Of one sweep; those that are left are due at the next."""

COUNTED = frozenset({Condition.REQUEST, Condition.OUR_CONFIG, Condition.OUR_BUG})
"""Whose failures use up a schedule's own budget: never a provider's (F8)."""

Skip = Schedule.Skip
RELATED = ("owner", "agent__model", "model", "route", "thread", "last_round")


class SkippedError(Exception):
    """A run that cannot be, as things are now; nothing was opened."""

    def __init__(self, why: Skip) -> None:
        super().__init__(why.value)
        self.why = why


def start_due(now: datetime) -> list[int]:
    """Open the rounds of all schedules whose time has come; returns them.

    Whoever calls sets them going. Each is opened once, however many processes call.
    """
    count_ended(now)
    due = Schedule.objects.due(now)[:MOST_AT_ONCE]
    opened = [_claim_or_log(schedule, now) for schedule in due]
    return [round_id for round_id in opened if round_id is not None]


def run_now(schedule: Schedule) -> Round:
    """Open a round of a schedule, be it switched off; its next time stays.

    Whoever calls sets it going.

    Raises:
        SkippedError: it cannot be run now; nothing is changed.
    """
    now = timezone.now()
    count_ended(now)
    with transaction.atomic():
        held = Schedule.objects.select_for_update().get(pk=schedule.pk)
        return _open(held, now)


def _claim_or_log(schedule: Schedule, now: datetime) -> int | None:
    """Claim a schedule; whatever is wrong with one keeps no other from its time."""
    try:
        return claim(schedule, now)
    except (DatabaseError, InterfaceError):
        raise
    except Exception:
        logger.exception("Schedule %s could not be run", schedule.pk)
        return None


def claim(schedule: Schedule, now: datetime) -> int | None:
    """Move a schedule on to its next time and open its round, in one write.

    None where another has moved it since it was read, and where it is left out.
    """
    upcoming = schedule.next_times(now, 1)
    with transaction.atomic():
        won = Schedule.objects.filter(
            pk=schedule.pk, is_enabled=True, next_at=schedule.next_at
        ).update(next_at=upcoming[0] if upcoming else None)
        if not won:
            return None
        try:
            # What was read may be older than the claim.
            schedule = Schedule.objects.select_related(*RELATED).get(pk=schedule.pk)
            return _open(schedule, now).pk
        except SkippedError as skipped:
            Schedule.objects.filter(pk=schedule.pk).update(skipped=skipped.why)
            logger.warning(
                "SCHEDULE_SKIPPED schedule=%s why=%s", schedule.pk, skipped.why
            )
            return None


def _open(schedule: Schedule, now: datetime) -> Round:
    """Open the round of a schedule whose row this transaction holds.

    Raises:
        SkippedError: it cannot be run now.
    """
    if schedule.last_round is not None and schedule.last_round.state in Round.ACTIVE:
        raise SkippedError(Skip.BUSY)
    if not schedule.owner.is_active:
        raise SkippedError(Skip.OWNER)
    if schedule.agent is not None and not schedule.agent.is_enabled:
        raise SkippedError(Skip.AGENT)
    if not schedule.next_times(now, 1):
        raise SkippedError(Skip.TIMES)
    choice = _choice(schedule)
    thread = _thread(schedule, choice, now)
    try:
        round_ = open_round(
            thread=thread,
            prompt=schedule.prompt,
            model=choice.model if choice else None,
            model_requested=choice.model.wire_id if choice else "",
            route=choice.route if choice else None,
            agent=schedule.agent,
            locale=schedule.locale,
            attended=False,
        )
    except ThreadBusyError as error:
        raise SkippedError(Skip.BUSY) from error
    Schedule.objects.filter(pk=schedule.pk).update(
        thread=thread if schedule.keeps_thread else None,
        last_at=now,
        last_round=round_,
        is_awaited=True,
        skipped=Skip.NONE,
    )
    logger.info("SCHEDULE_STARTED schedule=%s round=%s", schedule.pk, round_.pk)
    return round_


def _choice(schedule: Schedule) -> Choice | None:
    """What is asked. A model that is offered no longer is asked nevertheless, so
    that its round says what has become of it.

    Raises:
        SkippedError: a route has nobody to ask; its models are not asked past it.
    """
    if schedule.route is not None:
        models = models_of(schedule.route)
        if not models:
            raise SkippedError(Skip.ROUTE)
        return Choice(models[0], schedule.route)
    model = schedule.model
    if model is None and schedule.agent is not None:
        model = schedule.agent.model
    return default_choice() if model is None else Choice(model)


def _thread(schedule: Schedule, choice: Choice | None, now: datetime) -> Thread:
    """The thread of all runs, if its owner still has it; else a new one."""
    known = schedule.thread if schedule.keeps_thread else None
    if (
        known is not None
        and known.deleted_at is None
        and known.owner_id == schedule.owner_id
    ):
        return known
    return Thread.objects.create(
        owner=schedule.owner,
        title=_title(schedule, now),
        agent=schedule.agent,
        model=choice.model if choice else None,
        route=choice.route if choice else None,
    )


def _title(schedule: Schedule, now: datetime) -> str:
    """The schedule's name, and the time where each run has a thread of its own."""
    if schedule.keeps_thread:
        return schedule.name
    begun = now.astimezone(ZoneInfo(schedule.time_zone))
    with translation.override(schedule.locale):
        return f"{schedule.name} · {date_format(begun, 'DATETIME_FORMAT')}"


def count_ended(now: datetime) -> None:
    """Count how the last rounds ended; too many failures switch a schedule off.

    An answer ends the row of failures. A provider's fault and a stop leave it as it
    is: nothing that the schedule could do would help.
    """
    over = Schedule.objects.filter(is_awaited=True, last_round__isnull=False)
    for schedule in over.exclude(last_round__state__in=Round.ACTIVE).select_related(
        "last_round__answer_cell"
    ):
        round_ = schedule.last_round
        assert round_ is not None  # noqa: S101 - so they were filtered
        failures = _failures(schedule, round_)
        is_over = failures >= schedule.most_failures and failures > schedule.failures
        changes: dict[str, object] = {"failures": failures}
        if is_over and schedule.is_enabled:
            changes |= {"is_enabled": False, "next_at": None, "switched_off_at": now}
        won = Schedule.objects.filter(
            pk=schedule.pk, is_awaited=True, last_round=round_
        ).update(is_awaited=False, **changes)
        if won and "is_enabled" in changes:
            logger.warning(
                "SCHEDULE_SWITCHED_OFF schedule=%s code=%s", schedule.pk, round_.code
            )


def _failures(schedule: Schedule, round_: Round) -> int:
    if round_.state == Round.State.DONE:
        return 0
    is_counted = round_.answer_cell.condition in COUNTED
    return schedule.failures + is_counted
