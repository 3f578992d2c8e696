"""Keys that a gateway refused are marked, and not tried again for a while."""

import logging

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Reset, Script, chunk, frame, reply
from tests.rounds.helpers import answered, opened
from tests.rounds.keys import (
    NO_CREDIT,
    REJECTED,
    STREAMED,
    VARIABLE,
    WHOLE,
    expire,
    keyed,
)
from threads.models import CallAttempt, Cell, Gateway, KeyHealth, Thread
from threads.rounds import brief
from threads.rounds.database import in_database
from threads.rounds.report import report

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


@pytest.mark.parametrize("script", [REJECTED, STREAMED], ids=["thrown", "streamed"])
async def test_a_rejected_key_is_marked_before_its_round_ends(
    thread: Thread, gateway: FakeGateway, key: str, script: Script
) -> None:
    gateway.play(script)

    cell = await answered(thread, await keyed(gateway))

    row = await KeyHealth.objects.select_related("gateway").aget()
    assert (row.status, row.code, row.count) == ("bad", cell.code, 1)
    assert row.gateway.base_url == gateway.base_url
    assert row.key_variable == VARIABLE
    assert (row.expires_at - row.last_seen_at).total_seconds() == 900
    assert cell.ended_at is not None
    assert row.last_seen_at < cell.ended_at
    attempt = await CallAttempt.objects.aget()
    assert attempt.key_effect == "bad"
    assert row.http_status == attempt.http_status


@pytest.mark.parametrize("script", [REJECTED, STREAMED], ids=["thrown", "streamed"])
async def test_while_a_key_is_marked_a_round_is_refused_and_nothing_is_sent(
    thread: Thread, gateway: FakeGateway, key: str, script: Script
) -> None:
    gateway.play(script, WHOLE)
    model = await keyed(gateway)
    first = await answered(thread, model)

    second = await answered(thread, model)

    assert len(gateway.requests) == 1
    assert (second.status, second.ending) == ("error", "refused")
    assert (second.code, second.condition) == ("http_401", "account_key")
    assert second.sentence_key == "account.key_rejected"
    assert "some/model" in second.sentence
    assert not second.transient
    assert second.provider_reason == first.provider_reason != ""
    assert await CallAttempt.objects.acount() == 1
    told = await in_database(report, second.round)
    assert (told["calls"], told["code"], told["cost"]) == ([], "http_401", None)
    assert told["usage"] == {"input": None, "output": None, "source": "unknown"}


async def test_the_row_holds_the_providers_words_and_not_the_key(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    gateway.play(REJECTED)

    await answered(thread, await keyed(gateway))

    (values,) = [row async for row in KeyHealth.objects.values()]
    assert values["provider_reason"] == "No such key [key]"
    assert key not in repr(values)
    assert len(values["fingerprint"]) == 64


async def test_a_key_limit_marks_the_key(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    gateway.play(reply(403, {"error": {"message": "Key limit exceeded"}}), WHOLE)
    model = await keyed(gateway)
    first = await answered(thread, model)

    second = await answered(thread, model)

    assert (await KeyHealth.objects.aget()).code == first.code == second.code
    assert second.condition == "account_key"
    assert len(gateway.requests) == 1


async def test_a_spent_account_is_shown_to_operators_and_still_asked(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    gateway.play(NO_CREDIT, NO_CREDIT, WHOLE)
    model = await keyed(gateway)
    await answered(thread, model)
    first = await KeyHealth.objects.aget()

    await answered(thread, model)

    row = await KeyHealth.objects.aget()
    assert (row.status, row.code, row.count) == ("exhausted", "quota_exhausted", 2)
    assert row.since == first.since
    assert row.last_seen_at > first.last_seen_at
    assert (await answered(thread, model)).status == "done"
    assert not await KeyHealth.objects.aexists()


async def test_a_limit_of_the_key_itself_is_shown_to_operators_and_it_is_still_asked(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    limit = {"code": 429, "message": "slow down", "metadata": {"limit_source": "key"}}
    gateway.play(Script(frame({"error": limit})))
    model = await keyed(gateway)

    first = await answered(thread, model)
    sent = len(gateway.requests)
    await answered(thread, model)

    row = await KeyHealth.objects.aget()
    assert (row.status, row.code) == ("throttled", first.code)
    assert len(gateway.requests) > sent


NOT_THE_KEY = {
    "a block": reply(403, {"error": {"message": "Request blocked: PII detected"}}),
    "a streamed block": Script(frame({"error": {"code": 403, "message": "blocked"}})),
    "too long": reply(400, {"error": {"code": "context_length_exceeded"}}),
    "no such model": reply(404, {"error": {"message": "No such model"}}),
    "settings": reply(400, {"error": {"code": "unsupported_parameter"}}),
    "a 403 that says nothing": reply(403, {"error": {"message": "Forbidden"}}),
    "a rate limit": Script(frame({"error": {"code": 429, "message": "slow down"}})),
    "overload": Script(frame({"error": {"code": 503, "message": "overloaded"}})),
    "a streamed 5xx": Script(frame({"error": {"code": 502, "message": "bad key"}})),
    "a reset": Script(chunk(content="Half"), Reset()),
    "a cut": Script(chunk(content="Half")),
    "a page": Script("<p>401 invalid api key", headers={"content-type": "text/html"}),
    "an empty answer": Script(chunk(finish="stop"), DONE),
}


@pytest.mark.parametrize("script", NOT_THE_KEY.values(), ids=NOT_THE_KEY)
async def test_what_is_not_about_the_key_never_marks_it(
    thread: Thread, gateway: FakeGateway, key: str, script: Script
) -> None:
    gateway.play(script)

    cell = await answered(thread, await keyed(gateway))

    assert cell.status == "error"
    assert not await KeyHealth.objects.aexists()


async def test_an_unreachable_gateway_never_marks_the_key(
    thread: Thread, key: str
) -> None:
    model = await model_at("some/model", "http://127.0.0.1:1/v1")
    await Gateway.objects.aupdate(key_variable=VARIABLE)

    cell = await answered(thread, model)

    assert cell.code == "connect_failed"
    assert not await KeyHealth.objects.aexists()


async def test_looking_a_key_up_costs_a_round_one_query(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    model = await keyed(gateway)
    round_ = await opened(thread, model)

    def queries() -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            brief.read(round_.pk)
        return [query["sql"] for query in captured.captured_queries]

    with_key = await sync_to_async(queries)()
    await Gateway.objects.aupdate(key_variable="")
    without = await sync_to_async(queries)()

    assert len(with_key) == len(without) + 1
    assert sum("keyhealth" in sql for sql in with_key) == 1
    assert sum("keyhealth" in sql for sql in without) == 0


async def test_marks_refusals_and_proofs_are_logged_without_content(
    thread: Thread,
    gateway: FakeGateway,
    key: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="threads")
    gateway.play(REJECTED, WHOLE)
    model = await keyed(gateway)
    await answered(thread, model)
    await answered(thread, model)
    await expire()
    await answered(thread, model)

    slug = model.gateway.slug
    lines = [record.getMessage() for record in caplog.records]
    said = [line for line in lines if line.startswith("KEY_")]
    assert said == [
        f"KEY_REJECTED gateway={slug} model=some/model code=http_401 status=401",
        f"KEY_REJECTED gateway={slug} model=some/model code=http_401 status=401 sent=no",
        f"KEY_CLEARED gateway={slug} by=call",
    ]
    assert key not in caplog.text


async def test_a_deleted_gateway_takes_what_was_said_of_its_keys_along(
    thread: Thread, gateway: FakeGateway, key: str, alice: User
) -> None:
    gateway.play(REJECTED)
    await answered(thread, await keyed(gateway))

    await Gateway.objects.all().adelete()

    assert not await KeyHealth.objects.aexists()
    assert await Cell.objects.filter(thread__owner=alice).acount() == 2
