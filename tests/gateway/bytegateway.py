"""A loopback server that sends exactly the bytes it is given, for thousands of calls.

Unlike `tests.fakegateway` it knows no HTTP of its own: head, framing and whatever is
wrong with them come from the test. Each request is answered with the next delivery;
the last one repeats, since the SDK may ask again.
"""

import asyncio
import re
import socket
import struct
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

After: TypeAlias = Literal["keep", "fin", "rst"]
HEAD_END = b"\r\n\r\n"
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


@dataclass(frozen=True, slots=True)
class Delivery:
    """The bytes of one response, piece by piece, and what is done after them.

    "keep" leaves the connection open and takes further requests, "fin" sends no more
    and waits for the client to close its side, "rst" resets.
    """

    pieces: tuple[bytes, ...]
    after: After = "keep"
    pauses: int = 0
    """Turns of the loop between two pieces, beyond the one that parts them."""


class ByteGateway:
    """The server; start it inside a running loop."""

    def __init__(self) -> None:
        self.connections: set[_Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.requests = 0
        self._deliveries: list[Delivery] = []
        self._server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def play(self, *deliveries: Delivery) -> None:
        """Send these from the next request on."""
        self._deliveries = list(deliveries)

    def next_delivery(self) -> Delivery:
        self.requests += 1
        first = self._deliveries[0]
        if len(self._deliveries) > 1:
            self._deliveries.pop(0)
        return first

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", 0
        )

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self.connections):
            connection.transport.abort()
        await self._server.wait_closed()


class _Connection(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, gateway: ByteGateway) -> None:
        self._gateway = gateway
        self._received = b""
        self._is_over = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._gateway.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gateway.connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            self.transport.abort()
            return
        self._received += data
        head, end, body = self._received.partition(HEAD_END)
        length = LENGTH.search(head)
        wanted = int(length[1]) if length else 0
        if not end or len(body) < wanted:
            return
        self._received = body[wanted:]
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.get_running_loop().create_task(
            self._deliver(self._gateway.next_delivery())
        )
        self._gateway.tasks.add(self._task)
        self._task.add_done_callback(self._gateway.tasks.discard)

    async def _deliver(self, delivery: Delivery) -> None:
        for piece in delivery.pieces:
            self.transport.write(piece)
            for _ in range(1 + delivery.pauses):
                await asyncio.sleep(0)
        if delivery.after == "fin":
            self._is_over = True
            if not self.transport.is_closing():
                self.transport.write_eof()
        elif delivery.after == "rst":
            self._is_over = True
            peer: socket.socket = self.transport.get_extra_info("socket")
            if not self.transport.is_closing():
                linger_not_at_all = struct.pack("ii", 1, 0)
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not_at_all)
                self.transport.abort()
