"""The fake gateway does on the wire what its scripts say."""

import asyncio
import socket
import struct

import httpx2
import pytest

from tests.fakegateway import (
    DONE,
    Close,
    FakeGateway,
    Head,
    Pause,
    Reset,
    Script,
    Stall,
    chunk,
    reply,
    tool_call,
)
from tests.loopback import loopback_client
from tests.virtualtime import VirtualTimeLoop

BODY = {"model": "fake-model", "messages": []}
HALF = chunk(content="Half")


async def post(client: httpx2.AsyncClient, gateway: FakeGateway) -> httpx2.Response:
    url = gateway.base_url + "/chat/completions"
    return await client.post(url, json=BODY, headers={"x-round": "7"})


async def received_before_break(gateway: FakeGateway) -> tuple[bytes, str]:
    """The body up to where the connection broke, and the name of the break."""
    body = bytearray()
    url = gateway.base_url + "/chat/completions"
    async with loopback_client() as client:
        try:
            async with client.stream("POST", url, json=BODY) as response:
                async for piece in response.aiter_raw():
                    body += piece
        except httpx2.TransportError as error:
            return bytes(body), type(error).__name__
    return bytes(body), ""


async def test_scripts_are_played_in_turn_and_the_last_repeats() -> None:
    async with FakeGateway() as gateway, loopback_client() as client:
        gateway.play(
            Script(HALF, DONE),
            reply(429, {"error": {"code": 429}}, headers={"retry-after": "1"}),
        )

        answers = [await post(client, gateway) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 429, 429]
    assert answers[0].content == HALF + DONE
    assert answers[1].json() == {"error": {"code": 429}}
    assert answers[1].headers["retry-after"] == "1"


async def test_requests_are_recorded_with_their_connection() -> None:
    async with FakeGateway() as gateway, loopback_client() as client:
        gateway.play(Script(DONE))

        await post(client, gateway)
        await post(client, gateway)

        first, second = gateway.requests
    assert (first.method, first.path) == ("POST", "/v1/chat/completions")
    assert first.json == BODY
    assert first.headers["x-round"] == "7"
    assert first.connection_id == second.connection_id
    assert gateway.accepted == 1


@pytest.mark.parametrize(
    ("script", "body", "broke"),
    [
        (Script(HALF, framing="close"), HALF, ""),
        (Script(HALF, framing="length"), HALF, ""),
        (Script(HALF, Reset()), HALF, "ReadError"),
        (Script(Reset()), b"", "ReadError"),
        (Script(Close()), b"", "RemoteProtocolError"),
        (Script(HALF, Close()), HALF, "RemoteProtocolError"),
        (Script(HALF, Close(half=b"data: {")), HALF, "RemoteProtocolError"),
        (Script("not http\r\n\r\n", framing="raw"), b"", "RemoteProtocolError"),
        (
            Script(HALF, Close(), headers={"content-length": "999"}, framing="length"),
            HALF,
            "RemoteProtocolError",
        ),
    ],
)
async def test_a_response_ends_or_breaks_as_scripted(
    script: Script, body: bytes, broke: str
) -> None:
    async with FakeGateway() as gateway:
        gateway.play(script)

        received, name = await received_before_break(gateway)

    assert received.startswith(body)
    assert name == broke


@pytest.mark.parametrize("steps", [(Stall(),), (Head(), Stall()), (HALF, Stall())])
def test_a_stall_lasts_until_the_client_leaves_and_that_is_recorded(
    steps: tuple[Head | Stall | bytes, ...],
) -> None:
    async def left_after(seconds: float) -> tuple[FakeGateway, float]:
        async with FakeGateway() as gateway:
            gateway.play(Script(*steps))
            began = asyncio.get_running_loop().time()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(received_before_break(gateway), seconds)
            await gateway.requests[0].wait_closed()
        closed_at = gateway.requests[0].closed_at
        assert closed_at is not None
        return gateway, closed_at - began

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        gateway, seconds = runner.run(left_after(3))

    assert gateway.requests[0].closed_by == "fin"
    assert seconds == pytest.approx(3, abs=0.1)
    assert gateway.open_connections == 0


async def test_a_client_that_resets_is_told_apart() -> None:
    async with FakeGateway() as gateway:
        gateway.play(Script(HALF, Stall()))
        port = httpx2.URL(gateway.base_url).port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v1/models HTTP/1.1\r\n\r\n")
        await reader.read(1)
        await asyncio.sleep(0.02)

        peer: socket.socket = writer.get_extra_info("socket")
        linger_not_at_all = struct.pack("ii", 1, 0)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not_at_all)
        writer.transport.abort()
        await gateway.requests[0].wait_closed()

    assert gateway.requests[0].closed_by == "rst"


async def test_a_pause_is_waited_for() -> None:
    async with FakeGateway() as gateway, loopback_client() as client:
        gateway.play(Script(HALF, Pause(0.1), DONE))
        began = asyncio.get_running_loop().time()

        await post(client, gateway)

        assert asyncio.get_running_loop().time() - began >= 0.1


def test_a_chunk_carries_what_it_was_given() -> None:
    called = chunk(tool_calls=[tool_call(call_id="a", name="f", arguments="{}")])
    counted = chunk(usage={"total_tokens": 3}, provider="P")

    assert b'"delta": {"tool_calls": [{"index": 0, "id": "a"' in called
    assert b'"choices": []' in counted
    assert b'"provider": "P"' in counted
    assert b'"finish_reason": "stop"' in chunk(finish="stop")
