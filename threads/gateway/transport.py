"""The transport below the SDK: what is observed of each request and response.

A public httpx2 transport, so that nothing of the SDK's inside is touched. The
attempt's `Wire` travels in a context variable, since the SDK hands nothing of
ours down; each try of a refused POST passes here and is counted.
"""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache

import httpx2

from threads.gateway.wire import Observed, SseFilter

COMPRESSIONS = ("gzip", "deflate")

REFUSAL_LENGTH = 262_144
"""Bytes of an error body that are read (requirement C3)."""

REFUSAL_SECONDS = 5.0
"""How long an error body is waited for: its status has said what matters."""

REQUEST_IDS = ("x-request-id", "x-generation-id", "x-nr-request-id", "cf-ray")


@dataclass(slots=True)
class Wire:
    """What one attempt looked like below the SDK."""

    observed: Observed = field(default_factory=Observed)
    tries: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def request_id(self) -> str:
        """The first request id that the gateway gave, or nothing."""
        return next(
            (self.headers[name][:200] for name in REQUEST_IDS if name in self.headers),
            "",
        )


current_wire: ContextVar[Wire | None] = ContextVar("wire", default=None)


class _Inflater:
    """Undoes gzip or deflate; a server may send one gzip member for each flush."""

    def __init__(self, encoding: str) -> None:
        self._inflate = (
            zlib.decompressobj(wbits=47) if encoding in COMPRESSIONS else None
        )

    def feed(self, piece: bytes) -> bytes:
        """Return what can be read now; raises `zlib.error` on any other bytes."""
        if self._inflate is None:
            return piece
        out = [self._inflate.decompress(piece)]
        while self._inflate.eof and (piece := self._inflate.unused_data):
            self._inflate = zlib.decompressobj(wbits=47)
            out.append(self._inflate.decompress(piece))
        return b"".join(out)


class _TappedStream(httpx2.AsyncByteStream):
    """A response body that passes the filter on its way to the SDK."""

    def __init__(
        self, inner: httpx2.AsyncByteStream, wire: Wire, encoding: str
    ) -> None:
        self._inner = inner
        self._filter = SseFilter(wire.observed)
        self._inflater = _Inflater(encoding)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            if ready := self._filter.feed(self._decoded(piece)):
                yield ready
        self._filter.finish()

    def _decoded(self, piece: bytes) -> bytes:
        try:
            return self._inflater.feed(piece)
        except zlib.error as error:
            raise httpx2.DecodingError(str(error)) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """An error body, read as far as a diagnosis can need.

    The status has decided already: a body that stalls, breaks off or is not
    compressed as it claims only says less. The SDK reads it outside its own
    guards, so that an exception here would escape as it is.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, encoding: str) -> None:
        self._inner = inner
        self._inflater = _Inflater(encoding)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        room = REFUSAL_LENGTH
        deadline = asyncio.get_running_loop().time() + REFUSAL_SECONDS
        pieces = aiter(self._inner)
        while room > 0:
            try:
                async with asyncio.timeout_at(deadline):
                    piece = await anext(pieces)
            except (StopAsyncIteration, TimeoutError, httpx2.TransportError):
                return
            readable = self._readable(piece)[:room]
            room -= len(readable)
            yield readable

    def _readable(self, piece: bytes) -> bytes:
        try:
            return self._inflater.feed(piece)
        except zlib.error:
            self._inflater = _Inflater("identity")
            return piece

    async def aclose(self) -> None:
        await self._inner.aclose()


@cache
def _tls() -> ssl.SSLContext:
    """One for the process: reading the certificates takes a tenth of a second."""
    return httpx2.create_ssl_context()


class TappedTransport(httpx2.AsyncHTTPTransport):
    """Counts tries and puts the filter between socket and SDK."""

    def __init__(self, *, keepalive_connections: int) -> None:
        limits = httpx2.Limits(
            max_connections=None, max_keepalive_connections=keepalive_connections
        )
        super().__init__(verify=_tls(), limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        wire = current_wire.get()
        if wire is not None:
            wire.tries += 1
        response = await super().handle_async_request(request)
        if wire is None or not isinstance(response.stream, httpx2.AsyncByteStream):
            return response
        headers = response.headers
        wire.headers = {name.lower(): value for name, value in headers.items()}
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding in COMPRESSIONS:
            del headers["content-encoding"]
        if response.status_code == 200:
            response.stream = _TappedStream(response.stream, wire, encoding)
        else:
            response.stream = _BoundedStream(response.stream, encoding)
        return response
