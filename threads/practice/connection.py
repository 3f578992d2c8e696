"""One client connection of the practice server: HTTP/1.1 on a pair of asyncio streams.

h11 keeps the protocol; this module moves the bytes, keeps the bounds, notices at once
when the client closes its side, and breaks the connection when that is asked for.
"""

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass
from http import HTTPStatus

import h11

from threads.practice.exchange import (
    Application,
    ConnectionOverError,
    Exchange,
    RefusedError,
    Request,
    response_head,
)
from threads.practice.wire import encode, error_body

READ_BYTES = 64 * 1024
LINGER_SECONDS = 1.0
# A reset throws away what the peer has not acknowledged, and acknowledgements may be
# delayed by 40 ms.
BEFORE_RESET_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server puts up with."""

    connections: int = 1000
    head_bytes: int = 64 * 1024
    body_bytes: int = 8 * 1024 * 1024
    request_seconds: float = 10.0
    idle_seconds: float = 60.0
    response_seconds: float = 3600.0


class Connection:
    """The requests of one client, in turn, until either side has had enough."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        limits: Limits,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._limits = limits
        self._http = h11.Connection(
            h11.SERVER, max_incomplete_event_size=limits.head_bytes
        )

    async def serve(self, app: Application) -> None:
        """Serve until the connection is over; it is closed when this returns."""
        try:
            await self._serve_requests(app)
        except (ConnectionOverError, OSError):
            pass
        except RefusedError as refusal:
            await self._refuse(refusal)
        except asyncio.CancelledError:
            self._writer.transport.abort()
            raise
        finally:
            await self._close()

    async def _serve_requests(self, app: Application) -> None:
        while True:
            request = await self._read_request()
            exchange = Exchange(self, request)
            await exchange.run(app, seconds=self._limits.response_seconds)
            if self._http.our_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def _read_request(self) -> Request:
        pipelined, _ = self._http.trailing_data
        try:
            if not pipelined:
                await self._await_first_bytes()
            async with asyncio.timeout(self._limits.request_seconds):
                return await self._read_head_and_body()
        except TimeoutError as error:
            raise RefusedError(
                HTTPStatus.REQUEST_TIMEOUT, "The request took too long to arrive."
            ) from error
        except h11.RemoteProtocolError as error:
            raise RefusedError(
                error.error_status_hint, f"This is not an HTTP request: {error}."
            ) from error

    async def _await_first_bytes(self) -> None:
        try:
            async with asyncio.timeout(self._limits.idle_seconds):
                await self._feed()
        except TimeoutError as error:
            raise ConnectionOverError from error

    async def _read_head_and_body(self) -> Request:
        head = await self._next_event()
        if not isinstance(head, h11.Request):
            raise ConnectionOverError
        body = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            body += event.data
            if len(body) > self._limits.body_bytes:
                raise RefusedError(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request is too large."
                )
        return Request(head, bytes(body))

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                proceed = h11.InformationalResponse(
                    status_code=HTTPStatus.CONTINUE, headers=[]
                )
                await self.write(proceed)
            await self._feed()
        return event

    async def _feed(self) -> None:
        self._http.receive_data(await self._reader.read(READ_BYTES))

    async def client_gone(self) -> None:
        """Return when the client has closed its side, or sends far too much early."""
        early = 0
        with contextlib.suppress(OSError):
            while early <= self._limits.head_bytes:
                received = await self._reader.read(READ_BYTES)
                if not received:
                    return
                self._http.receive_data(received)
                early += len(received)

    async def write(self, event: h11.Event) -> None:
        """Send a protocol event, waiting while the client reads more slowly."""
        self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()

    async def abort(self, *, reset: bool, half_chunk: bytes) -> None:
        """Break the connection: by a reset, or by closing it within an HTTP chunk."""
        if half_chunk and not reset:
            # The size line promises one byte more than there will ever be.
            self._writer.write(b"%x\r\n%b" % (len(half_chunk) + 1, half_chunk))
        # A drain that waits until everything written has been handed to the kernel.
        self._writer.transport.set_write_buffer_limits(high=0)
        await self._writer.drain()
        if reset:
            await asyncio.sleep(BEFORE_RESET_SECONDS)
            peer: socket.socket = self._writer.get_extra_info("socket")
            linger_not_at_all = struct.pack("ii", 1, 0)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not_at_all)
            self._writer.transport.abort()
        else:
            self._writer.close()

    async def _refuse(self, refusal: RefusedError) -> None:
        with contextlib.suppress(OSError, TimeoutError, h11.LocalProtocolError):
            async with asyncio.timeout(LINGER_SECONDS):
                await self._respond(refusal)
                self._writer.write_eof()
                # Closing while the client still sends would reset the connection and
                # could take the answer away before it has been read.
                while await self._reader.read(READ_BYTES):
                    pass

    async def _respond(self, refusal: RefusedError) -> None:
        ours = refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        kind = "server_error" if ours else "invalid_request_error"
        body = encode(error_body(refusal.message, kind=kind))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await self.write(response_head(refusal.status, headers))
        await self.write(h11.Data(data=body))
        await self.write(h11.EndOfMessage())

    async def _close(self) -> None:
        self._writer.close()
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()
