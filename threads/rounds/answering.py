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
from django.utils import timezone

from threads.conf import Bounds
from threads.core.events import (
    AttemptStarted,
    Envelope,
    ReasoningDelta,
    TextDelta,
    ToolCall,
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
    CallRequest,
    run_call,
)
from threads.gateway.client import Endpoint
from threads.models import ToolRun, ToolTurn
from threads.rounds import ledger
from threads.rounds.brief import Brief, Message
from threads.rounds.broadcast import tools_changed
from threads.rounds.hub import hub
from threads.rounds.journal import Writer, journal
from threads.rounds.live import LiveCell
from threads.rounds.loops import in_database
from threads.rounds.notes import NARRATED_SECONDS
from threads.rounds.progress import Progress, Thinking, call_bounds, retry_policy
from threads.rounds.published import Activity
from threads.tools.registry import ToolContext
from threads.tools.running import ToolResult, run_asked

logger = logging.getLogger(__name__)

MAX_CALLS = 8
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
        self._endpoint = endpoint
        self._live = live
        self._writer = writer
        self._bounds = call_bounds(brief, bounds)
        self._retry = retry_policy(brief, bounds)
        self._messages: list[Message] = list(brief.messages)
        self._served_before = ""
        self._draft_served = ""
        self._draft_thinking: Thinking = (None, None)
        self._draft_fault: Verdict | None = None
        self._unrecorded: list[AttemptRecord] = []

    async def answer(self) -> Verdict:
        """Call until an answer stands or something is wrong; says which."""
        for call in range(1, MAX_CALLS + 1):
            ended = await self._call(call)
            await journal().flush_now(self._writer)
            if ended.verdict.ending not in WHOLE or not ended.tool_calls:
                return ended.verdict
            if ended.verdict.ending is not Ending.COMPLETED:
                await self._decline_tools(call, ended)
                return ended.verdict
            self._messages.append(_asking(ended))
            await self._place_tools(call, ended)
            self._messages += await self._run_tools(call, ended.tool_calls)
        return TOO_MANY_CALLS

    async def _call(self, call: int) -> CallEnded:
        self._set_activity(Activity("model"))
        self.progress.has_answered = self.progress.is_reasoning = False
        request = CallRequest(
            endpoint=self._endpoint,
            model=self._brief.model,
            messages=self._messages,
            tools=self._brief.toolset.offers(),
            call=call,
        )
        events = run_call(
            request, bounds=self._bounds, retry=self._retry, observer=self.observer
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
        self._live.begin_attempt(event.call, event.attempt)
        self._served_before = self.progress.model_served
        activity = self._live.activity
        if activity.until:
            # The wait is over; what it was for is said until something comes.
            self._set_activity(replace(activity, until=0.0))

    def add(self, text: str) -> None:
        """Show a piece of the answer."""
        mark, progress = self._live.mark, self.progress
        if progress.reasoning_ended is None and progress.reasoning_began is not None:
            progress.reasoning_ended = monotonic()
        if self._live.length == mark.length:
            progress.has_answered, progress.fault = True, None
            self._set_activity(Activity("model"))
            if mark.length:
                # The text of successive calls reads as paragraphs.
                text = "\n\n" + text
        self._live.append(text)

    def _reason(self, text: str) -> None:
        if not self.progress.is_reasoning:
            self.progress.is_reasoning = True
            self._set_activity(Activity("model"))
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
        again = event.withdrew or told == Action.REGENERATE
        kind = Action.REGENERATE if again else Action.REISSUE
        if again or told == kind or event.seconds > NARRATED_SECONDS:
            until = monotonic() + event.seconds
            self._set_activity(
                Activity(kind, attempt=event.attempt, total=event.total, until=until)
            )

    async def _record(self, record: AttemptRecord) -> None:
        self.progress.request_id = record.request_id
        self._unrecorded.append(record)
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
            record = self._unrecorded[0]
            try:
                await in_database(
                    ledger.record_attempt, round_id, record, key=self._brief.key
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
            self._unrecorded.append(record)
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

    def _set_activity(self, activity: Activity) -> None:
        activity.since = monotonic()
        self._live.activity = activity
        hub().wake(self._live.thread_id)

    async def _place_tools(self, call: int, ended: CallEnded) -> None:
        """Record where in the text this call asked for tools, and show them there."""
        turn = ToolTurn(
            round_id=self._brief.place.round_id,
            call=call,
            text=ended.text,
            text_length=self._live.length,
        )
        await in_database(turn.save)
        self._live.place_tools(call)

    async def _run_tools(self, call: int, calls: tuple[ToolCall, ...]) -> list[Message]:
        """Run the calls one after another; none of them is ever run again."""
        runs = await in_database(
            ledger.begin_tool_runs, self._new_runs(call, calls, ToolRun.State.RUNNING)
        )
        told = list[Message]()
        for run, asked in zip(runs, calls, strict=True):
            run.started_at = timezone.now()
            await in_database(run.save, update_fields=["started_at"])
            await tools_changed(self._brief.place, call)
            self.progress.tool = asked.name
            self._set_activity(Activity("tool", name=asked.name))
            result = await self._run_tool(run, asked)
            await in_database(
                ledger.end_tool_run, run.pk, state=result.state, result=result.text
            )
            await tools_changed(self._brief.place, call)
            told.append(
                {"role": "tool", "tool_call_id": asked.id, "content": result.text}
            )
        self.progress.tool = ""
        return told

    async def _run_tool(self, run: ToolRun, asked: ToolCall) -> ToolResult:
        place = self._brief.place
        context = ToolContext(
            place.round_id,
            place.thread_id,
            place.owner_id,
            self._brief.locale,
            run.idempotency_key,
        )
        return await run_asked(asked, self._brief.toolset, context)

    async def _decline_tools(self, call: int, ended: CallEnded) -> None:
        """Record calls of an answer that was cut short: they are not run (F14)."""
        runs = self._new_runs(call, ended.tool_calls, ToolRun.State.NOT_RUN)
        await in_database(ledger.begin_tool_runs, runs)
        self._live.place_tools(call)

    def _new_runs(
        self, call: int, calls: tuple[ToolCall, ...], state: ToolRun.State
    ) -> list[ToolRun]:
        round_id = self._brief.place.round_id
        return [
            ToolRun(
                round_id=round_id,
                call=call,
                position=position,
                call_id=asked.id[:200],
                name=asked.name[:200],
                arguments=asked.arguments,
                has_effects=self._brief.toolset.has_effects(asked.name),
                idempotency_key=f"round-{round_id}-call-{call}-{position}",
                state=state,
            )
            for position, asked in enumerate(calls)
        ]


def _asking(ended: CallEnded) -> Message:
    """The assistant's message that asked for tools, as the next request repeats it."""
    return {
        "role": "assistant",
        "content": ended.text or None,
        "tool_calls": [
            {
                "id": asked.id,
                "type": "function",
                "function": {"name": asked.name, "arguments": asked.arguments},
            }
            for asked in ended.tool_calls
        ],
    }
