"""Making a call of a fake gateway, and looking at what came of it."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from tests.fakegateway import FakeGateway, Script
from threads.core.events import AttemptStarted, ReasoningDelta, TextDelta
from threads.core.faults import Verdict
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
) -> CallRequest:
    return CallRequest(
        Endpoint(base_url, key, sends_usage=sends_usage),
        "some-model",
        [{"role": "user", "content": PROMPT}],
        tools or [],
    )


async def called(
    request: CallRequest,
    *,
    bounds: CallBounds = PATIENT,
    observer: CallObserver | None = None,
) -> Called:
    """Run a call to its end."""
    async with aclosing(run_call(request, bounds=bounds, observer=observer)) as call:
        events = [event async for event in call]
    assert events[0] == AttemptStarted(1, 1)
    return Called(events)


async def answered(
    gateway: FakeGateway, *scripts: Script, bounds: CallBounds = PATIENT
) -> Called:
    """Play the scripts to one call and run it to its end."""
    gateway.play(*scripts)
    return await called(request_to(gateway.base_url), bounds=bounds)


async def until(look: Callable[[], bool]) -> None:
    """Wait for something that the gateway sees; TimeoutError if it never does."""
    async with asyncio.timeout(10):
        while not look():  # noqa: ASYNC110 - it is the socket that tells us
            await asyncio.sleep(0.01)
