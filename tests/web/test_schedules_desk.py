"""The operator's desk for schedules, and for unattended rounds that ended early."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db.models.signals import pre_save
from django.test import Client
from django.utils import timezone

from tests.conftest import model_at
from tests.fakegateway import FakeGateway, reply
from tests.rounds.helpers import answered, cell_of
from tests.rounds.tooling import saying
from tests.web.test_key_desk import desk_of
from tests.web.test_sending import last_round, signed_in
from threads.models import LanguageModel, Round, Schedule, Thread, ToolRun
from threads.rounds import engine

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/threads/schedule/"
ROUNDS = "/admin/threads/round/"
OVERLOADED = reply(503, {"error": {"message": "Overloaded"}})


def words(response: Any) -> str:
    """What a page says, without its marks."""
    return unescape(re.sub("<[^>]*>", " ", response.content.decode()))


def form(by: User, **more: Any) -> dict[str, Any]:
    values = {"name": "News", "owner": by.pk, "prompt": "What\r\nis new?"}
    values |= {"cron": "30 7 * * 1-5", "time_zone": "Europe/Berlin", "locale": "de"}
    return values | {"is_enabled": "on", "most_failures": 3} | more


def test_a_schedule_is_set_up_shown_and_switched_on_again(
    admin_client: Client, alice: User, steady: LanguageModel
) -> None:
    assert admin_client.post(f"{LIST}add/", form(alice)).status_code == 302
    schedule = Schedule.objects.get()
    one = f"{LIST}{schedule.pk}/change/"

    assert (schedule.prompt, schedule.locale) == ("What\nis new?", "de")
    upcoming = schedule.next_times(timezone.now(), 3)
    assert schedule.next_at == upcoming[0]
    page = admin_client.get(one).content.decode()
    assert len(re.findall(r"7:30 a\.m\.<br>", page)) == 3

    # What a sweep writes meanwhile is not written over.
    def sweep(**_kwargs: Any) -> None:
        Schedule.objects.update(failures=2, skipped="busy")

    pre_save.connect(sweep, sender=Schedule)
    try:
        admin_client.post(one, form(alice, name="Old news"))
    finally:
        pre_save.disconnect(sweep, sender=Schedule)
    schedule.refresh_from_db()
    assert (schedule.name, schedule.failures) == ("Old news", 2)
    assert "its last round was still under way" in words(admin_client.get(LIST))

    off = {"is_enabled": False, "next_at": None, "failures": 3}
    Schedule.objects.update(switched_off_at=timezone.now(), **off)
    assert "Switched itself off after 3 failures" in words(admin_client.get(LIST))
    admin_client.post(one, form(alice))
    schedule.refresh_from_db()
    assert (schedule.is_enabled, schedule.failures) == (True, 0)
    assert (schedule.next_at, schedule.switched_off_at) == (upcoming[0], None)
    assert "Switched itself off" not in words(admin_client.get(LIST))
    admin_client.post(one, form(alice) | {"is_enabled": ""})
    assert Schedule.objects.get().next_at is None


def test_what_cannot_be_is_refused_where_it_was_said(
    alice: User, bob: User, steady: LanguageModel
) -> None:
    User.objects.filter(pk=bob.pk).update(is_active=False)
    desk = desk_of(alice, "add_schedule", "view_schedule")

    for more, why in (
        ({"cron": "61 7 * * *"}, "The minute (the first field) cannot be read."),
        ({"cron": "7:30"}, "Give five fields"),
        ({"time_zone": "Mars/Olympus"}, "Select a valid choice"),
        ({"owner": bob.pk}, "Select a valid choice"),
        ({"most_failures": 0}, "greater than or equal to 1"),
        ({"prompt": "x" * 100_001}, "at most 100000 characters"),
    ):
        response = desk.post(f"{LIST}add/", form(alice, **more))
        assert why in words(response)

    assert not Schedule.objects.exists()
    # Who may not change schedules does not run them.
    schedule = Schedule.objects.create(
        owner=alice, name="x", prompt="x", cron="* * * * *"
    )
    desk.post(LIST, {"action": "run_now", "_selected_action": [schedule.pk]})
    assert not Round.objects.exists()
    # And what it asks is not taken from under it.
    Schedule.objects.update(model=steady)
    superuser = User.objects.create_superuser("root")
    desk.force_login(superuser)
    gone = f"/admin/threads/languagemodel/{steady.pk}/delete/"
    assert "protected" in words(desk.post(gone, {"post": "yes"}))
    assert LanguageModel.objects.filter(pk=steady.pk).exists()


@pytest.mark.usefixtures("rounds")
async def test_a_run_by_hand_fails_is_told_of_and_sent_again(
    alice: User, gateway: FakeGateway
) -> None:
    model = await model_at("some/model", gateway.base_url)
    schedule = await Schedule.objects.acreate(
        owner=alice,
        name="News",
        prompt="Hello",
        cron="0 0 1 1 *",
        model=model,
        locale="de",
    )
    root = await sync_to_async(User.objects.create_superuser)("root")
    client = await signed_in(root)
    gateway.play(OVERLOADED)

    run = {"action": "run_now", "_selected_action": [schedule.pk]}
    await client.post(LIST, run)
    failed = await last_round()
    await engine.wait(failed.pk)
    page = await client.get(LIST)
    assert "1 run was started." in words(page)
    assert f'href="{ROUNDS}{failed.pk}/change/"' in page.content.decode()
    assert "some/model has more work at the moment" in words(page)

    # It stands in the list of rounds with those that had a person, who are left out.
    thread = await Thread.objects.acreate(owner=alice)
    attended = (await answered(thread, model)).round
    page = await client.get(f"{ROUNDS}?attended__exact=0&state__exact=error")
    assert f"{ROUNDS}{attended.pk}/change/" not in page.content.decode()
    gateway.play(saying("Good day."))
    both = {"action": "send_again", "_selected_action": [failed.pk, attended.pk]}
    response = await client.post(ROUNDS, both, follow=True)
    assert "1 round was sent again." in words(response)
    assert "1 round was left alone" in words(response)

    newer = await last_round()
    await engine.wait(newer.pk)
    assert (await cell_of(newer)).text == "Good day."
    assert (newer.resubmitted_from_id, newer.thread_id) == (failed.pk, failed.thread_id)
    assert (newer.attended, newer.locale) == (False, "de")
    response = await client.post(ROUNDS, both, follow=True)
    assert "it has been sent again already" in words(response)

    # The owner has it as an ordinary thread.
    owner = await signed_in(alice)
    page = await owner.get(f"/threads/{newer.thread_id}/")
    assert "Good day." in words(page)
    assert "News ·" in words(page)


@pytest.mark.usefixtures("rounds")
async def test_a_round_whose_tools_changed_something_is_sent_after_a_second_word(
    alice: User, gateway: FakeGateway
) -> None:
    model = await model_at("some/model", gateway.base_url)
    gateway.play(OVERLOADED)
    thread = await Thread.objects.acreate(owner=alice, title="News")
    failed = (await answered(thread, model, attended=False)).round
    gateway.play(saying("Good day."))
    await ToolRun.objects.acreate(
        round=failed,
        call=1,
        position=0,
        call_id="c",
        name="send",
        has_effects=True,
        state="ok",
        idempotency_key="k",
        ended_at=timezone.now() - timedelta(seconds=1),
    )
    looks = await sync_to_async(desk_of)(alice, "view_round")
    again = {"action": "send_again", "_selected_action": [failed.pk]}

    await sync_to_async(looks.post)(ROUNDS, again)
    assert await Round.objects.acount() == 1
    root = await sync_to_async(User.objects.create_superuser)("root")
    client = await signed_in(root)
    page = await client.post(ROUNDS, again)
    assert "News: send" in re.sub(r"\s+", " ", words(page))
    assert await Round.objects.acount() == 1
    shown = re.findall(
        r'type="hidden" name="(\w+)" value="(\w+)"', page.content.decode()
    )
    response = await client.post(ROUNDS, dict(shown), follow=True)

    assert "1 round was sent again." in words(response)
    newer = await last_round()
    await engine.wait(newer.pk)
    assert (await cell_of(newer)).text == "Good day."
