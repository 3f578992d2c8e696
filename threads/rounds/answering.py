"""The work of one round: call the model, run the tools it asks for, call again.

It feeds the live cell and writes the ledger, and returns how the last call
ended. It knows nothing of Stop and of the cap: the runner cancels it.
"""

import asyncio
import logging
from contextlib import aclosing, suppress
from dataclasses import replace
from time import monotonic

from django.db import DatabaseError, InterfaceError

from threads.conf import Bounds
from threads.core.events import (
    AttemptStarted,
    Envelope,
    ReasoningDelta,
    TextDelta,
    ToolCallBegan,
    Withdrawn,
)
from threads.core.faults import WHOLE, Condition, Ending, Verdict
from threads.core.retry import Action, RetryWait
from threads.core.snapshot import Position
from threads.gateway.calls import (
    AttemptRecord,
    CallEnded,
    CallObserver,
    Target,
    run_call,
)
from threads.gateway.client import Endpoint
from threads.rounds import ledger
from threads.rounds.brief import Brief
from threads.rounds.database import in_database
from threads.rounds.hub import announce, hub
from threads.rounds.journal import Writer, journal
from threads.rounds.live import LiveCell
from threads.rounds.notes import NARRATED_SECONDS
from threads.rounds.progress import Progress, Thinking, retry_policy
from threads.rounds.published import Activity
from threads.rounds.targets import Targets
from threads.rounds.toolwork import ToolWork

logger = logging.getLogger(__name__)

MAX_CALLS = 200
MOST_AT_ONCE = 32

TOO_MANY_CALLS = Verdict(
    code="tool_rounds_exceeded",
    ending=Ending.INTERRUPTED,
    condition=Condition.REQUEST,
    sentence_key="round.tool_rounds",
)


class Answering:
    """One round's conversation with its model."""

    def __init__(
        self,
        brief: Brief,
        endpoint: Endpoint,
        live: LiveCell,
        writer: Writer,
        bounds: Bounds,
    ) -> None:
        self.observer = CallObserver()
        self.progress = Progress()
        self._brief = brief
        self._targets = Targets(brief, endpoint, bounds)
        self._live = live
        self._writer = writer
        self._retry = retry_policy(brief, bounds)
        self.tools = ToolWork(brief, self.progress, live)
        done = self.tools.exchanges
        self._first_call = done[-1].turn.call + 1 if done else 1
        if done:
            self.progress.go_on(done[-1].turn)
        self._served_before = ""
        self._draft_served = ""
        self._draft_thinking: Thinking = (None, None)
        self._draft_fault: Verdict | None = None
        self._unrecorded: list[tuple[AttemptRecord, Brief]] = []

    async def answer(self) -> Verdict | None:
        """Call until an answer stands or something is wrong; says which.

        None when a person has to decide first: then the round is nobody's.
        """
        if not await self.tools.run():
            return None
        for call in range(self._first_call, MAX_CALLS + 1):
            if self.tools.verdict is not None:
                return self.tools.verdict
            targets = await self._targets.of_call(call, self.tools.exchanges)
            if isinstance(targets, Verdict):
                return targets
            ended = await self._call(targets)
            await journal().flush_now(self._writer)
            if ended.verdict.ending is not Ending.COMPLETED or not ended.tool_calls:
                await self.tools.decline(call, ended.tool_calls or ended.cut_calls)
                return ended.verdict
            self._let_stand()
            await self.tools.take(call, ended, self._targets.asked.toolset)
            if not await self.tools.run():
                return None
        return self.tools.verdict or TOO_MANY_CALLS

    def _let_stand(self) -> None:
        """A tool was asked for in the place of what was withdrawn: that is final."""
        self._writer.collect()
        if self._live.let_stand():
            self._writer.collect()

    async def _call(self, targets: list[Target]) -> CallEnded:
        announce(self._live, Activity("model"))
        self.progress.has_answered = self.progress.is_reasoning = False
        first, *then = targets
        events = run_call(
            first.request,
            bounds=first.bounds,
            retry=self._retry,
            observer=self.observer,
            then=then,
        )
        read = 0
        async with aclosing(events):
            async for event in events:
                read += 1
                if read % MOST_AT_ONCE == 0:
                    # What has arrived together is read without a pause; the
                    # other rounds and sockets of this loop get their turn.
                    await asyncio.sleep(0)
                match event:
                    case TextDelta(text=text):
                        self.add(text)
                    case ReasoningDelta(text=text):
                        self._reason(text)
                    case AttemptRecord():
                        await self._record(event)
                    case CallEnded():
                        return event
                    case _:
                        self._note(event)
        raise RuntimeError("the call ended without saying how")

    def _note(
        self, event: AttemptStarted | Envelope | Withdrawn | RetryWait | ToolCallBegan
    ) -> None:
        """Take what comes once an attempt, or not at all."""
        match event:
            case Envelope(model=model):
                self.progress.model_served = model or self._served_before
            case AttemptStarted():
                self._begin_attempt(event)
            case Withdrawn():
                self._withdraw(event)
            case RetryWait():
                self._wait(event)
            case ToolCallBegan():
                self.progress.has_answered, self.progress.fault = True, None

    def _begin_attempt(self, event: AttemptStarted) -> None:
        if event.asked:
            self._targets.advance(event.asked)
        self._live.begin_attempt(event.call, event.attempt)
        self._served_before = self.progress.model_served
        activity = self._live.activity
        if activity.until:
            # The wait is over; what it was for is said until something comes.
            announce(self._live, replace(activity, until=0.0))

    def add(self, text: str) -> None:
        """Show a piece of the answer."""
        mark, progress = self._live.mark, self.progress
        if progress.reasoning_ended is None and progress.reasoning_began is not None:
            progress.reasoning_ended = monotonic()
        if self._live.length == mark.length:
            progress.has_answered, progress.fault = True, None
            announce(self._live, Activity("model"))
            if mark.length:
                # The text of successive calls reads as paragraphs.
                text = "\n\n" + text
        self._live.append(text)

    def _reason(self, text: str) -> None:
        if not self.progress.is_reasoning:
            self.progress.is_reasoning = True
            announce(self._live, Activity("model"))
        if self.progress.reasoning_began is None:
            self.progress.reasoning_began = monotonic()
        self._live.reason(text)

    def _withdraw(self, event: Withdrawn) -> None:
        """Take this attempt's text back, at once (requirements D10, E3)."""
        live, progress = self._live, self.progress
        had_text = live.length > live.mark.length
        self._writer.collect()
        if not live.withdraw(event.call, event.attempt):
            return
        self._writer.collect()
        if had_text:
            self._draft_served = progress.model_served
            self._draft_thinking = progress.thinking
        progress.has_answered = progress.is_reasoning = False
        if not live.reasoning_length:
            progress.thinking = (None, None)
        hub().publish(live)

    def _wait(self, event: RetryWait) -> None:
        """Say what is waited for, where that is long enough to wonder (B14)."""
        self.progress.fault = event.fault
        # It served what does not stand, be it only a count of tokens.
        self.progress.model_served = self._served_before
        if event.withdrew:
            self._draft_fault = event.fault
            logger.warning(
                "[ThreadExec] REGENERATE: round=%s call=%d attempt=%d generation=%d",
                self._brief.place.round_id,
                event.call,
                event.attempt,
                self._live.generation,
            )
        told = self._live.activity.kind
        if event.model:
            fallback = Activity(Action.FALLBACK, attempt=event.attempt)
            announce(self._live, replace(fallback, name=event.model))
            return
        again = event.withdrew or told == Action.REGENERATE
        kind = Action.REGENERATE if again else Action.REISSUE
        if again or told in (kind, Action.FALLBACK) or event.seconds > NARRATED_SECONDS:
            until = monotonic() + event.seconds
            announce(
                self._live,
                Activity(kind, attempt=event.attempt, total=event.total, until=until),
            )

    async def _record(self, record: AttemptRecord) -> None:
        self.progress.request_id = record.request_id
        self._unrecorded.append((record, self._targets.asked))
        if record.retry_decision == Action.REGENERATE:
            # What was read is safe before it is replaced; if not now, the flusher
            # tries again.
            with suppress(DatabaseError, InterfaceError):
                await journal().flush_now(self._writer)
        await self._write_down()

    async def _write_down(self) -> None:
        """Write the rows that wait. The answer matters more than its rows: those
        that cannot be written now are tried again with the next, and at the end."""
        round_id = self._brief.place.round_id
        while self._unrecorded:
            record, asked = self._unrecorded[0]
            try:
                await in_database(
                    ledger.record_attempt,
                    round_id,
                    record,
                    key=asked.key,
                    model_id=asked.model_id if asked.route else None,
                )
            except (DatabaseError, InterfaceError) as error:
                name = type(error).__name__
                logger.warning("ATTEMPT_NOT_RECORDED round=%s %s", round_id, name)
                return
            del self._unrecorded[0]

    async def account(self) -> None:
        """Show what was held, and write the rows that are missing, of work that has
        ended or was broken off."""
        for held in self.observer.held:
            if isinstance(held, TextDelta):
                self.add(held.text)
        self.observer.held = []
        record, self.observer.attempt = self.observer.record(), None
        if record is not None:
            self.progress.request_id = record.request_id
            if record.output_committed:
                self.progress.model_served = record.model_served
            self._unrecorded.append((record, self._targets.asked))
        await self._write_down()

    def settle(self, verdict: Verdict, seen: Position | None = None) -> Verdict:
        """Let the last text that was read stand; returns how the round ends then.

        A text that stands again was cut, whatever followed it (X2); `seen` is how
        far the page that pressed Stop had shown it.
        """
        self._writer.collect()
        if not self._live.settle(seen):
            return verdict
        self.progress.model_served = self._draft_served
        self.progress.thinking = self._draft_thinking
        is_whole = verdict.ending in WHOLE
        return self._draft_fault if is_whole and self._draft_fault else verdict
