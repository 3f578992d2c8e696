"""After silence or a break nothing goes over a connection that lay in the pool (A19)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from tests.fakegateway import DONE, FakeGateway, Pause, Reset, Script, Stall, chunk
from tests.gateway.calling import AGAIN, PATIENT, called, request_to, until
from tests.gateway.cuts import CUT, HALF, HURRIED, WHOLE, ending, recovered
from tests.rounds.drivengateway import DrivenGateway
from threads.core.events import TextDelta
from threads.gateway.calls import CallEnded, run_call
from threads.gateway.clients import close_clients

SLOW = Script(chunk(content="All"), Pause(0.1), chunk(finish="stop"), DONE)


def connections(gateway: FakeGateway) -> list[int]:
    """The connection over which each request came."""
    return [request.connection_id for request in gateway.requests]


async def two_idle_connections(gateway: FakeGateway) -> None:
    """Leave two connections in the pool, ready for the next requests."""
    gateway.play(SLOW)
    await asyncio.gather(*(called(request_to(gateway.base_url)) for _ in range(2)))
    assert sorted(connections(gateway)) == [1, 2]
    gateway.requests.clear()


async def test_a_good_answer_leaves_its_connection_to_the_next_call(
    gateway: FakeGateway,
) -> None:
    await recovered(gateway, WHOLE)
    await recovered(gateway, WHOLE)

    assert connections(gateway) == [1, 1]


@pytest.mark.parametrize("end", ["end", "close", "reset", "half a chunk", "silence"])
@pytest.mark.parametrize("came", [(), (HALF,)], ids=["nothing", "text"])
async def test_the_next_attempt_after_a_break_or_silence_opens_a_new_connection(
    gateway: FakeGateway, end: str, came: tuple[bytes, ...]
) -> None:
    await two_idle_connections(gateway)
    gateway.play(ending(end, *came), WHOLE)

    request = request_to(gateway.base_url)
    bounds = HURRIED if end == "silence" else PATIENT
    result = await called(request, bounds=bounds, retry=AGAIN)

    assert result.ended.text == "All of it"
    broken, fresh = connections(gateway)
    assert broken in (1, 2)
    assert fresh == 3


async def test_the_last_attempt_leaves_no_doubtful_connection_either(
    gateway: FakeGateway,
) -> None:
    await two_idle_connections(gateway)

    await called_once(gateway, CUT)
    await called_once(gateway, WHOLE)

    assert connections(gateway)[1] == 3


async def called_once(gateway: FakeGateway, script: Script) -> None:
    gateway.play(script)
    await called(request_to(gateway.base_url))


async def test_an_error_that_the_gateway_tells_of_says_nothing_of_its_connections(
    gateway: FakeGateway,
) -> None:
    await two_idle_connections(gateway)

    result = await recovered(gateway, ending("429"), WHOLE)

    assert result.ended.text == "All of it"
    assert set(connections(gateway)) == {1, 2}


async def test_a_client_that_nobody_uses_any_more_is_closed(
    gateway: FakeGateway,
) -> None:
    await two_idle_connections(gateway)

    await recovered(gateway, CUT, WHOLE)

    await until(lambda: gateway.open_connections == 1)
    await close_clients()
    await until(lambda: gateway.open_connections == 0)


@pytest.fixture
async def driven() -> AsyncIterator[DrivenGateway]:
    """A gateway that does nothing unasked."""
    driven = DrivenGateway()
    await driven.start()
    yield driven
    await close_clients()
    await driven.close()


async def test_whoever_uses_a_client_goes_on_when_another_call_of_it_breaks(
    driven: DrivenGateway,
) -> None:
    request = request_to(driven.base_url)
    undisturbed = asyncio.create_task(called(request, retry=AGAIN))
    await until(lambda: len(driven.exchanges) == 1)
    driven.exchanges[0].send(chunk(content="Still "))
    broken = asyncio.create_task(called(request, retry=AGAIN))
    await until(lambda: len(driven.exchanges) == 2)

    driven.exchanges[1].send(chunk(content="Half"))
    driven.exchanges[1].drop()
    await until(lambda: len(driven.exchanges) == 3)
    answer = (chunk(content="here"), chunk(finish="stop"), DONE)
    for exchange in (driven.exchanges[2], driven.exchanges[0]):
        exchange.send(*answer)
        exchange.end()

    assert (await broken).ended.text == "here"
    assert (await undisturbed).ended.text == "Still here"
    assert len({each.connection_id for each in driven.exchanges}) == 3
    # The old client was closed by its last user.
    await until(lambda: len(driven.connections) == 1)


async def test_clients_that_are_retired_while_they_are_used_are_closed_at_the_end(
    gateway: FakeGateway,
) -> None:
    gateway.play(Script(HALF, Stall()))
    running = run_call(request_to(gateway.base_url), bounds=PATIENT)
    async with aclosing(running) as call:
        async for event in call:
            if isinstance(event, TextDelta):
                break
        gateway.play(Script(Reset()), Script(HALF, Reset()))
        await called(request_to(gateway.base_url))
        await close_clients()

        rest = [event async for event in call]

    ended = rest[-1]
    assert isinstance(ended, CallEnded)
    assert ended.text == "Half an ans"
    await until(lambda: gateway.open_connections == 0)
