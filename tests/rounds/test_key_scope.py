"""What a mark is about: one key, at one gateway, for one model."""

import pytest
from pytest_django import Settings

from tests.canaries import KEY
from tests.conftest import model_at
from tests.fakegateway import FakeGateway
from tests.rounds.helpers import answered
from tests.rounds.keys import REJECTED, STREAMED, VARIABLE, WHOLE, keyed
from threads.models import Gateway, KeyHealth, Thread

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


async def test_another_model_of_the_same_key_is_asked_and_has_a_mark_of_its_own(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    gateway.play(REJECTED, STREAMED, WHOLE)
    await answered(thread, await keyed(gateway))
    other = await model_at("other/model", gateway.base_url)

    await answered(thread, other)
    await answered(thread, other)

    assert len(gateway.requests) == 2
    marked = {row.model async for row in KeyHealth.objects.filter(status="bad")}
    assert marked == {"some/model", "other/model"}


async def test_an_answer_of_another_model_proves_the_key_too(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    gateway.play(REJECTED, WHOLE)
    model = await keyed(gateway)
    await answered(thread, model)

    await answered(thread, await model_at("other/model", gateway.base_url))

    assert not await KeyHealth.objects.aexists()
    assert (await answered(thread, model)).status == "done"


async def test_one_gateways_word_says_nothing_of_another_gateway(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    gateway.play(REJECTED)
    await answered(thread, await keyed(gateway))
    async with FakeGateway() as other:
        other.play(WHOLE)
        model = await model_at("some/model", other.base_url)
        await Gateway.objects.aupdate(key_variable=VARIABLE)

        cell = await answered(thread, model)

    assert cell.status == "done"
    assert await KeyHealth.objects.acount() == 1


async def test_a_changed_key_is_tried_at_once(
    thread: Thread, gateway: FakeGateway, key: str, settings: Settings
) -> None:
    gateway.play(REJECTED, WHOLE)
    model = await keyed(gateway)
    await answered(thread, model)
    settings.SOME_KEY = "sk-another-1"

    cell = await answered(thread, model)

    assert cell.status == "done"
    assert gateway.requests[-1].headers["authorization"] == "Bearer sk-another-1"


async def test_without_a_key_there_is_nothing_to_mark(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(REJECTED, WHOLE)
    model = await keyed(gateway, variable="")

    refused = await answered(thread, model)
    assert refused.code == "http_401"
    assert not await KeyHealth.objects.aexists()
    assert (await answered(thread, model)).status == "done"


async def test_a_public_host_is_not_asked_without_a_key(
    thread: Thread, gateway: FakeGateway, settings: Settings
) -> None:
    gateway.play(WHOLE)
    # An address of this machine that does not look like one.
    public = gateway.base_url.replace("127.0.0.1", "127.1")
    model = await model_at("some/model", public)
    await Gateway.objects.aupdate(key_variable=VARIABLE)

    cell = await answered(thread, model)

    assert (cell.code, cell.condition) == ("missing_key", "our_config")
    assert (len(gateway.requests), gateway.accepted) == (0, 0)

    setattr(settings, VARIABLE, KEY)
    assert (await answered(thread, model)).status == "done"
    assert len(gateway.requests) == 1
