"""Leaving a call while it waits for its next attempt: at once, and nothing is left."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest

from tests.fakegateway import FakeGateway, Script, Stall, chunk
from tests.gateway.calling import AGAIN, PATIENT, request_to, until
from tests.gateway.cuts import CUT, SILENT, WHOLE
from threads.core.events import TextDelta
from threads.core.retry import RetryWait
from threads.gateway.calls import AttemptRecord, CallEvent, CallObserver, run_call
from threads.gateway.clients import close_clients

PATIENTLY = replace(AGAIN, waits=(30.0,))


async def left_while_waiting(
    gateway: FakeGateway, script: Script, observer: CallObserver
) -> list[CallEvent]:
    """What a call gave that was left in its wait."""
    events: list[CallEvent] = []

    async def consume() -> None:
        request = request_to(gateway.base_url)
        running = run_call(request, bounds=PATIENT, retry=PATIENTLY, observer=observer)
        async with aclosing(running) as call:
            async for event in call:
                events.append(event)  # noqa: PERF401 - looked at while it grows

    gateway.play(script, WHOLE)
    consumer = asyncio.create_task(consume())
    await until(lambda: any(isinstance(event, AttemptRecord) for event in events))
    assert not consumer.done()
    consumer.cancel()
    # Far less than the wait: who is still there has not heeded the Stop.
    await asyncio.wait({consumer}, timeout=10)
    assert consumer.cancelled()
    return events


@pytest.mark.parametrize("script", [SILENT, CUT], ids=["nothing", "text"])
async def test_a_wait_ends_at_once_and_nothing_more_is_sent(
    gateway: FakeGateway, script: Script
) -> None:
    before = asyncio.all_tasks()

    events = await left_while_waiting(gateway, script, CallObserver())

    assert [type(event) for event in events[-2:]] == [RetryWait, AttemptRecord]
    assert len(gateway.requests) == 1
    await close_clients()
    await until(lambda: gateway.open_connections == 0)
    await until(lambda: asyncio.all_tasks() <= before)


async def test_no_attempt_is_in_flight_while_the_next_is_waited_for(
    gateway: FakeGateway,
) -> None:
    observer = CallObserver()

    events = await left_while_waiting(gateway, CUT, observer)

    assert observer.record() is None
    assert [type(event).__name__ for event in events[-3:]] == [
        "Withdrawn",
        "RetryWait",
        "AttemptRecord",
    ]


async def test_an_attempt_that_was_waited_for_is_recorded_when_it_is_left(
    gateway: FakeGateway,
) -> None:
    observer = CallObserver()
    gateway.play(CUT, Script(chunk(content="Ano"), Stall()))
    running = run_call(
        request_to(gateway.base_url), bounds=PATIENT, retry=AGAIN, observer=observer
    )

    async with aclosing(running) as call:
        async for event in call:
            if event == TextDelta("Ano"):
                break
    record = observer.record()

    assert record is not None
    assert (record.attempt, record.outcome) == (2, "cancelled")
    assert (record.retry_decision, record.retry_reason) == ("none", "stopped")
    assert record.wait_ms >= 5
