"""Making a call of a fake gateway, and looking at what came of it."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from tests.fakegateway import FakeGateway, Script
from threads.core.events import (
    AttemptStarted,
    Envelope,
    ReasoningDelta,
    TextDelta,
    Withdrawn,
)
from threads.core.faults import Verdict
from threads.core.quirks import Override
from threads.core.retry import ONCE, Policy, RetryWait
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

KEY = "sk-canary-key-4711"
PROMPT = "canary-prompt"

PATIENT = CallBounds(first_data_seconds=30, idle_seconds=30)
"""For calls that are not to stall."""

AGAIN = Policy(retries=2, waits=(0.01, 0.02), window_seconds=60)
"""For calls that are tried again without delay."""


@dataclass(frozen=True, slots=True)
class Called:
    """All that one call yielded; the last two items are the same for every call."""

    events: list[CallEvent]

    @property
    def ended(self) -> CallEnded:
        last = self.events[-1]
        assert isinstance(last, CallEnded)
        return last

    @property
    def verdict(self) -> Verdict:
        return self.ended.verdict

    @property
    def record(self) -> AttemptRecord:
        record = self.events[-2]
        assert isinstance(record, AttemptRecord)
        assert record == self.ended.record
        return record

    @property
    def records(self) -> list[AttemptRecord]:
        """The ledger: every attempt in its order."""
        return [e for e in self.events if isinstance(e, AttemptRecord)]

    @property
    def decisions(self) -> list[tuple[str, str]]:
        """What followed each attempt, or else why nothing did."""
        return [(each.retry_decision, each.retry_reason) for each in self.records]

    @property
    def withdrawn(self) -> list[tuple[int, int]]:
        """The call and attempt of each withdrawal."""
        return [(e.call, e.attempt) for e in self.events if isinstance(e, Withdrawn)]

    @property
    def waits(self) -> list[RetryWait]:
        return [e for e in self.events if isinstance(e, RetryWait)]

    @property
    def served(self) -> list[str | None]:
        """The models that envelopes named."""
        return [e.model for e in self.events if isinstance(e, Envelope)]

    @property
    def shown(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, TextDelta))

    @property
    def thought(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, ReasoningDelta))


def request_to(
    base_url: str,
    *,
    key: str = KEY,
    tools: list[dict[str, object]] | None = None,
    sends_usage: bool = True,
    model: str = "some-model",
    override: Override | None = None,
) -> CallRequest:
    return CallRequest(
        Endpoint(base_url, key, sends_usage=sends_usage),
        model,
        [{"role": "user", "content": PROMPT}],
        tools or [],
        override=override or Override(),
    )


async def called(
    request: CallRequest,
    *,
    bounds: CallBounds = PATIENT,
    retry: Policy = ONCE,
    observer: CallObserver | None = None,
) -> Called:
    """Run a call to its end."""
    running = run_call(request, bounds=bounds, retry=retry, observer=observer)
    async with aclosing(running) as call:
        events = [event async for event in call]
    assert events[0] == AttemptStarted(1, 1)
    return Called(events)


async def answered(
    gateway: FakeGateway,
    *scripts: Script,
    bounds: CallBounds = PATIENT,
    retry: Policy = ONCE,
) -> Called:
    """Play the scripts to one call and run it to its end."""
    gateway.play(*scripts)
    return await called(request_to(gateway.base_url), bounds=bounds, retry=retry)


async def until(look: Callable[[], bool]) -> None:
    """Wait for something that the gateway sees; TimeoutError if it never does."""
    async with asyncio.timeout(10):
        while not look():  # noqa: ASYNC110 - it is the socket that tells us
            await asyncio.sleep(0.01)
