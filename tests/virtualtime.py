"""An event loop whose clock jumps over the time in which nothing happens.

While sockets have something to read, or a thread works for the loop, its clock
stands still. Once all is quiet it is set forward to the next timer, so that five
minutes of silence over a real connection take less than a millisecond. The peer has
to live on the same loop: of one that thinks elsewhere nothing can be known.

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(asyncio.sleep(300))
"""

import asyncio
import selectors
import socket
import time
from collections.abc import Callable
from typing import Any

PATIENCE_SECONDS = 30.0
"""How long, on the real clock, a thread or a socket is waited for. Then somebody
waits for what will never come, and the test fails instead of hanging."""


class NothingHappensError(RuntimeError):
    """The loop waits for something that no timer, socket or thread will bring."""


class _Probe:
    """Asks the kernel whether it has delivered all that was sent over loopback.

    It delivers in order, though under load not at once: what comes after cannot
    have arrived before.
    """

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self._here = socket.create_connection(server.getsockname())
            self._there, _ = server.accept()
        self._here.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def wait(self) -> None:
        """Return once everything sent before can be read."""
        self._here.send(b"?")
        self._there.recv(1)

    def close(self) -> None:
        self._here.close()
        self._there.close()


class _JumpingSelector(selectors.DefaultSelector):
    """Asks the sockets; where they have nothing, lets the clock jump."""

    def __init__(self) -> None:
        super().__init__()
        self.is_held: Callable[[], bool] = lambda: False
        self.on_quiet: Callable[[], bool] = lambda: False
        self.now = 0.0
        self._probe = _Probe()

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0)
        if events or (timeout is not None and timeout <= 0):
            return events
        self._probe.wait()
        events = super().select(0)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not events and (self.is_held() or not self._may_jump(timeout)):
            if time.monotonic() > deadline:
                raise NothingHappensError
            events = super().select(0.05)
        return events

    def _may_jump(self, timeout: float | None) -> bool:
        """All is quiet: let those go on who wait for that, or else the clock."""
        if self.on_quiet():
            return True
        if timeout is None:
            return False
        self.now += timeout
        return True

    def close(self) -> None:
        super().close()
        self._probe.close()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop on real sockets and threads, with a clock of its own.

    `is_held` may be set: true while something works for the loop that it cannot see.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        self._jumping.is_held = lambda: self._jobs > 0 or self.is_held()
        self._jumping.on_quiet = self._tell_quiet
        self._jobs = 0
        self._quiet: list[asyncio.Future[None]] = []
        self.is_held: Callable[[], bool] = lambda: False

    def time(self) -> float:
        """Return the loop's own time, in seconds since it was made."""
        return self._jumping.now

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """Run it in a thread, and let no time pass before it is done."""
        job: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
        self._jobs += 1
        job.add_done_callback(self._job_done)
        return job

    async def quiet(self) -> None:
        """Return once all has happened that can happen without time passing."""
        future: asyncio.Future[None] = self.create_future()
        self._quiet.append(future)
        await future

    def _job_done(self, _job: object) -> None:
        self._jobs -= 1

    def _tell_quiet(self) -> bool:
        """Wake those who wait for quiet; says whether there were any."""
        waiting, self._quiet = self._quiet, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
        return bool(waiting)
