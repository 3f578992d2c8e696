"""The HTTP below the SDK: what is noted of each request to a tool server.

An exception below the SDK's transport would end the session for everybody, and of
a refusal the SDK tells only that there was one. A call is sent in the context of
the task that makes it, so that its `Sending` travels in a context variable.
"""

import ssl
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass

import httpx2

from threads.tools.mcp.values import ServerAddress

CONNECT_SECONDS = 10.0
GOODBYE_SECONDS = 2.0
MOST_BYTES = 16 * 1024 * 1024
"""The largest answer that is read."""

REACHED_NOBODY = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
)


@dataclass(slots=True)
class Sending:
    """What the latest request of one call looked like below the SDK."""

    has_left: bool = False
    status: int = 0
    is_spoken: bool = True
    problem: str = ""


current_sending: ContextVar[Sending | None] = ContextVar("sending", default=None)


class NotedTransport(httpx2.AsyncHTTPTransport):
    """Notes each request; one that breaks is answered with 503, to the SDK."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        sending = current_sending.get() or Sending()
        if request.method == "DELETE":
            # The goodbye of a session: a server that hangs does not hold us up.
            waits = ("connect", "read", "write", "pool")
            request.extensions["timeout"] = dict.fromkeys(waits, GOODBYE_SECONDS)
        try:
            response = await super().handle_async_request(request)
        except httpx2.TransportError as error:
            # The SDK may look for the rest of an answer with another request: that this
            # one reaches nobody takes nothing back.
            sending.has_left = sending.has_left or not isinstance(error, REACHED_NOBODY)
            sending.problem = type(error).__name__
            return httpx2.Response(503, request=request)
        kind = response.headers.get("content-type", "").lower()
        is_json = kind.startswith("application/json")
        sending.has_left = True
        if request.method == "POST":
            # What it says of another request is not said of the call.
            sending.status = response.status_code
            sending.is_spoken = is_json or kind.startswith("text/event-stream")
        if is_json and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = BoundedBody(response.stream)
        return response


class BoundedBody(httpx2.AsyncByteStream):
    """A body up to a size; what breaks it is of the kind that the SDK catches."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body piece by piece."""
        size = 0
        try:
            async for piece in self._inner:
                size += len(piece)
                if size > MOST_BYTES:
                    raise httpx2.StreamError("the answer is too large")
                yield piece
        except httpx2.TransportError as error:
            raise httpx2.StreamError("the connection was lost") from error

    async def aclose(self) -> None:
        """Close the body."""
        await self._inner.aclose()


def http_client(address: ServerAddress) -> httpx2.AsyncClient:
    """Return a client that sends the server's token, to its address and nowhere else."""
    headers = {"accept-encoding": "identity"}
    if address.token:
        headers["authorization"] = f"Bearer {address.token}"
    return httpx2.AsyncClient(
        transport=NotedTransport(verify=_tls(address.url)),
        headers=headers,
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        trust_env=False,
        follow_redirects=False,
        # The SDK follows redirects inside an origin by itself, up to this many.
        max_redirects=0,
    )


def _tls(url: str) -> ssl.SSLContext:
    """Loading the system's certificates takes a tenth of a second: only where used."""
    if url.startswith("https:"):
        return ssl.create_default_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
