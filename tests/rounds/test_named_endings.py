"""Rounds that end by our own rules, and models that answer for another, by name."""

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Script, Stall, chunk, frame
from tests.rounds.helpers import answered, opened
from tests.rounds.spoiling import spoil
from threads.models import CallAttempt, Cell, LanguageModel, Round, Thread
from threads.rounds import engine
from threads.rounds.progress import Progress
from threads.rounds.runner import cap_verdict
from threads.sentences import sentence_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


async def test_a_site_without_any_model_says_so(thread: Thread) -> None:
    cell = await answered(thread, None, model_requested="")

    assert (cell.status, cell.ending, cell.code) == ("error", "refused", "no_model")
    assert (cell.condition, cell.transient) == ("our_config", False)
    assert cell.sentence_key == "config.no_model"
    assert "No model is set up" in cell.sentence
    assert await CallAttempt.objects.acount() == 0


async def test_the_last_model_switched_off_leaves_a_site_without_any(
    thread: Thread, gateway: FakeGateway
) -> None:
    model = await model_at("some/model", gateway.base_url)
    await LanguageModel.objects.aupdate(is_enabled=False)

    assert (await answered(thread, model)).code == "no_model"
    assert gateway.accepted == 0


async def test_a_gateway_that_lists_no_model_is_not_asked_for_a_nameless_one(
    thread: Thread, gateway: FakeGateway
) -> None:
    await model_at("some/model", gateway.base_url)
    await LanguageModel.objects.all().adelete()

    assert (await answered(thread, None, model_requested="")).code == "no_model"
    assert gateway.accepted == 0


async def test_a_conversation_with_a_hole_in_it_is_not_answered(
    thread: Thread, gateway: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.play(Script(chunk(content="Good day."), chunk(finish="stop"), DONE))
    model = await model_at("some/model", gateway.base_url)
    first = await answered(thread, model, "My secret is 4711")
    round_ = await opened(thread, model, "What is my secret?")
    await sync_to_async(spoil)(first, "My secret is 4711")

    await engine.start(round_.pk)
    await engine.wait(round_.pk)

    fields = ("status", "ending", "code", "condition", "sentence_key", "sentence")
    answers = Cell.objects.filter(pk=round_.answer_cell_id)
    status, *ended, key, sentence = await answers.values_list(*fields).aget()
    assert (status, *ended) == (
        *("error", "interrupted", "history_unreadable", "our_bug"),
    )
    assert key == "round.history"
    assert "some/model was not asked" in sentence
    assert len(gateway.requests) == 1
    assert (await Round.objects.aget(pk=round_.pk)).state == "error"
    assert f"HISTORY_UNREADABLE round={round_.pk}" in caplog.text
    assert "4711" not in caplog.text


@pytest.mark.parametrize(
    ("seconds", "minutes"),
    [(1800, "30"), (60, "1"), (1, "1"), (100, "2"), (3600.0, "60")],
)
def test_the_cap_is_told_in_whole_minutes(seconds: float, minutes: str) -> None:
    for progress in (
        Progress(),
        Progress(has_answered=True),
        Progress(is_reasoning=True),
        Progress(tools=["calculator"]),
    ):
        assert cap_verdict(progress, seconds).params["minutes"] == minutes


async def test_the_caps_sentence_names_its_minutes_and_keeps_the_request_id(
    thread: Thread, gateway: FakeGateway, settings: Settings
) -> None:
    settings.CHAT_ROUND_CAP_SECONDS = "2"
    head = {"content-type": "text/event-stream", "x-request-id": "req-1"}
    gateway.play(Script(chunk(content="Half"), Stall(), headers=head))

    cell = await answered(thread, await model_at("some/model", gateway.base_url))

    assert (cell.code, cell.text, cell.request_id) == ("round_cap", "Half", "req-1")
    assert "maximum round duration of 1 minutes" in cell.sentence


FAULT = frame({"error": {"code": 502, "message": "upstream failed"}, "model": "b"})


async def test_a_failed_answer_of_another_model_names_both_in_every_language(
    thread: Thread, gateway: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.play(Script(chunk(content="Half", model="vendor/other-model"), FAULT))

    cell = await answered(
        thread, await model_at("vendor/model", gateway.base_url), locale="de"
    )

    assert cell.round.model_requested == "vendor/model"
    assert cell.round.model_served == "vendor/other-model"
    assert cell.sentence_params["served"] == "vendor/other-model"
    for locale in ("de", "en"):
        shown = await sync_to_async(sentence_for)(cell, locale)
        assert shown.count("vendor/other-model") == 1
    assert await sync_to_async(sentence_for)(cell, "de") == cell.sentence
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if line.startswith("MODEL_SUBSTITUTED")] == [
        "MODEL_SUBSTITUTED requested=vendor/model served=vendor/other-model "
        f"round={cell.round.pk}"
    ]


async def test_a_whole_answer_of_another_model_is_logged_and_has_no_sentence(
    thread: Thread, gateway: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    whole = (chunk(content="Hi", model="other"), chunk(finish="stop", model="other"))
    gateway.play(Script(*whole, DONE))

    cell = await answered(thread, await model_at("model", gateway.base_url))

    assert (cell.status, cell.sentence, cell.sentence_params) == ("done", "", {})
    assert caplog.text.count("MODEL_SUBSTITUTED requested=model served=other") == 1


async def test_a_dated_snapshot_is_the_model_that_was_asked_for(
    thread: Thread, gateway: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.play(Script(chunk(content="Half", model="gpt-5-2026-01-01"), FAULT))

    cell = await answered(thread, await model_at("openai/gpt-5", gateway.base_url))

    assert "served" not in cell.sentence_params
    assert "MODEL_SUBSTITUTED" not in caplog.text
