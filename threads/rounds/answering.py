"""The work of one round: call the model, run the tools it asks for, call again.

It feeds the live cell and writes the ledger, and returns how the last call
ended. It knows nothing of Stop and of the cap: the runner cancels it.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic

from threads.conf import Bounds
from threads.core.events import (
    AttemptStarted,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallBegan,
    Withdrawn,
)
from threads.core.faults import WHOLE, Condition, Ending, Verdict
from threads.gateway.calls import (
    AttemptRecord,
    CallBounds,
    CallEnded,
    CallEvent,
    CallObserver,
    CallRequest,
    run_call,
)
from threads.gateway.client import Endpoint
from threads.models import ToolRun
from threads.rounds import ledger, tools
from threads.rounds.brief import Brief, Message
from threads.rounds.hub import hub
from threads.rounds.journal import Writer, journal
from threads.rounds.live import Activity, LiveCell
from threads.rounds.loops import in_database

MAX_CALLS = 8
MOST_AT_ONCE = 32

PRACTICE_SECONDS = 8.0
"""A practice model that falls silent does so on purpose: nobody should have to
wait minutes to see what a stall looks like (design section 8)."""

TOO_MANY_CALLS = Verdict(
    code="tool_rounds_exceeded",
    ending=Ending.INTERRUPTED,
    condition=Condition.REQUEST,
    sentence_key="round.tool_rounds",
)


@dataclass(slots=True)
class Progress:
    """What the runner reads off when it has to end the round itself."""

    model_served: str = ""
    request_id: str = ""
    reasoning_began: float | None = None
    reasoning_ended: float | None = None
    has_answered: bool = False
    is_reasoning: bool = False
    tool: str = ""

    def note(self, record: AttemptRecord) -> None:
        """Keep what the cell shows of its last attempt."""
        self.model_served = record.model_served or self.model_served
        self.request_id = record.request_id

    @property
    def reasoning_ms(self) -> int | None:
        """How long the model reasoned before its first text; None if it did not."""
        if self.reasoning_began is None:
            return None
        return int(
            ((self.reasoning_ended or monotonic()) - self.reasoning_began) * 1000
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
        patience = PRACTICE_SECONDS if brief.is_practice else float("inf")
        self._bounds = CallBounds(
            first_data_seconds=min(bounds.first_data_seconds, patience),
            idle_seconds=min(bounds.idle_seconds, patience),
        )
        self._messages: list[Message] = list(brief.messages)
        # Where the attempt's own text begins, and what a withdrawal took away.
        self._base = 0
        self._has_text = False
        self._withdrawn = ""

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
            self._messages += await self._run_tools(call, ended.tool_calls)
        return TOO_MANY_CALLS

    def reinstate(self) -> None:
        """Let the withdrawn text stand again where nothing took its place (X2)."""
        if self._withdrawn and not self._has_text:
            self._live.restate(self._live.text + self._withdrawn)
            self._withdrawn = ""

    async def _call(self, call: int) -> CallEnded:
        self._base, self._has_text, self._withdrawn = self._live.length, False, ""
        self._set_activity(Activity("model"))
        self.progress.has_answered = self.progress.is_reasoning = False
        request = CallRequest(
            endpoint=self._endpoint,
            model=self._brief.model,
            messages=self._messages,
            tools=tools.offers() if self._brief.is_practice else [],
            call=call,
        )
        events: AsyncGenerator[CallEvent | Withdrawn, None] = run_call(
            request, bounds=self._bounds, observer=self.observer
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
                        self._add(text)
                    case ReasoningDelta(text=text):
                        self._reason(text)
                    case AttemptStarted(attempt=attempt):
                        self._attempt_started(attempt)
                    case Withdrawn(attempt=attempt):
                        self._withdraw(attempt)
                    case AttemptRecord():
                        await self._record(event)
                    case ToolCallBegan():
                        self.progress.has_answered = True
                    case CallEnded():
                        self.reinstate()
                        return event
        raise RuntimeError("the call ended without saying how")

    def _add(self, text: str) -> None:
        if not self._has_text:
            self._has_text = self.progress.has_answered = True
            if self.progress.reasoning_ended is None:
                self.progress.reasoning_ended = monotonic()
            self._set_activity(Activity("model"))
            if self._base:
                # The text of successive calls reads as paragraphs.
                text = "\n\n" + text
        self._live.append(text)

    def _reason(self, text: str) -> None:
        self.progress.is_reasoning = True
        if self.progress.reasoning_began is None:
            self.progress.reasoning_began = monotonic()
        self._live.reason(text)

    def _attempt_started(self, attempt: int) -> None:
        if attempt > 1:
            kind = "regenerate" if self._withdrawn else "reissue"
            self._set_activity(Activity(kind, attempt=attempt))

    def _withdraw(self, attempt: int) -> None:
        """Take this attempt's text back, at once (requirements D10, E3)."""
        if not self._has_text:
            return
        self._writer.collect()
        text = self._live.text
        self._withdrawn, self._has_text = text[self._base :], False
        self._live.restate(text[: self._base], provisional=True)
        self._live.activity = Activity("regenerate", monotonic(), attempt=attempt + 1)
        hub().publish(self._live)

    async def _record(self, record: AttemptRecord) -> None:
        self.progress.note(record)
        await in_database(
            ledger.record_attempt,
            self._brief.place.round_id,
            record,
            key=self._brief.key,
        )

    def _set_activity(self, activity: Activity) -> None:
        activity.since = monotonic()
        self._live.activity = activity
        hub().wake(self._live.thread_id)

    async def _run_tools(self, call: int, calls: tuple[ToolCall, ...]) -> list[Message]:
        """Run the calls one after another; none of them is ever run again."""
        runs = await in_database(
            ledger.begin_tool_runs, self._new_runs(call, calls, ToolRun.State.RUNNING)
        )
        told = list[Message]()
        for run, asked in zip(runs, calls, strict=True):
            self.progress.tool = asked.name
            self._set_activity(Activity("tool", name=asked.name))
            result = await tools.run_tool(asked)
            await in_database(
                ledger.end_tool_run, run.pk, state=result.state, result=result.text
            )
            told.append(
                {"role": "tool", "tool_call_id": asked.id, "content": result.text}
            )
        self.progress.tool = ""
        return told

    async def _decline_tools(self, call: int, ended: CallEnded) -> None:
        """Record calls of an answer that was cut short: they are not run (F14)."""
        runs = self._new_runs(call, ended.tool_calls, ToolRun.State.NOT_RUN)
        await in_database(ledger.begin_tool_runs, runs)

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
                has_effects=tools.has_effects(asked.name),
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
