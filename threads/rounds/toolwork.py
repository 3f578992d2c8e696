"""The tools of one round: recorded, run, guarded, and waited for.

Nothing here is ever run twice: a run begins by a mark in the ledger that only one
process can set (requirement F6).
"""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from itertools import groupby

from django.db import DatabaseError, InterfaceError

from threads.core.events import ToolCall
from threads.core.faults import Verdict
from threads.core.spiral import Spiral
from threads.gateway.calls import CallEnded
from threads.models import ToolRun, ToolTurn
from threads.perloop import start_task
from threads.rounds import broadcast, exchanges, ledger
from threads.rounds.brief import Brief
from threads.rounds.database import in_database
from threads.rounds.hub import announce
from threads.rounds.live import LiveCell
from threads.rounds.progress import Progress
from threads.rounds.published import Activity
from threads.rounds.worker import worker_id
from threads.tools.registry import ToolContext
from threads.tools.running import ToolResult, run_asked
from threads.tools.toolset import Toolset

logger = logging.getLogger(__name__)

State = ToolRun.State
MOST_SIDE_BY_SIDE = 8
WRITE_WAITS = (0.2, 0.5, 1.0, 2.0)
NO_FAILURES = frozenset({exchanges.DECLINED, exchanges.TOO_MANY})
ENDED_BADLY = frozenset({State.ERROR, State.NOT_RUN, State.UNKNOWN})


class ToolWork:
    """What one round does with tools, from its first exchange to its last."""

    def __init__(self, brief: Brief, progress: Progress, live: LiveCell) -> None:
        self.exchanges = list(brief.exchanges)
        self._brief = brief
        self._progress = progress
        self._live = live
        self._toolset = brief.toolset
        self._spiral = Spiral()
        self._parking: asyncio.Task[bool] | None = None
        self._undoing: asyncio.Task[None] | None = None
        self._writing: set[asyncio.Task[None]] = set()
        self.verdict: Verdict | None = None
        for exchange in self.exchanges:
            for run in exchange.runs:
                self._ask(run)
                self._note(run)

    @property
    def is_open(self) -> bool:
        """Whether the last exchange has runs that are neither run nor given up."""
        return bool(self.exchanges) and self.exchanges[-1].is_open

    async def take(self, call: int, ended: CallEnded, toolset: Toolset) -> None:
        """Record what a call asked for, before anything of it runs."""
        place, self._toolset = self._brief.place, toolset
        turn = ToolTurn(
            round_id=place.round_id,
            call=call,
            text=ended.text,
            reasoning=ended.reasoning,
            reasoning_ms=self._progress.reasoning_ms,
            text_length=self._live.length,
            model_served=ended.model_served,
        )
        runs = self._new_runs(call, ended.tool_calls)
        for run in runs:
            if self._ask(run) is not None:
                _forbid(run)
        # Before the write, which is made even if we are broken off in it.
        self._live.place_tools(call)
        exchange = await in_database(exchanges.begin, turn, runs)
        self.exchanges.append(exchange)
        for run in exchange.runs:
            self._note(run)
        await broadcast.tools_changed(place, call)

    async def decline(self, call: int, asked: tuple[ToolCall, ...]) -> None:
        """Record calls of an answer that was cut short: they are not run (D8, F14)."""
        if not asked:
            return
        runs = self._new_runs(call, asked, may_run=False)
        self._live.place_tools(call)
        # How the answer ended matters more than what was not run in it.
        with suppress(DatabaseError, InterfaceError):
            await in_database(exchanges.decline, runs)
        await broadcast.tools_changed(self._brief.place, call)

    async def run(self) -> bool:
        """Run what may run of the last exchange; False when a person is asked.

        Then the round is parked: it is nobody's until the person has decided, and
        this process has no more to do with it.
        """
        while self.is_open:
            exchange = self.exchanges[-1]
            if self.verdict is None:
                await self._run_ready(exchange.ready)
            if self.verdict is not None:
                await in_database(exchanges.end_all, self._brief.place.round_id)
            self.exchanges[-1] = await in_database(exchanges.reread, exchange)
            if self.exchanges[-1].is_open and await self._park():
                return False
        return True

    async def was_parked(self) -> bool:
        """Whether the round has been let go of, whoever was broken off meanwhile.

        Returns once all that was known of tools has been written.
        """
        await asyncio.gather(*self._writing, return_exceptions=True)
        return self._parking is not None and await self._parking

    async def _park(self) -> bool:
        """Let go of the round; False when there is more to be done here."""
        exchange = self.exchanges[-1]
        parking = in_database(ledger.park_round, exchange, worker_id())
        self._parking = start_task(parking, name=f"park-{exchange.turn.round_id}")
        return await asyncio.shield(self._parking)

    async def _run_ready(self, runs: list[ToolRun]) -> None:
        """Run tools in the order in which they were asked for.

        Neighbours that change nothing run side by side; one with effects alone.
        """
        for has_effects, group in groupby(runs, key=lambda run: run.has_effects):
            together = list(group)
            size = 1 if has_effects else MOST_SIDE_BY_SIDE
            for first in range(0, len(together), size):
                if self.verdict is None:
                    await self._run_group(together[first : first + size])

    async def _run_group(self, runs: list[ToolRun]) -> None:
        self._show(runs)
        async with asyncio.TaskGroup() as group:
            for run in runs:
                group.create_task(self._run_one(run))
        self._show(())

    def _show(self, runs: Iterable[ToolRun]) -> None:
        """Say which tools are running; the cap's sentence names the first (F2)."""
        names = [run.name for run in runs]
        self._progress.tools = names
        if names:
            announce(self._live, Activity("tool", name=", ".join(names)))

    async def _run_one(self, run: ToolRun) -> None:
        place = self._brief.place
        if not await self._started(run):
            return
        await broadcast.tools_changed(place, run.call)
        context = ToolContext(
            place.round_id,
            place.thread_id,
            place.owner_id,
            self._brief.locale,
            run.idempotency_key,
        )
        asked = ToolCall(run.call_id, run.name, run.arguments)
        result = await run_asked(asked, self._toolset, context)
        # A Stop meanwhile does not lose what is known by now.
        writing = start_task(_written(run, result), name="tool-result")
        self._writing.add(writing)
        await asyncio.shield(writing)
        if run.name in self._progress.tools:
            self._progress.tools.remove(run.name)
        self._note(run)
        await broadcast.tools_changed(place, run.call)

    async def _started(self, run: ToolRun) -> bool:
        """Mark a run as begun; broken off in this moment, it has not begun."""
        try:
            return await in_database(exchanges.start_run, run, worker_id())
        except asyncio.CancelledError:
            # Whether the mark was set is not known; the writers' thread keeps order.
            undo = in_database(exchanges.never_began, run)
            self._undoing = start_task(undo, name="never-began")
            raise

    def _ask(self, run: ToolRun) -> Verdict | None:
        """Count a call; the verdict if it is one too many of the same."""
        found = self._spiral.ask(run.name, run.arguments_asked or run.arguments)
        self.verdict = self.verdict or found
        return found

    def _note(self, run: ToolRun) -> None:
        """Count a call that did not end well.

        One that waits has not ended; one that the person declined did not fail, nor
        did one too many in a single answer.
        """
        if run.state in ENDED_BADLY and run.result not in NO_FAILURES:
            asked = run.arguments_asked or run.arguments
            found = self._spiral.fail(run.name, asked, run.result)
            self.verdict = self.verdict or found

    def _new_runs(
        self, call: int, asked: tuple[ToolCall, ...], *, may_run: bool = True
    ) -> list[ToolRun]:
        return exchanges.new_runs(
            self._brief.place.round_id,
            call,
            asked,
            self._toolset,
            attended=self._brief.attended,
            may_run=may_run,
        )


async def _written(run: ToolRun, result: ToolResult) -> None:
    """Write what became of a tool, which nobody could find out again.

    Raises:
        DatabaseError: it could not be written within some seconds.
    """
    for wait in WRITE_WAITS:
        try:
            await in_database(exchanges.end_run, run, result)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("TOOL_RESULT_NOT_WRITTEN %s", type(error).__name__)
            await asyncio.sleep(wait)
        else:
            return
    await in_database(exchanges.end_run, run, result)


def _forbid(run: ToolRun) -> None:
    """One call too many of the same is not run; the round ends."""
    run.state, run.result = State.NOT_RUN, exchanges.NOT_RUN
    run.ended_at = run.asked_at
