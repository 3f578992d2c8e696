"""The transport below the SDK: what is observed of each request and response.

A public httpx2 transport, so that nothing of the SDK's inside is touched. The
attempt's `Wire` travels in a context variable, since the SDK hands nothing of
ours down; each try of a refused POST passes here and is counted.
"""

import zlib
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

import httpx2

from threads.gateway.wire import Observed, SseFilter

REFUSAL_LENGTH = 262_144
"""Bytes of an error body that are read (requirement C3)."""

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


class _TappedStream(httpx2.AsyncByteStream):
    """A response body that passes the filter on its way to the SDK."""

    def __init__(
        self, inner: httpx2.AsyncByteStream, wire: Wire, encoding: str
    ) -> None:
        self._inner = inner
        self._filter = SseFilter(wire.observed)
        self._inflate = (
            zlib.decompressobj(wbits=47) if encoding in ("gzip", "deflate") else None
        )

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            if ready := self._filter.feed(self._decoded(piece)):
                yield ready
        self._filter.finish()

    def _decoded(self, piece: bytes) -> bytes:
        if self._inflate is None:
            return piece
        try:
            return self._inflate.decompress(piece)
        except zlib.error as error:
            raise httpx2.DecodingError(str(error)) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """An error body, read as far as a diagnosis can need."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        room = REFUSAL_LENGTH
        async for piece in self._inner:
            yield piece[:room]
            room -= len(piece)
            if room <= 0:
                return

    async def aclose(self) -> None:
        await self._inner.aclose()


class TappedTransport(httpx2.AsyncHTTPTransport):
    """Counts tries and puts the filter between socket and SDK."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        wire = current_wire.get()
        if wire is not None:
            wire.tries += 1
        response = await super().handle_async_request(request)
        if wire is None or not isinstance(response.stream, httpx2.AsyncByteStream):
            return response
        headers = response.headers
        wire.headers = {name.lower(): value for name, value in headers.items()}
        if response.status_code != 200:
            response.stream = _BoundedStream(response.stream)
            return response
        response.stream = _TappedStream(
            response.stream, wire, headers.get("content-encoding", "").strip().lower()
        )
        headers.pop("content-encoding", None)
        return response
