"""The server: starting, stopping, and keeping its bounds on raw sockets."""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from tests.loopback import loopback_client
from tests.practice.wiretap import PATH, asking
from threads.practice.app import PracticeApp
from threads.practice.connection import Limits
from threads.practice.exchange import Message
from threads.practice.server import PracticeServer


def request_bytes(body: dict[str, Any], *headers: str) -> bytes:
    content = json.dumps(body).encode()
    lines = [
        "POST /v1/chat/completions HTTP/1.1",
        "host: x",
        f"content-length: {len(content)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


async def connect(
    server: PracticeServer,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", httpx2.URL(server.base_url).port)


async def exchange(server: PracticeServer, sent: bytes) -> bytes:
    """Send these bytes and read until the server closes."""
    reader, writer = await connect(server)
    try:
        writer.write(sent)
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def practice_threads() -> set[threading.Thread]:
    """Those of other tests and of the process's own gateway are among them."""
    return {t for t in threading.enumerate() if t.name == "practice-gateway"}


class Watched:
    """A practice application of which it is known when it returned."""

    def __init__(self, *, pace: float) -> None:
        self._app = PracticeApp(pace=pace)
        self.returned = threading.Event()

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        try:
            await self._app(scope, receive, send)
        finally:
            self.returned.set()


def test_starting_and_stopping_are_quick_and_leave_nothing_behind() -> None:
    before = practice_threads()
    server = PracticeServer()

    url = server.start()
    same = server.start()
    server.stop()
    server.stop()

    assert url == same
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/v1")
    assert practice_threads() <= before
    with pytest.raises(RuntimeError):
        _ = server.base_url


def test_a_stopped_server_can_be_started_again() -> None:
    before = practice_threads()
    server = PracticeServer()

    for _ in range(3):
        with server:
            url = httpx2.URL(server.base_url)
            socket.create_connection((url.host, url.port or 0)).close()

    assert practice_threads() <= before


def test_a_taken_port_is_the_callers_error() -> None:
    with PracticeServer() as server:
        port = httpx2.URL(server.base_url).port or 0

        with pytest.raises(OSError, match="in use"):
            PracticeServer(port=port).start()


async def test_stopping_breaks_off_every_answer_and_idle_connection() -> None:
    before = practice_threads()
    server = PracticeServer()
    server.start()
    stalled, stalled_writer = await connect(server)
    idle, idle_writer = await connect(server)
    stalled_writer.write(request_bytes(asking("practice/stall-start")))
    await stalled.readuntil(b": ")

    await asyncio.to_thread(server.stop)

    try:
        async with asyncio.timeout(5):
            await stalled.read()
            assert await idle.read() == b""
        assert practice_threads() <= before
    finally:
        for writer in (stalled_writer, idle_writer):
            writer.close()


@pytest.mark.parametrize(
    ("model", "pace", "received"),
    [
        ("practice/slow", 1, b"\r\n\r\n"),
        ("practice/stall-start", 1, b"\r\n\r\n"),
        ("practice/stall", 0, b'" you"'),  # and then nothing
    ],
)
async def test_a_client_that_leaves_stops_the_script_at_once(
    model: str, pace: float, received: bytes
) -> None:
    app = Watched(pace=pace)
    with PracticeServer(app) as server:
        reader, writer = await connect(server)
        writer.write(request_bytes(asking(model)))
        await reader.readuntil(received)
        assert not app.returned.is_set()

        writer.close()

        assert await asyncio.to_thread(app.returned.wait, 5)


async def test_a_client_that_reads_nothing_can_still_leave() -> None:
    app = Watched(pace=0)
    with PracticeServer(app) as server:
        reader, writer = await connect(server)
        peer: socket.socket = writer.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(request_bytes(asking("practice/long")))
        await asyncio.sleep(0.05)

        writer.transport.abort()

        assert await asyncio.to_thread(app.returned.wait, 5)
        del reader


async def test_connections_are_kept_and_pipelined_requests_answered_in_order() -> None:
    steady = asking("practice/steady", stream=False)
    last = request_bytes(asking("practice/empty"), "connection: close")
    with PracticeServer(PracticeApp(pace=0)) as server:
        received = await exchange(server, request_bytes(steady) * 2 + last)

    assert received.count(b"HTTP/1.1 200 OK") == 3
    assert received.count(b'"object":"chat.completion",') == 2
    assert received.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


async def test_a_client_may_wait_to_be_told_to_go_on() -> None:
    asked = request_bytes(asking("practice/empty"), "expect: 100-continue")
    head, body = asked.split(b"\r\n\r\n", 1)
    with PracticeServer(PracticeApp(pace=0)) as server:
        reader, writer = await connect(server)
        writer.write(head + b"\r\n\r\n")
        told = await reader.readuntil(b"\r\n\r\n")
        writer.write(body)
        answered = await reader.readuntil(b"[DONE]")
        writer.close()

    assert told.startswith(b"HTTP/1.1 100 ")
    assert answered.startswith(b"HTTP/1.1 200 ")


async def test_an_old_client_gets_a_stream_that_ends_with_the_connection() -> None:
    asked = request_bytes(asking("practice/empty")).replace(b"HTTP/1.1", b"HTTP/1.0")
    with PracticeServer(PracticeApp(pace=0)) as server:
        received = await exchange(server, asked)

    assert received.endswith(b"data: [DONE]\n\n")


TIGHT = Limits(
    connections=2,
    head_bytes=1000,
    body_bytes=1000,
    request_seconds=0.5,
    idle_seconds=0.5,
)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /v1/models HTTP/1.1\r\nx: " + b"y" * 2000, 431),
        (b"GET /v1/models HTTP/1.1\r\nhost: x\r\n", 408),
        (b"POST /v1 HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc", 408),
        (request_bytes(asking("practice/steady", "word " * 2000)), 413),
    ],
)
async def test_a_request_out_of_bounds_is_told_so_and_the_connection_closed(
    sent: bytes, status: int
) -> None:
    with PracticeServer(limits=TIGHT) as server:
        received = await exchange(server, sent)

    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close" in head.lower()
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


async def test_an_idle_connection_is_closed_without_a_word() -> None:
    with PracticeServer(limits=TIGHT) as server:
        assert await exchange(server, b"") == b""


async def test_connections_beyond_the_bound_are_dropped_until_one_closes() -> None:
    with PracticeServer(PracticeApp(pace=0), limits=TIGHT) as server:
        stalled = [await connect(server) for _ in range(2)]
        for reader, writer in stalled:
            writer.write(request_bytes(asking("practice/stall-start")))
            await reader.readuntil(b"\r\n\r\n")

        dropped = b""
        with contextlib.suppress(ConnectionError):
            dropped = await exchange(server, request_bytes(asking("practice/empty")))
        stalled[0][1].close()
        close = request_bytes(asking("practice/empty"), "connection: close")
        answered = b""
        async with asyncio.timeout(10):
            while not answered:  # until the server has seen that one is closed
                with contextlib.suppress(ConnectionError):
                    answered = await exchange(server, close)

        stalled[1][1].close()
    assert dropped == b""
    assert answered.startswith(b"HTTP/1.1 200 ")


async def test_an_answer_has_a_longest_time() -> None:
    limits = Limits(response_seconds=0.1)
    with PracticeServer(limits=limits) as server:
        received = await exchange(server, request_bytes(asking("practice/stall-start")))

    assert received.startswith(b"HTTP/1.1 200 ")
    assert not received.endswith(b"0\r\n\r\n")


async def test_a_failing_application_is_logged_and_answered_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def failing(scope: Message, receive: object, send: object) -> None:
        raise LookupError(scope["path"])

    with PracticeServer(failing) as server:
        async with loopback_client() as client:
            response = await client.get(server.base_url + "/models")

    assert response.status_code == 500
    assert response.json()["error"]["type"] == "server_error"
    assert "The practice application failed" in caplog.text


async def test_many_streams_are_served_at_once() -> None:
    with PracticeServer(PracticeApp(pace=0.1)) as server:
        limits = httpx2.Limits(max_connections=None)
        async with loopback_client(base_url=server.base_url, limits=limits) as client:
            body = asking("practice/truncate")
            answers = [client.post(PATH, json=body) for _ in range(50)]
            received = await asyncio.gather(*answers)

    assert {response.text.count("data: ") for response in received} == {
        received[0].text.count("data: ")
    }
