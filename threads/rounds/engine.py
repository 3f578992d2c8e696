"""The rounds that run in this process: started, stopped, waited for, ended.

Each runs as a task on the loop it was started on. A sweeper task beside them
ends rounds whose worker is gone, takes up those that nobody claimed, and starts
those that are due by the clock.
"""

import asyncio
import logging

from asgiref.sync import async_to_sync
from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from threads.core.snapshot import Position
from threads.gateway.clients import close_clients
from threads.perloop import PerLoop, start_task
from threads.rounds import broadcast, ledger, schedules, sweep
from threads.rounds.database import close_database, in_database
from threads.rounds.runner import Run
from threads.tools.mcp import health

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 20.0
SHUTDOWN_SECONDS = 8.0


class Engine:
    """The rounds of one event loop."""

    def __init__(self) -> None:
        self._runs: dict[int, Run] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._sweeper: asyncio.Task[None] | None = None

    def begin(self, round_id: int) -> None:
        """Run a round as a task; one that runs here already is left alone.

        One that is just being let go of may be wanted again: then it is taken up
        once that is done.
        """
        if round_id in self._tasks:
            self._runs[round_id].is_wanted = True
            return
        run = self._runs[round_id] = Run(round_id)
        task = start_task(self._carry(run), name=f"run-{round_id}")
        self._tasks[round_id] = task

    def keep_house(self) -> None:
        """Let the sweeper run on this loop."""
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = start_task(self._sweep_for_ever(), name="sweeper")

    def run(self, round_id: int) -> Run | None:
        """Return a round that runs here."""
        return self._runs.get(round_id)

    async def wait(self, round_id: int) -> None:
        """Wait until a round that runs here is over; at once for any other."""
        task = self._tasks.get(round_id)
        if task is not None:
            await asyncio.wait({task})

    async def shutdown(self) -> None:
        """End every round of this loop, within a few seconds."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for run in self._runs.values():
            run.shut_down()
        if self._tasks:
            await asyncio.wait(set(self._tasks.values()), timeout=SHUTDOWN_SECONDS)

    async def _carry(self, run: Run) -> None:
        try:
            place = await in_database(ledger.place_of, run.round_id)
            if place is not None:
                await broadcast.round_started(place)
            if not await run.execute():
                await _tell_if_over(run.round_id)
        except Exception:
            # Whatever state this leaves behind is the sweeper's to end.
            logger.exception("Round %s broke off", run.round_id)
        finally:
            self._runs.pop(run.round_id, None)
            self._tasks.pop(run.round_id, None)
            if run.is_wanted and run.is_let_go and not run.markers.shutdown:
                self.begin(run.round_id)

    async def _sweep_for_ever(self) -> None:
        while True:
            try:
                await self.sweep()
            except (DatabaseError, InterfaceError) as error:
                logger.warning("SWEEP_FAILED %s", type(error).__name__)
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> list[int]:
        """End lost rounds, take up unclaimed ones, and start what is due by the clock.

        Returns the rounds that were ended.
        """
        held = frozenset(self._runs)
        ended = await in_database(sweep.end_lost_rounds, timezone.now(), held=held)
        for round_id in ended:
            await _tell_if_over(round_id)
        for round_id in await in_database(sweep.unclaimed_rounds, timezone.now()):
            self.begin(round_id)
        for round_id in await in_database(schedules.start_due, timezone.now()):
            self.begin(round_id)
        return ended


_engines = PerLoop(Engine)


def engine() -> Engine:
    """Return the running loop's engine."""
    return _engines.get()


async def start(round_id: int) -> None:
    """Run a queued round on this loop; returns at once."""
    engine().begin(round_id)


def set_going(round_id: int) -> None:
    """Run a round, and keep house, on the loop that serves this synchronous code.

    Everything that the round needs has been committed.
    """
    async_to_sync(start)(round_id)
    async_to_sync(keep_house)()


async def keep_house() -> None:
    """Let this loop end lost rounds, take up unclaimed ones and start what is due.

    For servers: a command that ends soon would take up what it cannot finish.
    """
    engine().keep_house()


async def stop(round_id: int, *, seen: Position | None = None) -> None:
    """Stop a round, wherever it runs.

    `seen` is how much the person had before their eyes; what came after is not
    kept. A round that runs here is broken off before the marker is written.
    """
    run = engine().run(round_id)
    if run is not None:
        run.stop(seen)
    else:
        engine().keep_house()
    await in_database(ledger.request_stop, round_id)
    if run is None or run.is_let_go:
        await _tell_if_over(round_id)


async def wait(round_id: int) -> None:
    """Wait until a round that runs on this loop is over."""
    await engine().wait(round_id)


async def shutdown() -> None:
    """End what runs on this loop and let go of its connections."""
    await engine().shutdown()
    await health.shut_down()
    await close_clients()
    await close_database()


async def _tell_if_over(round_id: int) -> None:
    place = await in_database(ledger.place_of, round_id, over=True)
    if place is not None:
        await broadcast.round_ended(place)
