"""Starting and stopping the practice gateway on loopback.

The server has a thread and an event loop of its own, so it serves a site that runs on
another loop just as well as a command that has none. It never leaves loopback.
"""

import asyncio
import contextlib
import logging
import socket
import threading
from types import TracebackType

from threads.practice.app import PracticeApp
from threads.practice.connection import Connection, Limits
from threads.practice.exchange import Application

HOST = "127.0.0.1"
BACKLOG = 256
STOP_SECONDS = 5.0
ACCEPT_AGAIN_SECONDS = 0.5

logger = logging.getLogger(__name__)


class PracticeServer:
    """A practice gateway that listens from `start()` until `stop()`.

    Both are quick, may be called from any thread and, more than once, change nothing.
    The thread is a daemon: a process that forgets to stop the server can still end.
    """

    def __init__(
        self,
        app: Application | None = None,
        *,
        port: int = 0,
        limits: Limits | None = None,
    ) -> None:
        self._app: Application = PracticeApp() if app is None else app
        self._port = port
        self._limits = Limits() if limits is None else limits
        self._guard = threading.Lock()
        self._running: _Running | None = None

    @property
    def base_url(self) -> str:
        """Where the gateway listens; raises RuntimeError unless it was started."""
        running = self._running
        if running is None:
            raise RuntimeError("The practice gateway is not running.")
        return running.base_url

    def start(self) -> str:
        """Listen, and return the base URL; connections are accepted from then on.

        Raises OSError when the port is taken.
        """
        with self._guard:
            if self._running is None:
                self._running = _Running(self._app, self._port, self._limits)
            return self._running.base_url

    def stop(self) -> None:
        """Break off every answer, close every connection, and end the thread."""
        with self._guard:
            running, self._running = self._running, None
            if running is not None:
                running.stop()

    def __enter__(self) -> "PracticeServer":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class _Running:
    """One run of the server: a listening socket, a loop, and the thread they are in."""

    def __init__(self, app: Application, port: int, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._connections: set[asyncio.Task[None]] = set()
        self._unclaimed: set[socket.socket] = set()
        # Bound here and not in the thread, so that a taken port is the caller's error
        # and nobody has to wait for the thread to come up.
        self._listening = socket.create_server((HOST, port), backlog=BACKLOG)
        self.base_url = f"http://{HOST}:{self._listening.getsockname()[1]}/v1"
        self._listening.setblocking(False)
        # Other loops cannot watch a listening socket.
        self._loop = asyncio.SelectorEventLoop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(
            target=self._run, name="practice-gateway", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread; everything is closed when it has ended."""
        with contextlib.suppress(RuntimeError):  # The loop has ended by itself.
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    # Connections are accepted here and not by `asyncio.start_server`, which loses one
    # that it has accepted and not yet announced when it is closed.

    async def _serve(self) -> None:
        self._listen()
        try:
            await self._stopping.wait()
        finally:
            self._loop.remove_reader(self._listening)
            self._listening.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            for unclaimed in self._unclaimed:
                unclaimed.close()

    def _listen(self) -> None:
        if not self._stopping.is_set():
            self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:
            logger.exception("The practice gateway cannot accept a connection")
            self._loop.remove_reader(self._listening)
            self._loop.call_later(ACCEPT_AGAIN_SECONDS, self._listen)
            return
        if len(self._connections) >= self._limits.connections:
            accepted.close()
            return
        self._unclaimed.add(accepted)
        task = self._loop.create_task(self._serve_connection(accepted))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve_connection(self, accepted: socket.socket) -> None:
        self._unclaimed.discard(accepted)
        accepted.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=accepted)
        await Connection(reader, writer, limits=self._limits).serve(self._app)
