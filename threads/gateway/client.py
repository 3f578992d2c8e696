"""The only importer of the openai SDK: a request out, decoded chunks in.

Facts that this module leans on, each pinned by tests/gateway/test_sdk_*facts.py:

- `post(cast_to=object, stream_cls=AsyncStream[object])` yields plain dicts at a
  fifth of the cost of typed chunks; `stream_mode="events"` hands an error chunk
  over instead of raising and losing the text that shares it.
- The SDK's stream ends cleanly on many broken bodies; what really happened is
  seen on the wire (`threads.gateway.wire`), below the SDK.
- `max_retries` concerns refused POSTs only; each try passes the transport.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_address
from typing import cast
from urllib.parse import SplitResult, urlsplit

import httpx2
from openai import (
    APIConnectionError,
    APIError,
    APIResponseValidationError,
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    AsyncStream,
    OpenAIError,
    omit,
)

from threads.core.events import ErrorReport, StreamEvent
from threads.core.evidence import StreamEnd
from threads.core.faults import Arrival
from threads.gateway.chunks import ChunkReader
from threads.gateway.ends import decoded, end_of_body, end_of_stream, stray_error
from threads.gateway.listing import ListedModel, models_in
from threads.gateway.transport import TappedTransport, Wire, current_wire

CONNECT_SECONDS = 10.0
TRANSPORT_RETRIES = 2
"""The SDK's own tries of a refused POST, explicit (requirement C6, X7)."""

NO_ACCOUNT_HEADERS = {"OpenAI-Organization": omit, "OpenAI-Project": omit}
"""The SDK reads these from the environment and would tell every gateway."""

CHAIN_LINKS, CHAIN_LENGTH = 4, 200
"""How much of an exception's causes is read (classifier, order of evidence 5)."""


REPORTED = re.compile(r"""(?is)(?=.*\berror\b)[^{}"]*""")
"""A frame in words: no piece of a chunk has neither a brace nor a quotation mark."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a request goes. The key is in memory only."""

    base_url: str
    api_key: str = field(repr=False)
    sends_usage: bool = True

    @property
    def host(self) -> str:
        """Host, and port where one is given: all of an address that may be logged."""
        return _split(self.base_url).netloc.rpartition("@")[2]

    @property
    def is_local(self) -> bool:
        """Loopback and private hosts may be asked without a key (G16)."""
        host = _split(self.base_url).hostname or ""
        if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
            return True
        try:
            address = ip_address(host)
        except ValueError:
            return "." not in host
        return address.is_loopback or address.is_private


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


class GatewayClient:
    """One SDK client for one endpoint and event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._http = httpx2.AsyncClient(
            transport=TappedTransport(keepalive_connections=50),
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            trust_env=False,
            follow_redirects=False,
            headers={"accept-encoding": "identity"},
        )

    @cached_property
    def _sdk(self) -> AsyncOpenAI:
        """Built at the first request, where a bad address can be reported."""
        return AsyncOpenAI(
            base_url=self.endpoint.base_url,
            api_key=self.endpoint.api_key or "none",
            max_retries=TRANSPORT_RETRIES,
            http_client=self._http,
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            default_headers=cast(Mapping[str, str], NO_ACCOUNT_HEADERS),
        )

    async def open(
        self, body: Mapping[str, object], wire: Wire
    ) -> "EventStream | StreamEnd":
        """Send one request; a refusal or a failed connection is a `StreamEnd`."""
        token = current_wire.set(wire)
        try:
            stream = await self._sdk.post(
                "/chat/completions",
                body=dict(body),
                cast_to=object,
                stream=True,
                stream_cls=AsyncStream[object],
                options={
                    "stream_mode": "events",
                    "headers": {"accept": "text/event-stream"},
                },
            )
        except OpenAIError as error:
            return end_of(error, wire)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            if isinstance(error, UnicodeEncodeError) and error.encoding == "utf-8":
                raise  # the messages that we sent, no address
            return StreamEnd(
                Arrival.UNREACHABLE, words=f"invalid url {type(error).__name__}"
            )
        finally:
            current_wire.reset(token)
        return EventStream(stream, wire)

    async def list_models(self, *, seconds: float) -> list[ListedModel]:
        """Return the models that the gateway lists; none when it does not say.

        Read from the bytes: the SDK's own page fails on what is no such list, and
        its text on a charset that is none.
        """
        try:
            async with asyncio.timeout(seconds):
                response = await self._sdk.get("/models", cast_to=httpx2.Response)
            return models_in(json.loads(response.content))
        except (APIError, TimeoutError, ValueError, RecursionError):
            return []

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()


class EventStream:
    """The chunks of one accepted response, one at a time."""

    def __init__(self, stream: AsyncStream[object], wire: Wire) -> None:
        self._stream = stream
        self._wire = wire
        self.reader = ChunkReader()

    async def next(self) -> list[StreamEvent] | StreamEnd:
        """Wait for the next chunk, or for the end of the body.

        Decoding errors are the provider's: they are caught around the SDK's own
        reader and nowhere else (requirement A13). JSON of absurd depth, or with a
        number of absurd length, is refused by Python with these errors too.
        """
        observed = self._wire.observed
        try:
            chunk = await self._stream.__anext__()
        except StopAsyncIteration:
            return end_of_body(self._wire)
        except (ValueError, RecursionError):
            return self._unreadable()
        except OpenAIError as error:
            return self._failed(error)
        event, _ = self._frame()
        return self.reader.read(chunk, event, observed.http_status)

    def end(self, arrival: Arrival, *, words: str = "") -> StreamEnd:
        """Say how the stream ends now, with what stood beside its events."""
        return end_of_stream(self._wire, arrival, words=words)

    async def close(self) -> None:
        """Close the response and with it, mid-stream, the connection."""
        await self._stream.close()

    def _frame(self) -> tuple[str, bytes]:
        """The frame which the SDK has just read."""
        handed = self._wire.observed.handed
        return handed.popleft() if handed else ("", b"")

    def _failed(self, error: OpenAIError) -> list[StreamEvent] | StreamEnd:
        if isinstance(error, APITimeoutError):
            is_begun = self._wire.observed.frames > 0
            return self.end(Arrival.SILENT_MID if is_begun else Arrival.SILENT_START)
        if isinstance(error, APIConnectionError):
            undecodable = isinstance(error.__cause__, httpx2.DecodingError)
            return self.end(
                Arrival.UNDECODABLE if undecodable else Arrival.BROKEN,
                words=chain_words(error),
            )
        body = error.body if isinstance(error, APIError) else None
        return [ErrorReport(body, self._wire.observed.http_status)]

    def _unreadable(self) -> list[StreamEvent] | StreamEnd:
        """An error that was written into an unfinished frame is still an error."""
        event, payload = self._frame()
        text = payload.decode("utf-8", "replace")
        if event == "error" or REPORTED.fullmatch(text):
            return [ErrorReport(text, self._wire.observed.http_status)]
        if (report := stray_error(text)) is not None:
            return [ErrorReport(report, self._wire.observed.http_status)]
        return self.end(Arrival.UNREADABLE)


def end_of(error: OpenAIError, wire: Wire) -> StreamEnd:
    """Say how a request ended that the SDK raised for, whatever it raised."""
    match error:
        case APIStatusError():
            return StreamEnd(
                Arrival.STATUS,
                http_status=error.status_code,
                body=_refused_body(error),
                headers=wire.headers,
            )
        case APITimeoutError() if isinstance(error.__cause__, httpx2.ReadTimeout):
            return StreamEnd(Arrival.SILENT_START, headers=wire.headers)
        case APIConnectionError():
            return StreamEnd(Arrival.UNREACHABLE, words=chain_words(error))
        case APIResponseValidationError():
            return StreamEnd(Arrival.UNREADABLE, headers=wire.headers)
        case APIError():
            return StreamEnd(
                Arrival.STREAMED_ERROR, body=error.body, headers=wire.headers
            )
        case _:
            return StreamEnd(Arrival.STREAMED_ERROR, headers=wire.headers)


def chain_words(error: BaseException) -> str:
    """Join the words of an exception and its causes, bounded; a chain may be a ring."""
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(links) < CHAIN_LINKS and link not in links:
        links.append(link)
        link = link.__cause__ or link.__context__
    return " < ".join(f"{type(each).__name__} {each}"[:CHAIN_LENGTH] for each in links)


def _refused_body(error: APIStatusError) -> object:
    """The whole body: the SDK keeps only the inner error object of it."""
    try:
        text = error.response.text
    except httpx2.ResponseNotRead:
        return error.body
    if text.count("\N{REPLACEMENT CHARACTER}") > 1 + len(text) // 4:
        return None  # bytes of something else, not words
    return decoded(text)
