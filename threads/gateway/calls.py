"""Runs one call: sends it, yields what comes, tries again where that is safe.

A provider's fault is never an exception here: the last item says how the call
ended. Nothing here can reach a tool.
"""

import asyncio
import itertools
import logging
import random
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from threads.core.events import (
    AttemptStarted,
    Envelope,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallBegan,
    ToolCallDelta,
    Usage,
    Withdrawn,
)
from threads.core.evidence import StreamEnd
from threads.core.faults import WHOLE, Arrival, Ending, Verdict
from threads.core.retry import ONCE, Action, Policy, RetryWait, decide
from threads.gateway.attempt import Attempt, AttemptRecord, CallRequest
from threads.gateway.clients import leased, retire
from threads.gateway.delivery import CallObserver, Delivered, Delivery
from threads.gateway.guard import CallBounds, GuardedStream
from threads.gateway.lineup import Lineup, Target

__all__ = [
    "AttemptRecord",
    "CallBounds",
    "CallEnded",
    "CallObserver",
    "CallRequest",
    "Target",
    "run_call",
]

logger = logging.getLogger(__name__)

ERROR_SEEN = StreamEnd(Arrival.ENDED)
"""We stop reading at an error; what it says is in the evidence."""

DISTRUSTED = frozenset({Ending.STALLED, Ending.TRUNCATED})
"""Endings after which the connections that lie in the pool are not used (A19)."""

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

    `tool_calls` is empty unless the stream ended with proof (D8, F14); what had come
    of calls in a stream that did not is in `cut_calls`, and never runs.
    """

    verdict: Verdict
    tool_calls: tuple[ToolCall, ...]
    cut_calls: tuple[ToolCall, ...]
    text: str
    reasoning: str
    usage: Usage
    model_served: str
    finish_reason: str
    record: AttemptRecord


CallEvent = (
    AttemptStarted
    | Envelope
    | TextDelta
    | ReasoningDelta
    | ToolCallBegan
    | Withdrawn
    | RetryWait
    | AttemptRecord
    | CallEnded
)


async def run_call(
    request: CallRequest,
    *,
    bounds: CallBounds,
    retry: Policy = ONCE,
    observer: CallObserver | None = None,
    then: Sequence[Target] = (),
) -> AsyncGenerator[CallEvent, None]:
    """Yield the events of one call and last a `CallEnded`.

    A call that produced nothing is sent again, and one that was cut after only
    text as well, its text withdrawn first; `threads.core.retry` decides and this
    obeys (requirements D2, D7). Every attempt of a model sends the same bytes (D9).
    `then` are the models that a route asks next, where none has answered (D17).

    Consume it with `contextlib.aclosing`: leaving it closes the connection and
    ends a wait at once (D21).
    """
    observer = observer or CallObserver()
    now = asyncio.get_running_loop().time
    began_at, waited_seconds = now(), 0.0
    lineup = Lineup((Target(request, bounds), *then))
    for number in itertools.count(1):
        target = lineup.target
        attempt = Attempt(target.request, number, waited_seconds=waited_seconds)
        observer.attempt = attempt
        delivery = Delivery(observer, is_buffered=retry.is_buffered)
        yield AttemptStarted(request.call, number, lineup.asked)
        with leased(target.request.endpoint) as client:
            guard = GuardedStream(client, wire=attempt.wire, bounds=target.bounds)
            async with aclosing(_read(attempt, guard, delivery)) as events:
                async for event in events:
                    yield event
            verdict = attempt.judge()
            if verdict.ending in DISTRUSTED:
                retire(client)
        attempt.decision = decide(
            lineup.facts(attempt, now() - began_at),
            retry,
            roll=random.uniform(-1, 1),  # noqa: S311 - no secret
        )
        decided_at = now()
        lineup.follow(attempt)
        again = attempt.decision.action is not Action.NONE
        if again:
            if delivery.has_shown:
                yield Withdrawn(request.call, number)
            yield _coming(attempt, retry, lineup)
        else:
            is_whole = verdict.ending in WHOLE
            for event in delivery.rest(attempt.model_served, is_whole=is_whole):
                yield event
        record = attempt.record()
        observer.attempt = None
        _log(record)
        if again:
            _log_retry(record, retry, attempt.decision.wait_seconds, lineup)
        yield record
        # The wait includes whatever the caller did with all that; if that took so
        # long that the window has passed, no attempt follows after all.
        left = decided_at + attempt.decision.wait_seconds - now()
        if not again or (left < 0 and now() - began_at > retry.window_seconds):
            yield _ended(attempt, verdict, record)
            return
        await asyncio.sleep(max(0.0, left))
        # Another model is not waited for, whatever the caller had to do meanwhile.
        waited_seconds = attempt.decision.wait_seconds and now() - decided_at


async def _read(
    attempt: Attempt, guard: GuardedStream, delivery: Delivery
) -> AsyncGenerator[CallEvent, None]:
    """Send the request and read its stream to the end, which the attempt gets."""
    try:
        end = await guard.open(attempt.request.body())
        while end is None:
            chunk = await guard.next(is_settled=attempt.evidence.is_settled)
            if isinstance(chunk, StreamEnd):
                end = chunk
            else:
                for event in _shown(attempt, guard, chunk):
                    for each in delivery.take(event):
                        yield each
                end = ERROR_SEEN if attempt.evidence.error is not None else None
        for event in _shown(attempt, guard, guard.flush(), is_rest=True):
            for each in delivery.take(event):
                yield each
        attempt.end = end
    finally:
        attempt.model_served, attempt.provider = guard.model_served, guard.provider
        await guard.close()


def _coming(attempt: Attempt, retry: Policy, lineup: Lineup) -> RetryWait:
    """Say what follows an attempt, once the lineup has followed its decision."""
    assert attempt.verdict is not None  # noqa: S101 - it has been judged
    action, number = attempt.decision.action, attempt.number + 1
    return RetryWait(
        attempt.request.call,
        number,
        max(number, retry.retries + 1),
        attempt.decision.wait_seconds,
        fault=attempt.verdict,
        withdrew=action is Action.REGENERATE,
        model=lineup.target.request.model if action is Action.FALLBACK else "",
    )


def _ended(attempt: Attempt, verdict: Verdict, record: AttemptRecord) -> CallEnded:
    is_whole = verdict.ending in WHOLE
    calls = attempt.answer.tool_calls.finish()
    return CallEnded(
        verdict=verdict,
        tool_calls=calls if is_whole else (),
        cut_calls=() if is_whole else calls,
        text=attempt.answer.text,
        reasoning=attempt.answer.reasoning,
        usage=attempt.usage,
        model_served=attempt.model_served,
        finish_reason=record.finish_reason,
        record=record,
    )


def _shown(
    attempt: Attempt,
    guard: GuardedStream,
    events: list[StreamEvent],
    *,
    is_rest: bool = False,
) -> Iterator[Delivered]:
    """Feed one chunk to the attempt and give what is to be shown of it."""
    if not events:
        return
    evidence = attempt.evidence
    began, had_output = evidence.has_tool_calls, evidence.has_output
    attempt.feed(events, is_rest=is_rest)
    if evidence.has_output and not had_output:
        yield Envelope(guard.model_served)
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


RETRY = "[ProviderRetry] RETRY %d/%d in %.1f s after %d chars of text (%s)"
REGENERATE = (
    "[ProviderRetry] REGENERATE %d/%d in %.1f s"
    " after %d chars of text and no tool call (%s)"
)
FALLBACK = "[ProviderRetry] FALLBACK %s -> %s after attempt %d (%s)"


def _log_retry(
    record: AttemptRecord, retry: Policy, wait_seconds: float, lineup: Lineup
) -> None:
    """One content-free warning for each attempt that another one follows (D2, D7)."""
    if record.retry_decision == Action.FALLBACK:
        asked, after = record.model_requested, lineup.target.request.model
        logger.warning(FALLBACK, asked, after, record.attempt, record.code)
        return
    told = (
        record.attempt,
        retry.retries,
        wait_seconds,
        record.characters,
        record.code,
    )
    if record.retry_decision == Action.REGENERATE:
        logger.warning(REGENERATE, *told)
    else:
        logger.warning(RETRY, *told)
