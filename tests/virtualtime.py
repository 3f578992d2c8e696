"""An event loop whose clock jumps over the time in which nothing happens.

While sockets have something to read, or a thread works for the loop, its clock
stands still. Once all is quiet it is set forward to the next timer, so that five
minutes of silence over a real connection take a few milliseconds. The peer has to
live on the same loop: of one that thinks elsewhere nothing can be known.

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(asyncio.sleep(300))
"""

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")

GRACE_SECONDS = 0.0005
"""How long the sockets may be silent before they count as quiet. What is written to
loopback can be read at once, so this only covers a kernel that is busy."""

PATIENCE_SECONDS = 30.0
"""How long, on the real clock, a thread or a socket is waited for. Then somebody
waits for what will never come, and the test fails instead of hanging."""


class NothingHappensError(RuntimeError):
    """The loop waits for something that no timer, socket or thread will bring."""


class _JumpingSelector(selectors.DefaultSelector):
    """Asks the sockets; where they have nothing, lets the clock jump."""

    def __init__(self, grace_seconds: float) -> None:
        super().__init__()
        self._grace_seconds = grace_seconds
        self.is_held: Callable[[], bool] = lambda: False
        self.on_quiet: Callable[[], bool] = lambda: False
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        deadline = time.monotonic() + PATIENCE_SECONDS
        events = super().select(self._grace_seconds)
        while not events and (self.is_held() or timeout is None):
            if not self.is_held() and self.on_quiet():
                return events
            if time.monotonic() > deadline:
                raise NothingHappensError
            events = super().select(0.05)
        if events or self.on_quiet():
            return events
        if timeout is not None:
            self.now += timeout
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop on real sockets and threads, with a clock of its own."""

    def __init__(self, grace_seconds: float = GRACE_SECONDS) -> None:
        self._jumping = _JumpingSelector(grace_seconds)
        super().__init__(self._jumping)
        self._jumping.is_held = lambda: self._jobs > 0 or self.is_held()
        self._jumping.on_quiet = self._tell_quiet
        self._jobs = 0
        self._quiet: list[asyncio.Future[None]] = []
        self.is_held: Callable[[], bool] = lambda: False
        """May be set: true while something works for this loop that it cannot see."""

    def time(self) -> float:
        """Return the loop's own time, in seconds since it was made."""
        return self._jumping.now

    def run_in_executor(
        self, executor: Any, func: Callable[..., Result], *args: Any
    ) -> "asyncio.Future[Result]":
        """Run it in a thread, and let no time pass before it is done."""
        job: asyncio.Future[Result] = super().run_in_executor(executor, func, *args)
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
