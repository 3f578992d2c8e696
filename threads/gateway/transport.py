"""The transport below the SDK: what is observed of each request and response.

A public httpx2 transport, so that nothing of the SDK's inside is touched. The
attempt's `Wire` travels in a context variable, since the SDK hands nothing of
ours down; each try of a refused POST passes here and is counted.
"""

import asyncio
import logging
import re
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import cache

import httpx2

from threads.gateway.wire import Observed, SseFilter

logger = logging.getLogger(__name__)

COMPRESSIONS = ("gzip", "x-gzip", "deflate")
OTHER_COMPRESSIONS = ("br", "zstd", "compress", "dcb", "dcz")
"""Never asked for; what comes under one of these names is not guessed at."""

UNREADABLE = "unreadable"

SLICE = 262_144
"""Bytes that are inflated at once: a few compressed ones can hold gigabytes."""

TEXT_CHARSET = re.compile(
    r"(?i)(?:utf-?8|us-ascii|ascii|iso-8859-\d{1,2}|latin-?1|windows-125\d|cp125\d"
    r"|gb2312|gbk|gb18030|big5|shift[_-]jis|euc-(?:jp|kr)|koi8-[ru])"
)
"""Charsets that decode any bytes: httpx2 looks up whatever a server names, and some
of Python's codecs raise, or are none of text (measured: TypeError for rot13)."""

REFUSAL_LENGTH = 262_144
"""Bytes of an error body that are read (requirement C3)."""

REFUSAL_SECONDS = 5.0
"""How long an error body is waited for: its status has said what matters."""

CLOSE_SECONDS = 5.0
"""How long closing a stream or a pool of connections may take."""

REQUEST_IDS = ("x-request-id", "x-generation-id", "x-nr-request-id", "cf-ray")


@dataclass(slots=True)
class Wire:
    """What one attempt looked like below the SDK.

    `refused` is the status with which the latest try was refused, from its head on.
    """

    observed: Observed = field(default_factory=Observed)
    tries: int = 0
    refused: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def request_id(self) -> str:
        """The first request id that the gateway gave, or nothing."""
        return next(
            (self.headers[name][:200] for name in REQUEST_IDS if name in self.headers),
            "",
        )


current_wire: ContextVar[Wire | None] = ContextVar("wire", default=None)


class Inflater:
    """Undoes gzip or deflate; a server may send one gzip member for each flush."""

    def __init__(self, encoding: str) -> None:
        self._inflate = (
            zlib.decompressobj(wbits=47) if encoding in COMPRESSIONS else None
        )
        self._may_be_raw = encoding == "deflate"

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield what can be read now; raises `zlib.error` on any other bytes."""
        if self._inflate is None:
            yield piece
            return
        is_more = True
        while is_more:
            ready = self._decompressed(piece)
            if self._inflate.eof:
                piece = self._inflate.unused_data
                self._inflate = zlib.decompressobj(wbits=47)
            else:
                piece = self._inflate.unconsumed_tail
            is_more = bool(piece) or len(ready) == SLICE
            yield ready

    def _decompressed(self, piece: bytes) -> bytes:
        """Some servers send deflate without its header."""
        may_be_raw, self._may_be_raw = self._may_be_raw, False
        if self._inflate is None:
            return piece
        try:
            return self._inflate.decompress(piece, SLICE)
        except zlib.error:
            if not may_be_raw:
                raise
            self._inflate = zlib.decompressobj(wbits=-15)
            return self._inflate.decompress(piece, SLICE)


async def close_quietly(
    close: Callable[[], Awaitable[None]], *, seconds: float | None = None
) -> None:
    """Close, within so many seconds where a bound is given; a failure is only logged.

    It would otherwise replace the fault, or turn a whole answer into an error: the
    SDK closes the body inside its own iteration (A15, measured).
    """
    try:
        async with asyncio.timeout(seconds):
            await close()
    except Exception as error:  # noqa: BLE001 - nothing raised here says how a call ended
        logger.warning("[OpenAIWire] close failed: %s", type(error).__name__)


class _TappedStream(httpx2.AsyncByteStream):
    """A response body that passes the filter on its way to the SDK."""

    def __init__(
        self, inner: httpx2.AsyncByteStream, wire: Wire, encoding: str
    ) -> None:
        self._inner = inner
        self._observed = wire.observed
        self._filter = SseFilter(wire.observed)
        self._encoding = encoding
        self._inflater = Inflater(encoding)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            for part in self._decoded(piece):
                if ready := self._filter.feed(part):
                    yield ready
                if self._observed.too_long:
                    return
        if ready := self._filter.finish():
            yield ready

    def _decoded(self, piece: bytes) -> Iterator[bytes]:
        if self._encoding == UNREADABLE:
            raise httpx2.DecodingError("compressed in a way that was not asked for")
        try:
            yield from self._inflater.feed(piece)
        except zlib.error as error:
            raise httpx2.DecodingError(str(error)) from error

    async def aclose(self) -> None:
        await close_quietly(self._inner.aclose)


class _BoundedStream(httpx2.AsyncByteStream):
    """An error body, read as far as a diagnosis can need.

    The status has decided already: a body that stalls, breaks off or is not
    compressed as it claims only says less. The SDK reads it outside its own
    guards, so that an exception here would escape as it is.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, encoding: str) -> None:
        self._inner = inner
        self._inflater = Inflater(encoding)

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
            for part in self._readable(piece):
                yield part[:room]
                room -= len(part)
                if room <= 0:
                    return

    def _readable(self, piece: bytes) -> Iterator[bytes]:
        try:
            yield from self._inflater.feed(piece)
        except zlib.error:
            self._inflater = Inflater("identity")
            yield piece

    async def aclose(self) -> None:
        await close_quietly(self._inner.aclose)


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
            wire.refused = None
        response = await super().handle_async_request(request)
        if wire is None or not isinstance(response.stream, httpx2.AsyncByteStream):
            return response
        headers = response.headers
        wire.headers = {name.lower(): value for name, value in headers.items()}
        # What a moment in a header is measured from, where the gateway says none.
        wire.headers.setdefault("date", formatdate(usegmt=True))
        encoding = _encoding(headers)
        # Undone here and nowhere else: httpx2 raises where the SDK does not expect it.
        headers.pop("content-encoding", None)
        if 200 <= response.status_code < 300:
            response.stream = _TappedStream(response.stream, wire, encoding)
        else:
            wire.refused = response.status_code
            response.stream = _BoundedStream(response.stream, encoding)
            _make_decodable(headers)
        return response


def _encoding(headers: httpx2.Headers) -> str:
    """How a body is compressed: one way that we read, none, or one that we do not."""
    named = [
        name.strip().lower() for name in headers.get("content-encoding", "").split(",")
    ]
    known = [name for name in named if name in COMPRESSIONS + OTHER_COMPRESSIONS]
    if len(known) > 1 or (known and known[0] in OTHER_COMPRESSIONS):
        return UNREADABLE
    return known[0] if known else ""


def _make_decodable(headers: httpx2.Headers) -> None:
    """See to it that the text of an error body can be read, if not understood."""
    media, _, parameters = headers.get("content-type", "").partition(";")
    _, _, charset = parameters.partition("charset=")
    charset = charset.partition(";")[0].strip().strip("\"'")
    if parameters and not TEXT_CHARSET.fullmatch(charset):
        headers["content-type"] = f"{media}; charset=utf-8"
