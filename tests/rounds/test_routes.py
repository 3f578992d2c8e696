"""Rounds along a route: who is asked, who is passed over, and what the ledger names."""

import logging
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
from asgiref.sync import sync_to_async

from tests.fakegateway import DONE, FakeGateway, Head, Script, Stall, chunk, reply
from tests.rounds.helpers import ask, cell_of, until
from tests.rounds.keys import REJECTED, VARIABLE
from tests.rounds.routes import MISSING, SAID, asked_along, through
from tests.rounds.tooling import asking, function_tool, saying, with_tools
from threads.models import (
    CallAttempt,
    Cell,
    Gateway,
    LanguageModel,
    Round,
    Route,
    Thread,
)
from threads.rounds import engine, resubmit
from threads.rounds.database import in_database
from threads.rounds.report import report
from threads.templatetags.chat import asked_first

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]

SILENT = Script(Head())


@pytest.fixture
async def second() -> AsyncIterator[FakeGateway]:
    async with FakeGateway() as fake:
        yield fake


async def told(cell: Cell) -> tuple[str, str, str]:
    """The model that is said to have answered, the first one asked, and its name."""
    round_ = await Round.objects.select_related("model", "route").aget(answer_cell=cell)
    cell.round = round_
    assert round_.model is not None
    first = await sync_to_async(asked_first)(cell)
    return round_.model.wire_id, round_.model_requested, first


async def test_the_next_model_answers_and_ledger_report_and_cell_name_both(
    thread: Thread,
    gateway: FakeGateway,
    second: FakeGateway,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway.play(MISSING)
    second.play(SAID)
    models = await through(gateway, second)
    await LanguageModel.objects.filter(pk=models[0].pk).aupdate(name="The first")

    with caplog.at_level(logging.WARNING, logger="threads"):
        cell = await asked_along(thread)

    assert (cell.status, cell.text) == ("done", "Good day.")
    assert await told(cell) == ("vendor/second", "vendor/first", "The first")
    outcome = await in_database(report, cell.round)
    assert (outcome["route"], outcome["model_requested"], outcome["model_served"]) == (
        "surely",
        "vendor/first",
        "vendor/second-2026-01-05",
    )
    calls = outcome["calls"]
    assert isinstance(calls, list)
    assert [
        (each["attempt"], each["model_requested"], each["retry_decision"])
        for each in calls
    ] == [(1, "vendor/first", "fallback"), (2, "vendor/second", "none")]
    assert calls[0]["retry_reason"] == "not_transient"
    # It was asked for, so it took nobody's place.
    assert "MODEL_SUBSTITUTED" not in caplog.text


async def test_each_attempt_costs_what_its_own_model_costs(
    thread: Thread, gateway: FakeGateway, second: FakeGateway
) -> None:
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
    gateway.play(Script(chunk(usage=usage, model="vendor/first")))
    whole = chunk(content="Hi", usage=usage, model="vendor/second")
    second.play(Script(whole, chunk(finish="stop"), DONE))
    models = await through(gateway, second)
    for price, model in enumerate(models, 1):
        await LanguageModel.objects.filter(pk=model.pk).aupdate(
            input_price=price, output_price=0
        )

    await asked_along(thread)

    costs = CallAttempt.objects.order_by("attempt").values_list("cost", flat=True)
    assert [cost async for cost in costs] == [Decimal(1), Decimal(2)]


async def test_when_all_of_them_fail_the_last_one_is_named_and_a_substitute_once(
    thread: Thread,
    gateway: FakeGateway,
    second: FakeGateway,
    caplog: pytest.LogCaptureFixture,
) -> None:
    half = Script(chunk(content="Half a sen", model="another/thing"))
    gateway.play(SILENT)
    second.play(half)
    await through(gateway, second)

    with caplog.at_level(logging.WARNING, logger="threads"):
        cell = await asked_along(thread)

    assert (cell.status, cell.text) == ("error", "Half a sen")
    assert (await told(cell))[:2] == ("vendor/second", "vendor/first")
    assert "another/thing in place of vendor/second" in cell.sentence
    assert caplog.text.count("MODEL_SUBSTITUTED requested=vendor/second") == 1


async def test_a_model_that_has_answered_goes_on_alone_with_its_tools(
    thread: Thread, gateway: FakeGateway, second: FakeGateway
) -> None:
    gateway.play(SILENT)
    async with FakeGateway() as third:
        second.play(asking(("word", {"word": "x"})), saying("Done."))
        await through(gateway, second, third)
        with with_tools(function_tool("word", lambda word: word)):
            whole = await asked_along(thread)
            gateway.play(SILENT)
            second.play(asking(("word", {"word": "x"})), SILENT)
            failed = await asked_along(thread)

        assert (whole.text, failed.status, failed.code) == (
            "Done.",
            "error",
            "truncated",
        )
        assert (len(gateway.requests), len(second.requests)) == (2, 4)
        assert third.requests == []
    rows = CallAttempt.objects.filter(round=failed.round).order_by("call", "attempt")
    assert [(r.call, r.attempt, r.retry_decision) async for r in rows] == [
        (1, 1, "fallback"),
        (1, 2, "none"),
        (2, 1, "none"),
    ]


async def test_a_key_that_is_known_to_be_bad_is_passed_over_before_sending(
    thread: Thread, gateway: FakeGateway, second: FakeGateway, key: str
) -> None:
    gateway.play(REJECTED)
    second.play(SAID, SAID, REJECTED)
    models = await through(gateway, second)
    await Gateway.objects.aupdate(key_variable=VARIABLE)

    first, after = await asked_along(thread), await asked_along(thread)
    last, none = await asked_along(thread), await asked_along(thread)

    assert (first.status, after.status) == ("done", "done")
    assert (len(gateway.requests), len(second.requests)) == (1, 3)
    assert await told(first) == ("vendor/second", "vendor/first", "vendor/first")
    assert await told(after) == ("vendor/second", "vendor/second", "")
    # With no key left that is not known to be bad, the first one's is spoken of.
    assert (last.code, none.code) == ("http_401", "http_401")
    assert "vendor/first" in none.sentence
    assert not await CallAttempt.objects.filter(round=none.round).aexists()
    assert models[0].wire_id == none.round.model_requested


async def test_a_model_that_is_not_offered_is_no_step(
    thread: Thread, gateway: FakeGateway, second: FakeGateway
) -> None:
    second.play(SAID)
    models = await through(gateway, second)
    await LanguageModel.objects.filter(pk=models[0].pk).aupdate(is_enabled=False)

    cell = await asked_along(thread)

    assert await told(cell) == ("vendor/second", "vendor/second", "")
    assert gateway.requests == []


async def test_a_stop_ends_the_route_where_it_is(
    thread: Thread, gateway: FakeGateway, second: FakeGateway
) -> None:
    gateway.play(SILENT)
    second.play(Script(Head(), Stall()))
    models = await through(gateway, second, second)
    route = await Route.objects.aget()

    round_ = await ask(thread, models[0], route=route)
    await until(lambda: second.requests)
    await engine.stop(round_.pk)
    await engine.wait(round_.pk)

    cell = await cell_of(round_)
    assert (cell.status, len(second.requests)) == ("stopped", 1)
    assert (await told(cell))[:2] == ("vendor/second", "vendor/first")


async def test_a_blocked_message_is_not_carried_to_another_model(
    thread: Thread, gateway: FakeGateway, second: FakeGateway
) -> None:
    gateway.play(reply(400, {"error": {"code": "content_filter"}}))
    await through(gateway, second)

    cell = await asked_along(thread)

    assert (cell.status, cell.ending) == ("error", "blocked")
    assert second.requests == []


async def test_asking_again_goes_along_the_route_from_its_beginning(
    thread: Thread, gateway: FakeGateway, second: FakeGateway
) -> None:
    gateway.play(MISSING, SAID)
    second.play(SAID)
    await through(gateway, second)
    cell = await asked_along(thread)

    def again(**chosen: object) -> Round:
        return resubmit.resubmit(
            Cell.objects.get(round=Round.objects.latest("pk")),
            by=None,
            locale="en",
            attended=True,
            **chosen,  # type: ignore[arg-type]
        )

    round_ = await in_database(again, submission_key="k")
    same = await in_database(
        resubmit.resubmit, cell, by=None, locale="en", attended=True, submission_key="k"
    )
    await engine.start(round_.pk)
    await engine.wait(round_.pk)

    newer = await cell_of(round_)
    assert same.pk == round_.pk
    assert (newer.text, newer.round.route_id) == ("Good day.", cell.round.route_id)
    assert await told(newer) == ("vendor/first", "vendor/first", "")

    second.play(SAID)
    model = await LanguageModel.objects.select_related("gateway").alatest("pk")
    plain = await in_database(again, model=model)
    await engine.start(plain.pk)
    await engine.wait(plain.pk)
    await thread.arefresh_from_db()
    assert (plain.route_id, plain.model_id) == (None, model.pk)
    assert (thread.route_id, thread.model_id) == (None, model.pk)


async def test_a_route_that_is_switched_off_is_not_asked_again(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(SILENT)
    await through(gateway)
    cell = await asked_along(thread)

    await Route.objects.aupdate(is_enabled=False)
    with pytest.raises(resubmit.ModelNotOfferedError):
        await in_database(resubmit.resubmit, cell, by=None, locale="en", attended=True)
    assert await Round.objects.acount() == 1
