"""One connection to one tool server, through the protocol's own SDK.

Importing the SDK takes a second and 28 MB: `client` imports this module when
the first server is used. It turns everything that the SDK raises into a
`ServerError` in plain words.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    Implementation,
    Tool,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from threads.tools.mcp.http import MOST_BYTES, Sending, current_sending, http_client
from threads.tools.mcp.results import text_of
from threads.tools.mcp.stdio import LastWords, parameters
from threads.tools.mcp.streams import Watched
from threads.tools.mcp.values import (
    STDIO,
    Listing,
    Outcome,
    ServerAddress,
    ServerError,
    bounded,
    cause_of,
    cleaned,
    unsafe,
)

CONNECT_SECONDS = 10.0
LIST_SECONDS = 10.0
MOST_PAGES = 20

CUT = ("Connection closed", "SSE stream ")
"""How the SDK's own words for a call begin that is never answered."""


class Connection:
    """A connection that is open, or has ended; used by any task of its loop."""

    def __init__(self, address: ServerAddress, noticed: Callable[[], None]) -> None:
        self.address = address
        self.has_ended = False
        self.has_new_tools = False
        self.is_garbled = False
        self.words: LastWords | None = None
        self.client: Client
        self._noticed = noticed

    async def hear(self, message: object) -> None:
        """Take what the server says unasked, and what is no message at all."""
        if isinstance(message, ToolListChangedNotification):
            self.has_new_tools = True
            self._noticed()
        elif isinstance(message, Exception):
            self.is_garbled = True

    def end(self) -> None:
        """Note that the server says nothing any more."""
        self.has_ended = True
        self._noticed()

    async def list_tools(self) -> Listing:
        """Ask for the server's tools, every page.

        Raises:
            ServerError: no list came.
        """
        self.has_new_tools = False
        sending = Sending()
        current_sending.set(sending)
        try:
            async with asyncio.timeout(LIST_SECONDS):
                return bounded([_listed(tool) for tool in await self._pages()])
        except TimeoutError:
            raise ServerError(self.silent("list its tools", LIST_SECONDS)) from None
        except MCPError as error:
            raise self.failure(error, sending) from error
        except (ValidationError, RuntimeError) as error:
            raise ServerError(f"{self} answered with a list that is none.") from error

    async def _pages(self) -> list[Tool]:
        tools, cursor = list[Tool](), None
        if self.client.server_capabilities.tools is None:
            return tools
        for _ in range(MOST_PAGES):
            page = await self.client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        return tools

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Outcome:
        """Call a tool; not bounded, since only the caller knows its limit.

        Raises:
            ServerError: no result came.
        """
        if self.has_ended:
            raise ServerError(f"{self} has ended.")
        sent = self._sendable(arguments)
        sending = Sending()
        current_sending.set(sending)
        try:
            result = await self.client.call_tool(name, sent)
        except MCPError as error:
            raise self.failure(error, sending) from error
        except ValidationError as error:
            raise ServerError(
                f"{self} sent an answer that is no result.", was_sent=True
            ) from error
        except RuntimeError as error:
            # A result that its own schema forbids, or a question back to a person.
            words = self.address.fit(str(error))
            raise ServerError(
                f"{self} sent a result that cannot be used: {words}",
                was_sent=True,
                is_broken=False,
            ) from error
        except Exception as error:  # whatever else the SDK lets through
            name = type(error).__name__
            raise ServerError(f"{self} broke ({name}).", was_sent=True) from error
        told = result.model_dump(by_alias=True, mode="json")
        text = text_of(told["content"], told.get("structuredContent"))
        return Outcome(self.address.without_secrets(text), result.is_error)

    def _sendable(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as JSON can hold them.

        What cannot be written would end the session, for everybody, below the SDK.
        """
        try:
            sent: dict[str, Any] = cleaned(arguments)
            json.dumps(sent, allow_nan=False)
        except (ValueError, RecursionError):
            raise ServerError(
                "The arguments cannot be sent as JSON.", is_broken=False
            ) from None
        return sent

    def failure(self, error: MCPError, sending: Sending) -> ServerError:
        """Say what an error of the SDK's means: refused, cut, or never sent."""
        words = self.address.fit(error.message)
        # Servers use the SDK's code for a closed connection for errors of their own.
        is_cut = error.code == CONNECTION_CLOSED and (
            self.has_ended or error.message.startswith(CUT)
        )
        if self.address.transport == STDIO:
            if is_cut:
                said = self.address.fit(self.words.line()) if self.words else ""
                return ServerError(f"{self} ended.", last_words=said, was_sent=True)
            return ServerError(f"{self} refused: {words}", is_broken=False)
        if sending.problem and not sending.has_left:
            return ServerError(f"{self} cannot be reached ({sending.problem}).")
        if sending.problem or is_cut:
            return ServerError(f"The connection to {self.inner} broke.", was_sent=True)
        return self._answered(error.code, words, sending)

    def _answered(self, code: int, words: str, sending: Sending) -> ServerError:
        status = sending.status
        if 300 <= status < 400:
            return ServerError(f"{self} redirects elsewhere, which is not followed.")
        if status >= 500:
            return ServerError(f"{self} failed (HTTP {status}): {words}", was_sent=True)
        if status >= 400:
            # 404 says that the session is over; the next call opens another.
            return ServerError(
                f"{self} refused (HTTP {status}): {words}", is_broken=status == 404
            )
        if code == PARSE_ERROR or status == 202 or not sending.is_spoken:
            return ServerError(
                f"{self} sent an answer that is no result.", was_sent=True
            )
        return ServerError(f"{self} refused: {words}", is_broken=False)

    def silent(self, what: str, seconds: float) -> str:
        """Say that nothing came in time."""
        words = f"{self} did not {what} within {seconds:.0f} seconds"
        odd = "; what it sends is not the protocol" if self.is_garbled else ""
        return f"{words}{odd}."

    @property
    def inner(self) -> str:
        """The server, in the middle of a sentence."""
        return f"the tool server {self.address.slug!r}"

    def __str__(self) -> str:
        return f"The tool server {self.address.slug!r}"


@asynccontextmanager
async def connected(
    address: ServerAddress, noticed: Callable[[], None]
) -> AsyncIterator[Connection]:
    """Open a connection, in one task from beginning to end; the process ends with it.

    `noticed` is called when the server ends or says that its tools have changed.

    Raises:
        ServerError: there is no such server, or it does not speak the protocol.
    """
    connection = Connection(address, noticed)
    async with AsyncExitStack() as stack:
        streams = _stdio if address.transport == STDIO else _http
        connection.client = Client(
            streams(connection),
            cache=None,
            message_handler=connection.hear,
            client_info=Implementation(name="chatsite", version="1"),
        )
        sending = Sending()
        current_sending.set(sending)
        try:
            # Not anyio's: a scope of anyio cannot end while one entered in it goes on.
            async with asyncio.timeout(CONNECT_SECONDS):
                await stack.enter_async_context(connection.client)
        except TimeoutError:
            raise ServerError(connection.silent("answer", CONNECT_SECONDS)) from None
        except Exception as error:
            raise _unopened(connection, cause_of(error), sending) from error
        yield connection


@asynccontextmanager
async def _stdio(connection: Connection) -> AsyncIterator[Any]:
    words = connection.words = LastWords()
    try:
        async with stdio_client(
            parameters(connection.address), errlog=words.writer
        ) as (reads, writes):
            words.writer.close()
            yield Watched(reads, connection.end), writes
    finally:
        words.close()


@asynccontextmanager
async def _http(connection: Connection) -> AsyncIterator[Any]:
    address = connection.address
    if problem := unsafe(address.url):
        raise ServerError(problem)
    async with (
        http_client(address) as client,
        streamable_http_client(
            address.url, http_client=client, max_sse_event_size=MOST_BYTES
        ) as (reads, writes),
    ):
        yield Watched(reads, connection.end), writes


def _unopened(
    connection: Connection, cause: BaseException, sending: Sending
) -> ServerError:
    match cause:
        case ServerError():
            return cause
        case MCPError():
            return connection.failure(cause, sending)
        case OSError() | ValueError() | RuntimeError():
            words = connection.address.fit(str(cause))
            return ServerError(f"{connection} cannot be used: {words}")
        case _:
            return ServerError(f"{connection} broke ({type(cause).__name__}).")


def _listed(tool: Tool) -> dict[str, Any]:
    """A tool as it is kept. What it says of itself is a hint, and taken as one."""
    hints = tool.annotations
    return {
        "name": tool.name,
        "description": tool.description or tool.title or tool.name,
        "schema": tool.input_schema,
        "is_read_only": hints is not None and hints.read_only_hint is True,
    }
