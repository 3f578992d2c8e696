"""One HTTP request and its response, as an ASGI application sees them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol, TypeAlias
from urllib.parse import unquote

import h11

logger = logging.getLogger(__name__)

# The ASGI extension `practice.abort`: an application may send
# {"type": "practice.abort", "reset": bool, "body": bytes} once its response has started.
# The connection is then reset, or closed after the first bytes of an HTTP chunk.
ABORT = "practice.abort"

Message: TypeAlias = dict[str, Any]
Application: TypeAlias = Callable[
    [
        Message,
        Callable[[], Awaitable[Message]],
        Callable[[Message], Awaitable[None]],
    ],
    Awaitable[None],
]


class ConnectionOverError(Exception):
    """Nothing more can be exchanged on this connection."""


class RefusedError(Exception):
    """The request is answered with this status, and the connection closed."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Line(Protocol):
    """What an exchange needs of the connection that it takes place on."""

    async def write(self, event: h11.Event) -> None: ...

    async def abort(self, *, reset: bool, half_chunk: bytes) -> None: ...

    async def client_gone(self) -> None: ...


def response_head(status: int, headers: list[tuple[bytes, bytes]]) -> h11.Response:
    """The head of a response, with the usual phrase for its status."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return h11.Response(
        status_code=int(status), reason=phrase.encode(), headers=headers
    )


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was read to its end."""

    head: h11.Request
    body: bytes


class Exchange:
    """Carries one request to an application, and its messages back to the line."""

    def __init__(self, line: Line, request: Request) -> None:
        self._line = line
        self._request = request
        self._body_taken = False
        self._gone = asyncio.Event()
        self._started = False
        self._over = False
        self._complete = False
        self._chunked = request.head.http_version == b"1.1"

    async def run(self, app: Application, *, seconds: float) -> None:
        """Run the application.

        Returns when the response is complete. Raises ConnectionOverError when it is not
        and never will be, RefusedError when the application failed before it began.
        """
        watching = asyncio.create_task(self._watch())
        try:
            async with asyncio.timeout(seconds):
                await app(self._scope(), self._receive, self._send)
        except (OSError, TimeoutError) as error:
            raise ConnectionOverError from error
        except Exception as error:
            logger.exception("The practice application failed")
            if self._started:
                raise ConnectionOverError from error
            raise RefusedError(
                HTTPStatus.INTERNAL_SERVER_ERROR, "The practice gateway failed."
            ) from error
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        if not self._complete:
            raise ConnectionOverError

    async def _watch(self) -> None:
        await self._line.client_gone()
        self._gone.set()

    async def _receive(self) -> Message:
        if not self._body_taken:
            self._body_taken = True
            body = self._request.body
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if self._gone.is_set() or self._over:
            raise OSError("The connection is over.")
        match message["type"]:
            case "http.response.start":
                await self._start(message)
            case "http.response.body":
                await self._continue(message)
            case "practice.abort":
                self._over = True
                await self._line.abort(
                    reset=message["reset"],
                    half_chunk=message.get("body", b"") if self._chunked else b"",
                )
            case unknown:
                raise ValueError(f"Unknown ASGI message: {unknown}")

    async def _start(self, message: Message) -> None:
        self._started = True
        headers = list(message["headers"])
        if any(name.lower() == b"content-length" for name, _ in headers):
            self._chunked = False
        await self._line.write(response_head(message["status"], headers))

    async def _continue(self, message: Message) -> None:
        body = message.get("body", b"")
        if body and self._request.head.method != b"HEAD":
            await self._line.write(h11.Data(data=body))
        if not message.get("more_body", False):
            await self._line.write(h11.EndOfMessage())
            self._over = self._complete = True

    def _scope(self) -> Message:
        head = self._request.head
        path, _, query = head.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": head.http_version.decode("ascii"),
            "method": head.method.decode("ascii"),
            "scheme": "http",
            "path": unquote(path.decode("ascii", "replace")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": [(bytes(name), bytes(value)) for name, value in head.headers],
            "extensions": {ABORT: {}},
        }
