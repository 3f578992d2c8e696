"""The sessions with tool servers: one for each server and event loop.

How it works. A task of its own owns a session: it opens the connection and closes
it, since what the SDK enters in one task has to be left in the same. Whoever calls
a tool does so in a further task, which a cancelled round leaves behind at once and
which tells the server so. A session that broke is retired: whoever uses it goes on,
the next call opens another. One that nobody uses is closed after some minutes.
It knows neither the database nor rounds; the SDK is imported with the first session.
"""

import asyncio
import importlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from threads.perloop import PerLoop, start_task
from threads.tools.mcp.values import (
    Listing,
    Outcome,
    ServerAddress,
    ServerError,
    cause_of,
)

if TYPE_CHECKING:
    from threads.tools.mcp.wire import Connection

logger = logging.getLogger(__name__)

CALL_SECONDS = 58.0
"""For a call with all that comes before it: just inside the tool runner's own limit,
so that what is known can be said."""

OPEN_SECONDS = 25.0
"""Connecting, listing, and ending a process that does not answer."""

IDLE_SECONDS = 300.0
STALE_SECONDS = 300.0
"""After how long the tools of a session in use are listed again."""

RELIST_SECONDS = 10.0
"""How often a server that says its tools have changed is believed."""

CLOSE_SECONDS = 8.0

Report = Callable[[Listing | str], None]
"""Is told the tools of a server that works, or why one does not; never waits."""


class Session:
    """One session with one server, owned by a task."""

    def __init__(self, address: ServerAddress, report: Report) -> None:
        self.address = address
        self.listing = Listing([])
        self._report = report
        self._users = 0
        self._listed_at = 0.0
        self._calls = set[asyncio.Task[Outcome]]()
        self._woken = asyncio.Event()
        self._is_retired = self._is_shut = False
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[Connection | ServerError] = loop.create_future()
        self.task = start_task(self._own(), name=f"tool-server-{address.slug}")

    @property
    def is_usable(self) -> bool:
        """Tell whether a new call may use it."""
        if self._is_retired or self.task.done():
            return False
        opened = self._opened.result() if self._opened.done() else None
        return opened is None or not (
            isinstance(opened, ServerError) or opened.has_ended
        )

    def retire(self) -> None:
        """Let nobody else use it, and close it once nobody does."""
        self._is_retired = True
        self._woken.set()

    async def shut(self) -> None:
        """Close it now, whoever uses it; returns within some seconds."""
        self._is_shut = True
        self.retire()
        if not self._opened.done():
            self.task.cancel()
        # The SDK ends a process within six seconds, whatever it does.
        _, late = await asyncio.wait({self.task}, timeout=CLOSE_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.wait({self.task, *self._calls}, timeout=1)

    async def opened(self) -> "Connection":
        """Wait until it is open.

        Raises:
            ServerError: it could not be opened.
        """
        await asyncio.wait({self._opened}, timeout=OPEN_SECONDS)
        if not self._opened.done():
            raise ServerError(f"The tool server {self.address.slug!r} does not answer.")
        opened = self._opened.result()
        if isinstance(opened, ServerError):
            raise ServerError(str(opened), last_words=opened.last_words) from opened
        return opened

    async def call(
        self, name: str, arguments: dict[str, Any], deadline: float
    ) -> Outcome:
        """Call a tool of this server; `deadline` is a time of the loop.

        Raises:
            ServerError: no result came.
        """
        self._users += 1
        try:
            connection = await self.opened()
            return await self._call(connection, name, arguments, deadline)
        except ServerError as error:
            if error.is_broken:
                self.retire()
                if self._opened.done() and not isinstance(
                    self._opened.result(), ServerError
                ):
                    self._report(error.report)
            raise
        finally:
            self._users -= 1
            self._woken.set()

    async def _call(
        self,
        connection: "Connection",
        name: str,
        arguments: dict[str, Any],
        deadline: float,
    ) -> Outcome:
        seconds = max(0.0, deadline - asyncio.get_running_loop().time())
        call = start_task(connection.call_tool(name, arguments), name=f"call-{name}")
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        try:
            await asyncio.wait({call}, timeout=seconds)
            if call.done() and not call.cancelled():
                return call.result()
        finally:
            # Cancelled, or out of time: the SDK tells the server that nobody waits.
            call.cancel()
        raise ServerError(connection.silent("answer", CALL_SECONDS), was_sent=True)

    async def _own(self) -> None:
        try:
            wire = await asyncio.to_thread(
                importlib.import_module, "threads.tools.mcp.wire"
            )
            async with wire.connected(self.address, self._woken.set) as connection:
                await self._list(connection)
                self._opened.set_result(connection)
                await self._stay(connection)
        except Exception as error:  # noqa: BLE001 - whatever the SDK lets through
            self._fail(cause_of(error))
        finally:
            self._is_retired = True
            if not self._opened.done():
                self._opened.set_result(ServerError("The site is shutting down."))

    def _fail(self, cause: BaseException) -> None:
        if not isinstance(cause, ServerError):
            name = type(cause).__name__
            cause = ServerError(
                f"The tool server {self.address.slug!r} broke ({name})."
            )
        logger.warning(
            "TOOL_SERVER_FAILED server=%s at=%s", self.address.slug, self.address.place
        )
        self._report(cause.report)
        if not self._opened.done():
            self._opened.set_result(cause)

    async def _list(self, connection: "Connection") -> None:
        self._listed_at = asyncio.get_running_loop().time()
        self.listing = await connection.list_tools()
        self._report(self.listing)

    async def _list_again(self, connection: "Connection") -> None:
        try:
            await self._list(connection)
        except ServerError as error:
            # Calls that are under way are not cut for it.
            self._report(error.report)
            self.retire()

    async def _stay(self, connection: "Connection") -> None:
        """Wait until the session is of no more use; list again when it is time."""
        clock = asyncio.get_running_loop().time
        while True:
            self._woken.clear()
            is_left = self._is_retired and not self._users
            if connection.has_ended or self._is_shut or is_left:
                return
            age = clock() - self._listed_at
            is_told = connection.has_new_tools
            if age > STALE_SECONDS or (is_told and age > RELIST_SECONDS):
                await self._list_again(connection)
                continue
            pause = RELIST_SECONDS if is_told else IDLE_SECONDS
            try:
                await asyncio.wait_for(self._woken.wait(), pause)
            except TimeoutError:
                if not self._users and not is_told:
                    return


class Sessions:
    """The sessions of one event loop."""

    def __init__(self) -> None:
        self._current: dict[ServerAddress, Session] = {}
        self._all = set[Session]()

    def get(self, address: ServerAddress, report: Report) -> tuple[Session, bool]:
        """Return the session of a server, and whether it is a new one."""
        session = self._current.get(address)
        if session is not None and session.is_usable:
            return session, False
        for other in [each for each in self._current if each.slug == address.slug]:
            self._current.pop(other).retire()
        session = self._current[address] = Session(address, report)
        self._all.add(session)
        session.task.add_done_callback(lambda _: self._all.discard(session))
        return session, True

    async def shut(self) -> None:
        """Close all of them."""
        self._current.clear()
        await asyncio.gather(*(session.shut() for session in list(self._all)))


_sessions = PerLoop(Sessions)


async def call_tool(
    address: ServerAddress, name: str, arguments: dict[str, Any], *, report: Report
) -> Outcome:
    """Call a tool of a server, on the session that is open or on a new one.

    Raises:
        ServerError: no result came; it says whether the call may have had effects.
    """
    deadline = asyncio.get_running_loop().time() + CALL_SECONDS
    session, is_new = _sessions.get().get(address, report)
    try:
        return await session.call(name, arguments, deadline)
    except ServerError as error:
        if is_new or error.was_sent or not error.is_broken:
            raise
    # The server had forgotten the session, or was started anew, since the last call.
    session, _ = _sessions.get().get(address, report)
    return await session.call(name, arguments, deadline)


async def try_server(address: ServerAddress, report: Report) -> None:
    """Ask a server for its tools, on a session that serves for nothing else.

    `report` is told before the session is closed.

    Raises:
        ServerError: it cannot be used.
    """
    session = Session(address, report)
    try:
        await session.opened()
    finally:
        await session.shut()


async def close_servers() -> None:
    """Close the sessions of the running loop and end their processes."""
    await _sessions.get().shut()
