"""Leaving a call at any point closes the connection and leaves nothing behind."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from tests.fakegateway import (
    DONE,
    FakeGateway,
    Head,
    Script,
    Stall,
    chunk,
    reply,
)
from tests.gateway.calling import PATIENT, PROMPT, called, request_to, until
from threads.core.events import AttemptStarted, Envelope, ReasoningDelta, TextDelta
from threads.gateway.calls import (
    CallEnded,
    CallEvent,
    CallObserver,
    CallRequest,
    run_call,
)
from threads.gateway.client import Endpoint

HALF = chunk(content="Half")
MID_ANSWER = Script(HALF, Stall())
WAITING = {
    "before the head": Script(Stall()),
    "before the first chunk": Script(Head(), Stall()),
    "mid-answer": MID_ANSWER,
    "mid-event": Script(HALF, b'data: {"cho', Stall()),
    "while thinking": Script(chunk(reasoning="hm"), Stall()),
    "after the finish reason": Script(HALF, chunk(finish="stop"), Stall()),
    "while a refusal is read": Script(Head(), Stall(), status=400),
    "between two tries": reply(429, {}, headers={"retry-after": "60"}),
}


async def consume(call: AsyncGenerator[CallEvent, None]) -> list[CallEvent]:
    async with aclosing(call) as events:
        return [event async for event in events]


@pytest.mark.parametrize("script", WAITING.values(), ids=WAITING)
async def test_cancelling_the_consumer_closes_the_connection_at_once(
    gateway: FakeGateway, script: Script
) -> None:
    gateway.play(script)
    call = run_call(request_to(gateway.base_url), bounds=PATIENT)
    consumer = asyncio.create_task(consume(call))
    await until(lambda: bool(gateway.requests))
    await asyncio.sleep(0.05)  # so that the response is under way, where one comes

    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer

    await until(lambda: gateway.open_connections == 0)
    assert len(gateway.requests) == 1


async def test_closing_the_generator_mid_stream_closes_the_connection_at_once(
    gateway: FakeGateway,
) -> None:
    gateway.play(MID_ANSWER)

    async with aclosing(
        run_call(request_to(gateway.base_url), bounds=PATIENT)
    ) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break

    await until(lambda: gateway.open_connections == 0)


async def test_an_error_of_the_consumer_closes_the_connection_and_stays_itself(
    gateway: FakeGateway,
) -> None:
    gateway.play(MID_ANSWER)

    async def stumble() -> None:
        call = run_call(request_to(gateway.base_url), bounds=PATIENT)
        async with aclosing(call) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        await stumble()

    await until(lambda: gateway.open_connections == 0)


async def test_a_call_left_before_it_was_sent_sends_nothing(
    gateway: FakeGateway,
) -> None:
    gateway.play(MID_ANSWER)
    call = run_call(request_to(gateway.base_url), bounds=PATIENT)

    assert await anext(call) == AttemptStarted(1, 1)
    await call.aclose()

    assert gateway.accepted == 0


async def test_leaving_one_call_leaves_the_others_alone(gateway: FakeGateway) -> None:
    gateway.play(MID_ANSWER)
    request = request_to(gateway.base_url)
    calls = [run_call(request, bounds=PATIENT) for _ in range(3)]
    consumers = [asyncio.create_task(consume(call)) for call in calls]
    await until(lambda: len(gateway.requests) == 3)

    consumers[1].cancel()
    await asyncio.wait([consumers[1]])
    await until(lambda: gateway.open_connections < 3)

    assert [consumer.done() for consumer in consumers] == [False, True, False]
    assert gateway.open_connections == 2
    for consumer in consumers:
        consumer.cancel()
    await asyncio.wait(consumers)


async def test_a_cancelled_attempt_can_be_written_down_as_stopped(
    gateway: FakeGateway,
) -> None:
    gateway.play(Script(chunk(reasoning="hm"), HALF, Stall()))
    observer = CallObserver()
    call = run_call(request_to(gateway.base_url), bounds=PATIENT, observer=observer)

    async with aclosing(call) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    record = observer.record()

    assert record is not None
    assert (record.ending, record.outcome) == ("stopped", "cancelled")
    assert (record.code, record.condition, record.transient) == ("", "", False)
    assert record.stream_state == "partial"
    assert record.model_served == "fake-model"
    assert (record.chunks_received, record.output_committed) == (2, True)
    assert (record.usage_source, record.output_tokens) == ("unknown", None)


async def test_an_observer_has_nothing_to_tell_before_and_after(
    gateway: FakeGateway,
) -> None:
    gateway.play(Script(HALF, chunk(finish="stop"), DONE))
    observer = CallObserver()

    before = observer.record()
    await called(request_to(gateway.base_url), observer=observer)

    assert before is None
    assert observer.record() is None


async def test_a_connection_that_ended_well_is_used_again(
    gateway: FakeGateway,
) -> None:
    gateway.play(Script(HALF, chunk(finish="stop"), DONE))
    request = request_to(gateway.base_url)

    for _ in range(3):
        await called(request)

    assert gateway.accepted == 1


async def test_many_calls_at_once_do_not_mix(gateway: FakeGateway) -> None:
    texts = [f"answer {number}" for number in range(20)]
    gateway.play(*(Script(chunk(content=t), chunk(finish="stop"), DONE) for t in texts))
    request = request_to(gateway.base_url)

    results = await asyncio.gather(*(called(request) for _ in texts))

    assert sorted(result.shown for result in results) == sorted(texts)
    assert all(result.record.chunks_received == 2 for result in results)


async def test_messages_that_cannot_be_sent_are_our_own_bug(
    gateway: FakeGateway,
) -> None:
    request = CallRequest(
        Endpoint(gateway.base_url, "sk-test"),
        "some-model",
        [{"role": "user", "content": PROMPT + "\ud800"}],
    )

    with pytest.raises(UnicodeEncodeError):
        await called(request)

    assert gateway.requests == []


async def test_the_events_of_a_call_keep_the_order_of_the_wire(
    gateway: FakeGateway,
) -> None:
    gateway.play(
        Script(
            chunk(reasoning="hm"), HALF, chunk(reasoning="so"), chunk(content="!"), DONE
        )
    )

    result = await called(request_to(gateway.base_url))

    assert result.events[1:-2] == [
        ReasoningDelta("hm"),
        Envelope("fake-model"),
        TextDelta("Half"),
        ReasoningDelta("so"),
        TextDelta("!"),
    ]
    assert isinstance(result.events[-1], CallEnded)
