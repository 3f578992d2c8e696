"""Runs one call: sends it, yields what comes, reports every attempt.

A provider's fault is never an exception here: the last item says how the call
ended. Nothing here can reach a tool.
"""

import logging
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from threads.core.events import (
    AttemptStarted,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallBegan,
    ToolCallDelta,
    Usage,
)
from threads.core.evidence import StreamEnd
from threads.core.faults import WHOLE, Arrival, Ending, Verdict
from threads.gateway.attempt import Attempt, AttemptRecord, CallRequest
from threads.gateway.client import client_for
from threads.gateway.guard import CallBounds, GuardedStream

__all__ = [
    "AttemptRecord",
    "CallBounds",
    "CallEnded",
    "CallObserver",
    "CallRequest",
    "run_call",
]

logger = logging.getLogger(__name__)

ERROR_SEEN = StreamEnd(Arrival.ENDED)
"""We stop reading at an error; what it says is in the evidence."""

MARKERS = {
    Ending.STALLED: "PROVIDER_STREAM_STALLED",
    Ending.TRUNCATED: "PROVIDER_STREAM_TRUNCATED",
    Ending.FAULTED: "PROVIDER_STREAM_FAULTED",
    Ending.EMPTY: "PROVIDER_STREAM_EMPTY",
    Ending.BLOCKED: "PROVIDER_REFUSED",
    Ending.REFUSED: "PROVIDER_REFUSED",
}


@dataclass(frozen=True, slots=True)
class CallEnded:
    """How a call ended: always the last item, and always there unless cancelled.

    `tool_calls` is empty unless the stream ended with proof (D8, F14).
    """

    verdict: Verdict
    tool_calls: tuple[ToolCall, ...]
    text: str
    reasoning: str
    usage: Usage
    model_served: str
    finish_reason: str
    record: AttemptRecord


CallEvent = (
    AttemptStarted
    | TextDelta
    | ReasoningDelta
    | ToolCallBegan
    | AttemptRecord
    | CallEnded
)


class CallObserver:
    """Lets the caller write the row of an attempt that it cancelled."""

    def __init__(self) -> None:
        self.attempt: Attempt | None = None

    def record(self) -> AttemptRecord | None:
        """The attempt in flight as a stopped one; None when nothing was sent."""
        return self.attempt.record(stopped=True) if self.attempt else None


async def run_call(
    request: CallRequest, *, bounds: CallBounds, observer: CallObserver | None = None
) -> AsyncGenerator[CallEvent, None]:
    """Yield the events of one call and last a `CallEnded`.

    Consume it with `contextlib.aclosing`: leaving it closes the connection.
    """
    attempt = Attempt(request, 1)
    if observer is not None:
        observer.attempt = attempt
    yield AttemptStarted(request.call, attempt.number)
    guard = GuardedStream(
        client_for(request.endpoint), wire=attempt.wire, bounds=bounds
    )
    try:
        end = await guard.open(request.body())
        while end is None:
            chunk = await guard.next(is_settled=attempt.evidence.is_settled)
            if isinstance(chunk, StreamEnd):
                end, chunk = chunk, guard.flush()
            for event in _shown(attempt, chunk):
                yield event
            if attempt.evidence.error is not None and end is None:
                end = ERROR_SEEN
                for event in _shown(attempt, guard.flush()):
                    yield event
    finally:
        attempt.model_served, attempt.provider = guard.model_served, guard.provider
        await guard.close()
    verdict = attempt.judge(end)
    record = attempt.record()
    _log(record)
    if observer is not None:
        observer.attempt = None
    yield record
    yield CallEnded(
        verdict=verdict,
        tool_calls=attempt.answer.tool_calls.finish()
        if verdict.ending in WHOLE
        else (),
        text=attempt.answer.text,
        reasoning=attempt.answer.reasoning,
        usage=attempt.usage,
        model_served=attempt.model_served,
        finish_reason=record.finish_reason,
        record=record,
    )


def _shown(
    attempt: Attempt, events: list[StreamEvent]
) -> Iterator[TextDelta | ReasoningDelta | ToolCallBegan]:
    """Feed one chunk to the attempt and give what is to be shown of it."""
    if not events:
        return
    began = attempt.evidence.has_tool_calls
    attempt.feed(events)
    for event in events:
        match event:
            case TextDelta() | ReasoningDelta() if event.text:
                yield event
            case ToolCallDelta() if not began:
                began = True
                yield ToolCallBegan(attempt.request.call, attempt.number)
            case _:
                pass


def _log(record: AttemptRecord) -> None:
    """One content-free warning for an attempt that did not complete (I1, I8)."""
    marker = MARKERS.get(Ending(record.ending))
    if marker is None:
        return
    logger.warning(
        "%s code=%s status=%s model=%s host=%s provider=%s request_id=%s chunks=%d reason=%s",
        marker,
        record.code,
        record.http_status,
        record.model_requested,
        record.host,
        record.provider or "-",
        record.request_id or "-",
        record.chunks_received,
        "given" if record.provider_reason else "not given",
    )
