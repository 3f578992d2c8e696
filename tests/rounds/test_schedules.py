"""Prompts by the clock: when they are due, that each starts once, and what counts."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models.signals import post_save
from django.utils import timezone

from tests.conftest import model_now
from tests.fakegateway import FakeGateway, reply
from tests.rounds.helpers import cell_of, open_now
from tests.rounds.resubmitting import COMPLETED, TRUNCATED, ended, verdict_of
from tests.rounds.routes import route_of
from tests.rounds.test_ledger import at_once
from tests.rounds.tooling import asking, function_tool, saying, with_tools
from threads.core.faults import Condition, Ending, Verdict
from threads.models import Agent, LanguageModel, Round, Schedule, Thread, ToolRun
from threads.models.schedules import NoTimesError, times, validate_cron
from threads.rounds import engine, schedules

pytestmark = pytest.mark.django_db(transaction=True)

DUE = datetime(2026, 7, 6, 5, 30, tzinfo=UTC)
BERLIN = "Europe/Berlin"


def schedule_now(owner: User, model: LanguageModel | None, **more: Any) -> Schedule:
    """A schedule at 7:30 in Berlin on weekdays, due at that of a Monday in July."""
    values: dict[str, Any] = {"cron": "30 7 * * 1-5", "time_zone": BERLIN}
    values |= {"name": "News", "prompt": "What is new?", "next_at": DUE} | more
    return Schedule.objects.create(owner=owner, model=model, **values)


def run(at: datetime) -> Round:
    """Start what is due, which is one."""
    [round_id] = schedules.start_due(at)
    return Round.objects.get(pk=round_id)


@pytest.mark.parametrize(
    ("cron", "after", "wanted"),
    [
        # The clocks are put forward from 2:00 to 3:00: 2:30 is not shown that day.
        ("30 2 * * *", "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        # They are put back from 3:00 to 2:00: 2:30 is shown twice and comes once.
        ("30 2 * * *", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        # Asked between the two: the first has been, and does not come again.
        ("45 2 * * *", "2026-10-25T01:30", ["2026-10-26T01:45", "2026-10-27T01:45"]),
        # What is not bound to a time of day goes on in both hours.
        ("*/30 * * * *", "2026-10-25T00:10", ["2026-10-25T00:30", "2026-10-25T01:00"]),
        # The same time of day in summer and in winter.
        ("30 7 * * *", "2026-10-24T00:00", ["2026-10-24T05:30", "2026-10-25T06:30"]),
    ],
)
def test_times_of_day_are_those_of_the_time_zone(
    cron: str, after: str, wanted: list[str]
) -> None:
    moments = times(cron, BERLIN, datetime.fromisoformat(after + "Z"))

    found = [next(moments).astimezone(UTC) for _ in wanted]
    assert found == [datetime.fromisoformat(each + "Z") for each in wanted]


@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("30 7 * *", "five fields"),
        ("0 30 7 * * 1-5", "five fields"),
        ("@daily", "five fields"),
        ("60 7 * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 7 32 * *", "day of the month"),
        ("0 7 30 2 *", "day of the month"),
        ("0 7 * 13 *", "month"),
        ("0 7 * * someday", "day of the week"),
        ("0 7 * * 5L/2", "day of the week"),
    ],
)
def test_an_expression_that_cannot_be_is_refused_by_its_field(
    cron: str, why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        validate_cron(cron)


def test_an_unknown_time_zone_has_no_times_and_is_refused(alice: User) -> None:
    for name in ("Mars/Olympus", "Europe", "/etc/passwd", ""):
        with pytest.raises(NoTimesError):
            times("* * * * *", name, DUE)
    schedule = schedule_now(alice, None, time_zone="Mars/Olympus")

    with pytest.raises(ValidationError, match="Europe/Berlin"):
        schedule.full_clean()
    # A row that was spoilt otherwise is left out, and those beside it are not.
    schedule_now(alice, None)
    assert len(schedules.start_due(DUE)) == 1
    schedule.refresh_from_db()
    assert (schedule.skipped, schedule.next_at) == ("times", None)


def test_one_that_breaks_keeps_no_other_from_its_time(
    alice: User, steady: LanguageModel, caplog: pytest.LogCaptureFixture
) -> None:
    def break_off(instance: Thread, **_kwargs: Any) -> None:
        if instance.title == "Broken":
            raise RuntimeError("out of order")

    broken = schedule_now(alice, steady, name="Broken", keeps_thread=True)
    schedule_now(alice, steady)
    post_save.connect(break_off, sender=Thread)
    try:
        assert len(schedules.start_due(DUE)) == 1
    finally:
        post_save.disconnect(break_off, sender=Thread)

    assert f"Schedule {broken.pk} could not be run" in caplog.text
    # Nothing of it was kept: it is due still.
    broken.refresh_from_db()
    assert (broken.next_at, Thread.objects.count()) == (DUE, 1)
    assert len(schedules.start_due(DUE)) == 1


def test_of_two_processes_one_starts_what_is_due(
    alice: User, steady: LanguageModel
) -> None:
    schedule = schedule_now(alice, steady)
    read_before = Schedule.objects.get()
    assert schedules.start_due(DUE - timedelta(seconds=1)) == []

    started = at_once(*[lambda: schedules.start_due(DUE)] * 3)

    round_ = Round.objects.select_related("thread", "user_cell").get()
    assert sorted(started, key=str) == [[round_.pk], [], []]
    assert (round_.attended, round_.model, round_.state) == (False, steady, "queued")
    assert round_.user_cell.text == "What is new?"
    assert (round_.thread.owner, round_.thread.model) == (alice, steady)
    assert round_.thread.title == "News · July 6, 2026, 7:30 a.m."
    schedule.refresh_from_db()
    assert schedule.next_at == DUE + timedelta(days=1)
    assert (schedule.last_round, schedule.last_at) == (round_, DUE)
    assert schedule.skipped == ""
    # Who has read it before and comes late changes nothing.
    ended(round_, COMPLETED)
    assert schedules.claim(read_before, DUE) is None
    assert Round.objects.count() == 1


def test_runs_that_were_missed_are_made_up_for_by_one(
    alice: User, steady: LanguageModel
) -> None:
    schedule = schedule_now(alice, steady)
    friday = DUE + timedelta(days=4, hours=3)

    assert len(schedules.start_due(friday)) == 1
    assert schedules.start_due(friday) == []
    schedule.refresh_from_db()
    assert schedule.next_at == DUE + timedelta(days=7)


@pytest.mark.parametrize("keeps_thread", [True, False])
def test_a_run_that_would_overtake_the_one_before_is_left_out(
    alice: User, steady: LanguageModel, keeps_thread: bool
) -> None:
    schedule = schedule_now(alice, steady, keeps_thread=keeps_thread)
    first = run(DUE)

    assert schedules.start_due(DUE + timedelta(days=1)) == []
    schedule.refresh_from_db()
    assert schedule.skipped == "busy"
    assert schedule.next_at == DUE + timedelta(days=2)
    with pytest.raises(schedules.SkippedError):
        schedules.run_now(schedule)

    ended(first, COMPLETED)
    second = run(DUE + timedelta(days=2))
    schedule.refresh_from_db()
    assert schedule.skipped == ""
    assert (second.thread_id == first.thread_id) is keeps_thread


def test_a_thread_that_its_owner_uses_is_left_to_them_and_a_deleted_one_replaced(
    alice: User, steady: LanguageModel
) -> None:
    schedule = schedule_now(alice, steady, keeps_thread=True)
    first = run(DUE)
    ended(first, COMPLETED)
    talk = open_now(first.thread, steady)

    assert schedules.start_due(DUE + timedelta(days=1)) == []
    ended(talk, COMPLETED)
    Thread.objects.update(deleted_at=DUE)
    second = run(DUE + timedelta(days=2))

    assert second.thread_id != first.thread_id
    schedule.refresh_from_db()
    assert schedule.thread_id == second.thread_id


@pytest.mark.parametrize("why", ["owner", "agent", "route"])
def test_what_cannot_be_run_is_left_out_and_says_why(
    alice: User, steady: LanguageModel, why: str
) -> None:
    agent = Agent.objects.create(slug="a", name="A", is_enabled=why != "agent")
    route = route_of(steady, is_enabled=why != "route")
    alice.is_active = why != "owner"
    alice.save()
    schedule = schedule_now(alice, None, agent=agent, route=route)

    assert schedules.start_due(DUE) == []

    schedule.refresh_from_db()
    assert (schedule.skipped, schedule.failures) == (why, 0)
    assert schedule.next_at == DUE + timedelta(days=1)
    assert not Thread.objects.exists()


def test_what_is_asked_is_the_schedules_then_the_agents_then_the_default(
    alice: User, steady: LanguageModel, practice_url: str
) -> None:
    other = model_now("practice/tools", practice_url)
    LanguageModel.objects.filter(pk=steady.pk).update(is_default=True)
    agent = Agent.objects.create(slug="a", name="A", model=other)
    route = route_of(other, steady)
    schedule_now(alice, steady, agent=agent)
    schedule_now(alice, None, agent=agent)
    schedule_now(alice, None)
    schedule_now(alice, None, route=route)

    schedules.start_due(DUE)

    asked = Round.objects.order_by("pk").values_list("model", "agent", "route")
    assert list(asked) == [
        (steady.pk, agent.pk, None),
        (other.pk, agent.pk, None),
        (steady.pk, None, None),
        (other.pk, None, route.pk),
    ]
    with pytest.raises(ValidationError, match="not both"):
        Schedule(model=steady, route=route).clean()


def fault(condition: Condition) -> Verdict:
    return Verdict("some_code", Ending.FAULTED, condition)


def days(schedule: Schedule, *verdicts: Verdict) -> Schedule:
    """Run once for each, on days that follow, and let a sweep see how they ended."""
    for verdict in verdicts:
        assert schedule.next_at is not None
        ended(run(schedule.next_at), verdict)
        schedules.start_due(schedule.next_at)
        schedule.refresh_from_db()
    return schedule


def test_only_failures_of_its_own_use_up_the_budget(
    alice: User, steady: LanguageModel, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = schedule_now(alice, steady)
    theirs = [fault(Condition(each)) for each in ("provider", "account_key", "unknown")]
    ours = [fault(Condition(each)) for each in ("our_config", "our_bug")]

    days(schedule, *theirs, TRUNCATED)
    assert (schedule.is_enabled, schedule.failures) == (True, 0)
    days(schedule, *ours, COMPLETED)
    assert (schedule.is_enabled, schedule.failures) == (True, 0)
    days(schedule, *ours, *theirs, TRUNCATED)
    assert (schedule.is_enabled, schedule.failures) == (True, 2)
    days(schedule, verdict_of("refused"))
    assert (schedule.is_enabled, schedule.failures) == (False, 3)

    assert schedule.switched_off_at is not None
    assert schedule.next_at is None
    assert "SCHEDULE_SWITCHED_OFF schedule" in caplog.text
    assert schedules.start_due(DUE + timedelta(days=90)) == []
    # By hand it can be tried; enabled, it begins anew.
    ended(schedules.run_now(schedule), fault(Condition.REQUEST))
    schedules.count_ended(timezone.now())
    schedule.refresh_from_db()
    assert (schedule.is_enabled, schedule.failures) == (False, 4)
    schedule.is_enabled = True
    schedule.plan(DUE)
    assert (schedule.failures, schedule.is_enabled) == (0, True)
    assert schedule.next_at == DUE + timedelta(days=1)


@pytest.mark.usefixtures("rounds")
async def test_the_engines_sweep_starts_what_is_due_and_nobody_is_asked(
    alice: User, gateway: FakeGateway
) -> None:
    model = await sync_to_async(model_now)("some/model", gateway.base_url)
    schedule = await sync_to_async(schedule_now)(alice, model)
    gateway.play(
        asking(("send", {"word": "x"}), ("calculator", {"expression": "6*7"})),
        saying("Nothing is new."),
    )
    done = list[str]()
    with with_tools(function_tool("send", done.append, has_effects=True)):
        await asyncio.gather(engine.engine().sweep(), engine.engine().sweep())
        round_ = await Round.objects.aget()
        await engine.wait(round_.pk)

    cell = await cell_of(round_)
    assert (cell.status, cell.text) == ("done", "Nothing is new.")
    states = [run async for run in ToolRun.objects.values_list("name", "state")]
    assert (done, states) == ([], [("send", "not_run"), ("calculator", "ok")])

    # Refused three times by the provider: it goes on.
    for _ in range(3):
        await Schedule.objects.aupdate(next_at=DUE)
        gateway.play(reply(503, {"error": {"message": "Overloaded"}}))
        await engine.engine().sweep()
        round_ = await Round.objects.alatest("pk")
        await engine.wait(round_.pk)
        assert (await cell_of(round_)).condition == "provider"
    await engine.engine().sweep()
    await schedule.arefresh_from_db()
    assert (schedule.is_enabled, schedule.failures) == (True, 0)
    assert await Round.objects.filter(attended=False).acount() == 4
