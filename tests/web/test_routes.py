"""Routes as people choose them, scripts ask them and operators set them up."""

import json
import re
from collections.abc import AsyncIterator
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from tests.conftest import model_now
from tests.fakegateway import FakeGateway
from tests.rounds.routes import MISSING, SAID, route_of, through
from tests.web.asking import path
from tests.web.test_sending import HTMX, last_round, signed_in
from threads import provision
from threads.choices import offered_choices
from threads.models import LanguageModel, Route, RouteStep, Thread
from threads.rounds import engine

pytestmark = [pytest.mark.django_db(transaction=True)]

ROUTE = "route:surely"


@pytest.fixture
async def second() -> AsyncIterator[FakeGateway]:
    async with FakeGateway() as fake:
        yield fake


def options(page: str) -> list[tuple[str, bool, str]]:
    """The options of a page's picker: value, whether it is chosen, words."""
    found = re.findall(r'<option value="([^"]*)"( selected)?>([^<]*)', page)
    return [(value, bool(chosen), words) for value, chosen, words in found]


@pytest.mark.usefixtures("rounds")
async def test_a_route_is_chosen_like_a_model_and_stays_chosen_without_a_script(
    alice: User, gateway: FakeGateway, second: FakeGateway
) -> None:
    gateway.play(MISSING, SAID)
    second.play(SAID)
    models = await through(gateway, second)
    client = await signed_in(alice)

    home = (await client.get("/")).content.decode()
    response = await client.post("/", {"prompt": "Hello", "model": ROUTE, "key": "k"})
    round_ = await last_round()
    await engine.wait(round_.pk)
    page = (await client.get(response["Location"])).content.decode()

    assert options(home) == [
        (str(models[0].pk), True, "vendor/first"),
        (str(models[1].pk), False, "vendor/second"),
        (ROUTE, False, "Surely answered"),
    ]
    assert [value for value, chosen, _ in options(page) if chosen] == [ROUTE]
    assert re.search(r"by\S* dir=\"auto\">vendor/second<", page)
    assert "vendor/first was asked first" in page
    assert f'data-model="{ROUTE}"' in page
    assert f'name="model" value="{ROUTE}"' in page

    # Asked for again, from a page of its own, and by the script's menu.
    again = path("again", round_.answer_cell)
    form = (await client.get(again)).content.decode()
    assert [value for value, chosen, _ in options(form) if chosen] == [ROUTE]
    await client.post(again, {"model": ROUTE, "key": "k2"}, headers=HTMX)
    newer = await last_round()
    await engine.wait(newer.pk)
    assert newer.pk != round_.pk
    assert newer.route_id == round_.route_id
    thread = await Thread.objects.aget()
    assert thread.route_id == round_.route_id

    # A message without a choice is asked of what the thread remembers.
    gateway.play(SAID)
    await client.post(f"/threads/{thread.pk}/send/", {"prompt": "More", "key": "k3"})
    more = await last_round()
    await engine.wait(more.pk)
    assert more.route_id == round_.route_id


@pytest.mark.parametrize("value", ["route:no-such", "route:", "9" * 30, "x", "٣"])
def test_what_is_not_offered_is_refused_by_name(
    alice: User, steady: LanguageModel, value: str
) -> None:
    route_of(steady, is_enabled=False)
    client = Client()
    client.force_login(alice)

    for model in (value, ROUTE):
        response = client.post("/", {"prompt": "Hello", "model": model})
        assert response.status_code == 422
    assert not Thread.objects.exists()


@pytest.mark.parametrize("name", [ROUTE, "surely"])
def test_a_script_asks_a_route_by_its_name(practice_url: str, name: str) -> None:
    steps = ("practice/error-first", "practice/steady")
    route_of(*(model_now(wire_id, practice_url) for wire_id in steps))
    out = StringIO()

    call_command("ask", "Hello", model=name, json=True, stdout=out)

    told = json.loads(out.getvalue())
    assert (told["status"], told["route"]) == ("done", "surely")
    assert [
        (each["model_requested"], each["retry_decision"]) for each in told["calls"]
    ] == [("practice/error-first", "fallback"), ("practice/steady", "none")]


def test_the_practice_route_is_there_once_and_only_while_practice_is(
    settings: Settings,
) -> None:
    def routes() -> list[str]:
        return [each.value for each in offered_choices() if each.route is not None]

    provision.follow_environment()
    RouteStep.objects.filter(position=1).delete()
    provision.follow_environment()

    assert routes() == ["route:practice-second"]
    assert RouteStep.objects.count() == 1
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = "http://127.0.0.1:9/v1", "sk"
    assert routes() == []


def test_an_operator_is_told_of_a_route_that_nobody_can_choose(
    alice: User, steady: LanguageModel
) -> None:
    alice.is_staff = alice.is_superuser = True
    alice.save()
    desk = Client()
    desk.force_login(alice)
    fields = {
        "slug": "surely",
        "name_en": "Surely answered",
        "is_enabled": "on",
        "position": 1,
        "tries": 2,
        "steps-TOTAL_FORMS": 1,
        "steps-INITIAL_FORMS": 0,
        "steps-0-model": steady.pk,
        "steps-0-position": 1,
    }
    told = "Nobody can choose this route"

    fine = desk.post("/admin/threads/route/add/", fields, follow=True)
    LanguageModel.objects.update(is_enabled=False)
    again = fields | {"slug": "other"}
    nobody = desk.post("/admin/threads/route/add/", again, follow=True)
    wrong = desk.post("/admin/threads/route/add/", fields | {"tries": 4})

    assert told not in fine.content.decode()
    assert told in nobody.content.decode()
    assert nobody.content.decode().count("no model: nobody can choose it") == 2
    assert "less than or equal to 3" in wrong.content.decode()
    assert sorted(Route.objects.values_list("slug", flat=True)) == ["other", "surely"]
