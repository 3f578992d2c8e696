"""One round, from its claim to its one terminal write.

How it works. The answering runs as a task of its own. The runner waits for the
first of four things: it is done, Stop, the cap, or news that the round is no
longer ours. Each of the last three leaves a marker and cancels the task, which
closes the connection to the gateway. Then the round is settled: what it ended
with is read from the markers, never from the type of an exception. Stop wins.
"""

import asyncio
import logging
import secrets
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError

from threads.conf import Bounds, bounds
from threads.core.faults import Condition, Ending, Verdict
from threads.core.snapshot import Position
from threads.perloop import start_task
from threads.rounds import ledger
from threads.rounds.answering import Answering
from threads.rounds.brief import (
    HISTORY_UNREADABLE,
    Brief,
    HistoryUnreadableError,
    claim,
    read,
)
from threads.rounds.broadcast import round_asks, round_ended
from threads.rounds.database import in_database
from threads.rounds.hub import hub
from threads.rounds.journal import Writer, journal
from threads.rounds.ledger import Outcome
from threads.rounds.progress import Progress
from threads.rounds.resuming import go_on
from threads.rounds.sweep import WORKER_LOST
from threads.rounds.worker import worker_id

logger = logging.getLogger(__name__)

INCIDENT = "INTERNAL_ERROR incident=%s round=%s"

# How often, and how far apart, the terminal write is tried.
SETTLE_WAITS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

INTERNAL_ERROR = Verdict(
    code="internal_error",
    ending=Ending.INTERRUPTED,
    condition=Condition.OUR_BUG,
    sentence_key="internal.error",
)


@dataclass(slots=True)
class Markers:
    """Why a round is ended from outside; any number of them may be set."""

    stop: bool = False
    seen: Position | None = None
    cap: bool = False
    shutdown: bool = False
    lost: bool = False

    @property
    def any(self) -> bool:
        """Tell whether the answering has to be broken off."""
        return self.stop or self.cap or self.shutdown or self.lost


class Run:
    """One round in this process."""

    def __init__(self, round_id: int) -> None:
        self.round_id = round_id
        self.markers = Markers()
        # It waits for a person, and no more for this process.
        self.is_let_go = False
        # Somebody asked for it while it was running.
        self.is_wanted = False
        self._woken = asyncio.Event()

    def stop(self, seen: Position | None = None) -> None:
        """Break the round off because the person said so."""
        if not self.markers.stop:
            self.markers.seen = seen
        self.markers.stop = True
        self._woken.set()

    def lose(self) -> None:
        """Break the round off because somebody else has it or has ended it."""
        self.markers.lost = True
        self._woken.set()

    def shut_down(self) -> None:
        """Break the round off because this process ends."""
        self.markers.shutdown = True
        self._woken.set()

    async def execute(self) -> bool:
        """Claim the round and bring it to an end; returns when it has one.

        Returns False when the round is not to be had, and when it was let go of: a
        stop may have ended it by then.
        """
        if not await in_database(claim, self.round_id, worker_id()):
            return False
        try:
            brief = await in_database(read, self.round_id)
        except HistoryUnreadableError:
            logger.exception("HISTORY_UNREADABLE round=%s", self.round_id)
            await self._end_unread(Outcome(HISTORY_UNREADABLE))
            return True
        except Exception:
            # It is ours now: whatever keeps us from reading it, it ends.
            incident = secrets.token_hex(6)
            logger.exception(INCIDENT, incident, self.round_id)
            await self._end_unread(_internal_error(incident))
            return True
        live = hub().begin(brief.place.answer_id, brief.place.thread_id)
        go_on(live, brief)
        writer = Writer(self.round_id, live, on_stop=self.stop, on_lost=self.lose)
        journal().open(writer)
        try:
            outcome = await self._outcome(brief, writer)
            if outcome is not None:
                await self._settle(writer, outcome)
        finally:
            journal().close(writer)
            hub().end(live)
        if outcome is None:
            self.is_let_go = True
            await round_asks(brief.place)
            return False
        await round_ended(brief.place)
        return True

    async def _end_unread(self, outcome: Outcome) -> None:
        """End a round of which nothing could be read; a sweep does it if we cannot."""
        try:
            await in_database(
                ledger.finish_round, self.round_id, outcome, worker=worker_id()
            )
            place = await in_database(ledger.place_of, self.round_id)
        except (DatabaseError, InterfaceError):
            logger.exception("Round %s could not be ended", self.round_id)
            return
        if place is not None:
            await round_ended(place)

    async def _outcome(self, brief: Brief, writer: Writer) -> Outcome | None:
        """Let the round run to whatever end it has; None where a person decides first."""
        if brief.endpoint is None:
            assert brief.problem is not None  # noqa: S101 - one of the two is there
            return Outcome(brief.problem)
        answering: Answering | None = None
        try:
            limits = bounds()
            answering = Answering(brief, brief.endpoint, writer.live, writer, limits)
            work = start_task(answering.answer(), name=f"round-{self.round_id}")
            await self._race(work, limits)
            verdict = await self._verdict(work, answering, limits.round_cap_seconds)
            if verdict is None:
                return None
            stopped = self.markers.stop
            verdict = answering.settle(verdict, self.markers.seen if stopped else None)
        except Exception:
            # The outer edge of a round: whatever is wrong with us, it ends.
            incident = secrets.token_hex(6)
            logger.exception(INCIDENT, incident, self.round_id)
            if answering is not None:
                await self._give_up(answering)
            return _internal_error(incident)
        progress = answering.progress
        return Outcome(
            verdict,
            model_served=progress.model_served,
            request_id=progress.request_id,
            reasoning_ms=progress.reasoning_ms,
        )

    async def _give_up(self, answering: Answering) -> None:
        """Keep what there is of a round that broke on a fault of ours."""
        try:
            await answering.account()
            answering.settle(INTERNAL_ERROR)
        except Exception:
            logger.exception("Round %s could not be accounted for", self.round_id)

    async def _race(self, work: asyncio.Task[Verdict | None], limits: Bounds) -> None:
        """Wait for the work, a marker or the cap; leaves the work ended."""
        woken = asyncio.ensure_future(self._woken.wait())
        try:
            await asyncio.wait(
                {work, woken},
                timeout=limits.round_cap_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            self.markers.cap = not work.done() and not woken.done()
        except asyncio.CancelledError:
            self.markers.shutdown = True
        finally:
            woken.cancel()
            if not work.done():
                work.cancel()
            await asyncio.wait({work})
            if self.markers.any and not work.cancelled() and work.exception():
                logger.warning("Round %s broke while it was ended", self.round_id)

    async def _verdict(
        self,
        work: asyncio.Task[Verdict | None],
        answering: Answering,
        cap_seconds: float,
    ) -> Verdict | None:
        """Read from the markers, or else from the work, how the round ended.

        A round that was let go of is not ended here, whatever was pressed since.
        """
        await answering.account()
        if await answering.tools.was_parked():
            return None
        ended_itself = not work.cancelled() and (
            work.exception() is None or not self.markers.any
        )
        verdict = work.result() if ended_itself else None
        if verdict is not None and not self.markers.stop:
            return verdict
        if self.markers.stop:
            return ledger.STOPPED
        if self.markers.shutdown:
            return WORKER_LOST
        return answering.progress.fault or cap_verdict(answering.progress, cap_seconds)

    async def _settle(self, writer: Writer, outcome: Outcome) -> None:
        """Flush and end the round; tries again while the database fails.

        After the last try the round stays running and its heartbeat stops, so a
        sweep ends it.
        """
        for wait in (*SETTLE_WAITS, None):
            if writer.is_lost:
                logger.warning("TERMINAL_WRITE_LOST round=%s", self.round_id)
                return
            try:
                await journal().flush_now(writer)
                if not writer.is_lost:
                    await in_database(
                        ledger.finish_round, self.round_id, outcome, worker=worker_id()
                    )
                    return
            except (DatabaseError, InterfaceError):
                if wait is None:
                    logger.exception("Round %s could not be ended", self.round_id)
                    return
                await asyncio.sleep(wait)


def _internal_error(incident: str) -> Outcome:
    """End a round because of a fault of ours; the log has it by this number (B11)."""
    return Outcome(INTERNAL_ERROR, params={"incident": incident})


def cap_verdict(progress: Progress, cap_seconds: float) -> Verdict:
    """Name the cap, and what the round was doing when it fell (F1, F2)."""
    params = {"minutes": str(max(1, round(cap_seconds / 60)))}
    if progress.tools:
        key, params["tool"] = "round.cap_tool", progress.tools[0]
    elif progress.has_answered:
        key = "round.cap"
    elif progress.is_reasoning:
        key = "round.cap_reasoning"
        logger.warning("[ThreadExec] ROUND_CAP_WHILE_REASONING")
    else:
        key = "round.cap_silent"
    return Verdict(
        code="round_cap",
        ending=Ending.INTERRUPTED,
        condition=Condition.UNKNOWN,
        sentence_key=key,
        params=params,
    )


async def execute_round(round_id: int) -> None:
    """Run one round to its end in this task."""
    await Run(round_id).execute()
