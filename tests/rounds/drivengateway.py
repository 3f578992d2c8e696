"""A gateway that is played step by step while a round runs: it does nothing unasked.

Each request waits in `exchanges` until the test answers it, a few frames at a time,
and is kept there: the list is the gateway's own log.
"""

import asyncio
import json
import socket
import struct
from http import HTTPStatus
from typing import Any, cast

import h11

from tests.fakescript import EVENT_STREAM, JSON


class Exchange:
    """One request, and the response to it so far; times are the loop's."""

    def __init__(self, connection: "_Connection", body: bytes, number: int) -> None:
        self.body = body
        self.number = number
        self.connection_id = connection.number
        self.received_at = asyncio.get_running_loop().time()
        self.sent_at: float | None = None
        self.left = asyncio.Event()
        self._connection = connection
        self.has_head = False

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def send(self, *frames: bytes) -> None:
        """Send these together, each in a chunk of its own."""
        self._begin(200, EVENT_STREAM | {"transfer-encoding": "chunked"})
        self._connection.write(*(h11.Data(data=frame) for frame in frames))

    def end(self) -> None:
        """End the response as HTTP has it; the connection takes another request."""
        self._begin(200, EVENT_STREAM | {"transfer-encoding": "chunked"})
        self._connection.write(h11.EndOfMessage())
        self._connection.begin_next()

    def refuse(self, status: int, body: object) -> None:
        """Answer with a status and a JSON body."""
        content = json.dumps(body).encode()
        self._begin(status, JSON | {"content-length": str(len(content))})
        self._connection.write(h11.Data(data=content), h11.EndOfMessage())
        self._connection.begin_next()

    def half(self) -> None:
        """Begin an HTTP chunk and close."""
        self._begin(200, EVENT_STREAM | {"transfer-encoding": "chunked"})
        self._connection.transport.write(b'40\r\ndata: {"choices": [{"del')
        self.drop()

    def drop(self) -> None:
        """Close, whatever was or was not sent."""
        self._connection.transport.close()

    def reset(self) -> None:
        """RST; what was sent before must have been read, or it may be lost."""
        self._connection.reset()

    def _begin(self, status: int, headers: dict[str, str]) -> None:
        if not self.has_head:
            self.has_head = True
            reason = HTTPStatus(status).phrase
            head = h11.Response(
                status_code=status, headers=list(headers.items()), reason=reason
            )
            self._connection.write(head)


class DrivenGateway:
    """The server; start it inside a running loop."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.connections: set[_Connection] = set()
        self.accepted = 0
        self.arrived = asyncio.Event()
        self._server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    @property
    def is_busy(self) -> bool:
        """An answer is under way."""
        return any(each.is_busy for each in self.connections)

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

    def receive(self, connection: "_Connection", body: bytes) -> Exchange:
        exchange = Exchange(connection, body, len(self.exchanges))
        self.exchanges.append(exchange)
        self.arrived.set()
        return exchange


class _Connection(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, gateway: DrivenGateway) -> None:
        gateway.accepted += 1
        self.number = gateway.accepted
        self._gateway = gateway
        self._http = h11.Connection(h11.SERVER)
        self._body = b""
        self._exchange: Exchange | None = None

    @property
    def is_busy(self) -> bool:
        """An answer is under way here."""
        return self._exchange is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._gateway.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gateway.connections.discard(self)
        if self._exchange is not None:
            self._exchange.left.set()

    def data_received(self, data: bytes) -> None:
        self._http.receive_data(data)
        while (event := self._http.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Data):
                self._body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                body, self._body = self._body, b""
                self._exchange = self._gateway.receive(self, body)

    def write(self, *events: h11.Event) -> None:
        """Send these in one piece, as one would who has them all."""
        self.transport.write(b"".join(self._http.send(each) or b"" for each in events))

    def begin_next(self) -> None:
        """Take another request."""
        self._http.start_next_cycle()
        self._exchange = None

    def reset(self) -> None:
        peer: socket.socket = self.transport.get_extra_info("socket")
        linger_not_at_all = struct.pack("ii", 1, 0)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not_at_all)
        self.transport.abort()
