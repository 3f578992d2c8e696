"""A mistake of ours ends a round like any other condition: named, text kept."""

import pytest

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Script, Stall, chunk
from tests.rounds.helpers import answered, ask, cell_of, until
from threads.models import Gateway, LanguageModel, Round, Thread
from threads.rounds import engine

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


async def test_a_mistake_in_our_settings_ends_the_round_with_an_incident_number(
    thread: Thread,
    steady: LanguageModel,
    settings: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.CHAT_ROUND_CAP_SECONDS = "soon"  # type: ignore[attr-defined]

    cell = await answered(thread, steady, "A secret question")

    assert (cell.status, cell.code) == ("error", "internal_error")
    incident = cell.sentence_params["incident"]
    assert incident in cell.sentence
    assert f"INTERNAL_ERROR incident={incident}" in caplog.text
    assert "Traceback" in caplog.text
    assert "Traceback" not in cell.sentence + cell.text
    assert "secret" not in caplog.text


async def test_a_gateway_whose_address_makes_no_sense_is_a_named_condition(
    thread: Thread,
) -> None:
    model = await model_at("some/model", "http://[::1")
    await Gateway.objects.filter(pk=model.gateway_id).aupdate(
        base_url="http://localhost:notaport/v1"
    )

    cell = await answered(thread, model)

    assert cell.status == "error"
    assert cell.sentence


async def test_a_thread_that_is_deleted_during_its_round_does_no_harm(
    thread: Thread, gateway: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.play(Script(chunk(content="Half"), Stall()))
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    await until(lambda: gateway.requests)

    await Round.objects.filter(pk=round_.pk).adelete()
    await gateway.requests[0].wait_closed(within_seconds=10)
    await engine.wait(round_.pk)

    assert "Traceback" not in caplog.text


async def test_a_round_starts_once_however_often_it_is_started(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(Script(chunk(content="Once"), chunk(finish="stop"), DONE))
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))

    await engine.start(round_.pk)
    await engine.start(round_.pk)
    await engine.wait(round_.pk)
    await engine.start(round_.pk)
    await engine.wait(round_.pk)

    assert len(gateway.requests) == 1
    assert (await cell_of(round_)).text == "Once"
