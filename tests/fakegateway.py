"""A loopback HTTP/1.1 server that plays scripted bytes, for tests of a gateway's client.

It knows HTTP framing and nothing else, so it can send what no real server would.

    async with FakeGateway() as gateway:
        gateway.play(Script(chunk(content="Half"), Reset()), Script(chunk(finish="stop")))
        ...
        assert gateway.requests[0].json["model"] == "some-model"

Each request takes the next script; the last one repeats. The response head is sent
before the first bytes, or by `Head()`; a script that runs out has ended properly.
"""

import asyncio
import contextlib
import json
import socket
import struct
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

from tests.fakescript import (
    DONE,
    EVENT_STREAM,
    JSON,
    Close,
    End,
    Head,
    Pause,
    Reset,
    Script,
    Send,
    Stall,
    chunk,
    encoded,
    frame,
    reply,
    tool_call,
)

__all__ = [
    "DONE",
    "EVENT_STREAM",
    "JSON",
    "Close",
    "End",
    "FakeGateway",
    "Head",
    "Pause",
    "Request",
    "Reset",
    "Script",
    "Send",
    "Stall",
    "chunk",
    "frame",
    "reply",
    "tool_call",
]


@dataclass(slots=True)
class Request:
    """A request as it was received, and how its client left the connection."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection_id: int
    received_at: float
    closed_at: float | None = None
    closed_by: Literal["fin", "rst"] | None = None
    _closed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def client_closed(self, how: Literal["fin", "rst"]) -> None:
        if self.closed_by is None:
            self.closed_by = how
            self.closed_at = asyncio.get_running_loop().time()
            self._closed.set()

    async def wait_closed(self, within_seconds: float = 2.0) -> None:
        """Return once the client has closed its side; raises TimeoutError if late."""
        async with asyncio.timeout(within_seconds):
            await self._closed.wait()


class FakeGateway:
    """The server; times are those of the running loop's clock."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.accepted = 0
        self._scripts: list[Script] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def open_connections(self) -> int:
        return len(self._tasks)

    def play(self, *scripts: Script) -> None:
        """Play these from the next request on, in place of whatever was left."""
        self._scripts = list(scripts)

    async def __aenter__(self) -> "FakeGateway":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        await asyncio.sleep(0)  # Lets what was accepted become a connection.
        self._server.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()
        for result in results:
            if isinstance(result, Exception):
                raise result

    def next_script(self) -> Script:
        match self._scripts:
            case []:
                return reply(500, {"error": {"message": "no script was given"}})
            case [last]:
                return last
            case _:
                return self._scripts.pop(0)

    def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.accepted += 1
        connection = _Connection(self, self.accepted, reader, writer)
        task = asyncio.get_running_loop().create_task(connection.serve())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())


class _ConnectionOverError(Exception):
    """Nothing more is read from or written to this connection."""


class _Connection:
    """One client connection: its requests in turn, each answered by a script."""

    def __init__(
        self,
        gateway: FakeGateway,
        connection_id: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._gateway = gateway
        self._id = connection_id
        self._reader = reader
        self._writer = writer
        self._received = bytearray()
        self._last: Request | None = None

    async def serve(self) -> None:
        with contextlib.suppress(_ConnectionOverError, OSError):
            while True:
                self._last = await self._read_request()
                self._gateway.requests.append(self._last)
                await self._answer(self._gateway.next_script())
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _read_request(self) -> Request:
        while b"\r\n\r\n" not in self._received:
            await self._read_more()
        head, _, rest = bytes(self._received).partition(b"\r\n\r\n")
        self._received = bytearray(rest)
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        pairs = (line.split(":", 1) for line in lines)
        headers = {name.lower(): value.strip() for name, value in pairs}
        length = int(headers.get("content-length", "0"))
        while len(self._received) < length:
            await self._read_more()
        body = bytes(self._received[:length])
        del self._received[:length]
        now = asyncio.get_running_loop().time()
        return Request(method, path, headers, body, self._id, now)

    async def _read_more(self) -> None:
        how: Literal["fin", "rst"] = "fin"
        received = b""
        try:
            received = await self._reader.read(65536)
        except ConnectionError:
            how = "rst"
        if not received:
            if self._last is not None:
                self._last.client_closed(how)
            raise _ConnectionOverError
        self._received += received

    async def _answer(self, script: Script) -> None:
        """Play the script, unless the client closes its side before it is over."""
        playing = asyncio.create_task(_Player(self._writer, script).play())
        watching = asyncio.create_task(self._watch())
        try:
            await asyncio.wait((playing, watching), return_when="FIRST_COMPLETED")
            over = watching.done()
            if playing.done():
                over = over or not playing.result()
        finally:
            playing.cancel()
            watching.cancel()
            await asyncio.gather(playing, watching, return_exceptions=True)
        if over:
            raise _ConnectionOverError

    async def _watch(self) -> None:
        with contextlib.suppress(_ConnectionOverError):
            while True:
                await self._read_more()


class _Player:
    """Puts one script on the wire."""

    def __init__(self, writer: asyncio.StreamWriter, script: Script) -> None:
        self._writer = writer
        self._script = script
        self._head_sent = False

    async def play(self) -> bool:
        """Play to the end; true when the connection can take another request."""
        for step in self._script.steps:
            match step:
                case Send(body):
                    await self._send(encoded(body))
                case Head():
                    await self._write(b"")
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Stall():
                    await asyncio.Event().wait()
                case Reset():
                    await self._reset()
                    return False
                case Close(half):
                    await self._break_off(half)
                    return False
                case End():
                    break
        await self._write(b"0\r\n\r\n" if self._script.framing == "chunked" else b"")
        return self._script.framing in {"chunked", "length"}

    async def _send(self, body: bytes) -> None:
        if self._script.framing == "chunked":
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        await self._write(body)

    async def _write(self, body: bytes) -> None:
        if not self._head_sent:
            self._head_sent = True
            body = self._script.head() + body
        self._writer.write(body)
        await self._writer.drain()

    async def _break_off(self, half: bytes) -> None:
        if half:
            # The size line promises more than there will ever be.
            await self._write(b"%x\r\n%b" % (len(half) + 1, half))
        self._writer.close()

    async def _reset(self) -> None:
        if self._head_sent:
            # A reset throws away what the peer has not acknowledged, and
            # acknowledgements may be delayed by 40 ms.
            await asyncio.sleep(0.06)
        peer: socket.socket = self._writer.get_extra_info("socket")
        linger_not_at_all = struct.pack("ii", 1, 0)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not_at_all)
        self._writer.transport.abort()
