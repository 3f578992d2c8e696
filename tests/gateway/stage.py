"""Plays thousands of responses to real calls, and sees that each leaves nothing behind.

One loop, one server and one client pool for all of them; after each example the
connections are counted, the tasks, and whatever failed where nobody looked.
"""

import asyncio
import gc
import logging
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Literal, TypeAlias, TypeVar

import pytest

from tests.fakescript import DONE, chunk
from tests.gateway.bytegateway import ByteGateway, Delivery
from tests.gateway.calling import Called, called, request_to
from threads.gateway.calls import CallBounds, CallEvent, run_call
from threads.gateway.clients import close_clients

Seen = TypeVar("Seen")
Leaving: TypeAlias = Literal["cancel", "cancel twice", "break"]

HURRIED = CallBounds(first_data_seconds=0.02, idle_seconds=0.02)
"""For deliveries that end in silence."""

UNHURRIED = CallBounds(first_data_seconds=10, idle_seconds=10)
LONGEST_SECONDS = 20.0

PROBE_BODY = chunk(content="probe") + chunk(finish="stop") + DONE
PROBE = Delivery(
    (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(PROBE_BODY), PROBE_BODY),
    ),
    "fin",
)


class Stage:
    """The loop and what lives on it; made once, by `open_stage`."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.gateway = ByteGateway()
        self.mishaps: list[str] = []
        self._runner = runner

    def call(self, delivery: Delivery, bounds: CallBounds) -> Called:
        """Deliver this to one call, to its end."""
        return self._run(lambda: self._call(delivery, bounds))

    def leave(
        self,
        delivery: Delivery,
        bounds: CallBounds,
        *,
        events: int,
        turns: int,
        leaving: Leaving,
    ) -> list[CallEvent]:
        """Leave a call after so many events, and turns of the loop; what it gave."""
        return self._run(lambda: self._leave(delivery, bounds, events, turns, leaving))

    async def _call(self, delivery: Delivery, bounds: CallBounds) -> Called:
        self.gateway.play(delivery)
        return await called(request_to(self.gateway.base_url), bounds=bounds)

    async def _leave(
        self,
        delivery: Delivery,
        bounds: CallBounds,
        events: int,
        turns: int,
        leaving: Leaving,
    ) -> list[CallEvent]:
        seen: list[CallEvent] = []

        async def consume() -> None:
            request = request_to(self.gateway.base_url)
            async with aclosing(run_call(request, bounds=bounds)) as call:
                async for event in call:
                    seen.append(event)
                    if leaving == "break" and len(seen) >= events:
                        return

        self.gateway.play(delivery)
        consumer = asyncio.create_task(consume())
        while len(seen) < events and not consumer.done():  # noqa: ASYNC110 - turns count
            await asyncio.sleep(0)
        for _ in range(2 if leaving == "cancel twice" else 1):
            for _ in range(turns):
                await asyncio.sleep(0)
            if leaving != "break":
                consumer.cancel()
        outcome = (await asyncio.gather(consumer, return_exceptions=True))[0]
        assert outcome is None or isinstance(outcome, asyncio.CancelledError)
        return seen

    def _run(self, example: Callable[[], Coroutine[Any, Any, Seen]]) -> Seen:
        return self._runner.run(self._watched(example))

    async def _watched(self, example: Callable[[], Coroutine[Any, Any, Seen]]) -> Seen:
        """Run one example to its end, and look at what it leaves behind."""
        self.mishaps.clear()
        before = asyncio.all_tasks()
        async with asyncio.timeout(LONGEST_SECONDS):
            seen = await example()
        connections = self.gateway.connections
        await self._until(lambda: len(connections) <= 1, "connections")
        if connections:
            # One may wait in the pool for the next request, which has to be able to
            # use it, or to notice that it cannot.
            probed = await self._call(PROBE, UNHURRIED)
            assert (probed.shown, probed.verdict.code) == ("probe", "")
        await self._until(lambda: not connections, "connections")
        gc.collect(1)  # the young; all the rest is looked at when the stage is struck
        await self._until(
            lambda: not asyncio.all_tasks() - before - self.gateway.tasks, "tasks"
        )
        assert self.mishaps == []
        return seen

    async def _until(self, look: Callable[[], bool], what: str) -> None:
        """Wait for an end that needs no more than the loop's own turns."""
        for turn in range(300):
            if look():
                return
            await asyncio.sleep(0 if turn < 100 else 0.01)
        tasks = [repr(task) for task in asyncio.all_tasks()]
        pytest.fail(f"left behind: {what}; {len(self.gateway.connections)}; {tasks}")

    def note(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.mishaps.append(f"{context.get('message')}: {context.get('exception')!r}")

    def note_unraisable(self, unraisable: Any) -> None:
        self.mishaps.append(f"{unraisable.object!r}: {unraisable.exc_value!r}")


@contextmanager
def open_stage() -> Iterator[Stage]:
    """Set the stage, and strike it again.

    The SDK's waits between its own tries are taken out, nothing else of it; the log
    is off, since it would be kept for each of the examples.
    """
    hook = sys.unraisablehook
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)
        logging.disable()
        stage = Stage(runner)
        runner.get_loop().set_exception_handler(stage.note)
        sys.unraisablehook = stage.note_unraisable
        try:
            runner.run(stage.gateway.start())
            yield stage
            gc.collect()
            runner.run(asyncio.sleep(0))
            assert stage.mishaps == []
        finally:
            runner.run(close_clients())
            runner.run(stage.gateway.close())
            sys.unraisablehook = hook
            logging.disable(logging.NOTSET)
