"""A mark on a key goes on proof, or with time, and by nothing else."""

from dataclasses import replace
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async

from tests.fakegateway import FakeGateway, Reset, Script, chunk, frame, reply
from tests.gateway.calling import Called, called, request_to
from tests.rounds.helpers import answered, opened
from tests.rounds.keys import NO_CREDIT, REJECTED, WHOLE, expire, keyed
from tests.rounds.test_ledger import at_once
from threads.models import KeyHealth, Thread
from threads.rounds import brief, ledger
from threads.rounds.database import in_database

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


async def test_an_expired_mark_lets_the_next_call_through_and_its_answer_clears_it(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    gateway.play(REJECTED, WHOLE)
    model = await keyed(gateway)
    await answered(thread, model)
    await expire()

    cell = await answered(thread, model)

    assert cell.status == "done"
    assert not await KeyHealth.objects.aexists()


async def test_a_fresh_refusal_renews_an_expired_mark(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    gateway.play(REJECTED, REJECTED, WHOLE)
    model = await keyed(gateway)
    await answered(thread, model)
    await expire()
    expired = await KeyHealth.objects.aget()

    await answered(thread, model)
    third = await answered(thread, model)

    row = await KeyHealth.objects.aget()
    assert (row.count, row.since) == (2, expired.since)
    assert row.expires_at > expired.expires_at
    assert (third.code, len(gateway.requests)) == ("http_401", 2)


@pytest.mark.parametrize(
    "script",
    [
        Script(Reset(), framing="raw"),
        Script(chunk(content="Half"), Reset()),
        reply(400, {"error": {"message": "bad"}}),
        Script(frame({"error": {"code": 502}})),
    ],
    ids=["reset", "reset after text", "refusal", "fault"],
)
async def test_a_call_that_does_not_complete_proves_nothing(
    thread: Thread, gateway: FakeGateway, key: str, script: Script
) -> None:
    gateway.play(REJECTED, script)
    model = await keyed(gateway)
    await answered(thread, model)
    await expire()

    cell = await answered(thread, model)

    assert cell.status == "error"
    assert (await KeyHealth.objects.aget()).status == "bad"


async def recorded(gateway: FakeGateway, script: Script) -> Called:
    """Make a call of its own and keep what it recorded."""
    gateway.play(script)
    return await called(request_to(gateway.base_url))


async def test_a_call_that_began_before_the_mark_does_not_clear_it(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    gateway.play(REJECTED)
    model = await keyed(gateway)
    round_ = (await answered(thread, model)).round
    marked_at = (await KeyHealth.objects.aget()).last_seen_at
    used = await in_database(brief.read, round_.pk)
    assert used.problem is not None
    assert used.key is not None
    record = (await recorded(gateway, WHOLE)).record

    earlier = replace(record, call=2, started_at=marked_at - timedelta(seconds=1))
    await in_database(ledger.record_attempt, round_.pk, earlier, key=used.key)
    assert await KeyHealth.objects.acount() == 1

    later = replace(record, call=3, started_at=marked_at + timedelta(seconds=1))
    await in_database(ledger.record_attempt, round_.pk, later, key=used.key)
    assert await KeyHealth.objects.acount() == 0


async def test_a_milder_word_does_not_lift_a_refusal(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    gateway.play(REJECTED)
    model = await keyed(gateway)
    round_ = (await answered(thread, model)).round
    used = await in_database(brief.read, round_.pk)
    assert used.key is not None
    record = (await recorded(gateway, NO_CREDIT)).record

    for call, effect in enumerate(("exhausted", "throttled"), 2):
        said = replace(record, call=call, key_effect=effect)
        await in_database(ledger.record_attempt, round_.pk, said, key=used.key)

    statuses = {row.status async for row in KeyHealth.objects.all()}
    assert statuses == {"bad", "exhausted", "throttled"}
    assert (await answered(thread, model)).code == "http_401"


async def test_marks_set_at_the_same_moment_are_one_row(
    thread: Thread, gateway: FakeGateway, key: str
) -> None:
    model = await keyed(gateway)
    round_ = await opened(thread, model)
    used = await in_database(brief.read, round_.pk)
    assert used.key is not None
    mark = used.key
    record = (await recorded(gateway, REJECTED)).record

    results = await sync_to_async(at_once)(
        *[
            lambda call=call: ledger.record_attempt(
                round_.pk, replace(record, call=call), key=mark
            )
            for call in range(1, 5)
        ]
    )

    assert results == [None] * 4
    assert (await KeyHealth.objects.aget()).count == 4
