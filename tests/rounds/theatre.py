"""Where any round is played: one loop whose clock jumps, one gateway, many threads."""

import asyncio
import gc
import logging
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.contrib.auth.models import User

from tests.conftest import model_now, person
from tests.rounds.drivengateway import DrivenGateway
from tests.virtualtime import VirtualTimeLoop
from threads.models import Agent
from threads.rounds import engine

Seen = TypeVar("Seen")

HOUSEKEEPING = frozenset({"sweeper"})
"""Tasks of the site that outlive a round."""

EXPECTED_MARKERS = (
    *("PROVIDER_STREAM_", "PROVIDER_REFUSED", "[ProviderRetry] ", "[ThreadExec] "),
    *("MODEL_SUBSTITUTED ", "CONTEXT_WINDOW_UNDECLARED "),
)


class Theatre:
    """What all examples share; made once, by `open_theatre`."""

    def __init__(self, runner: asyncio.Runner, loop: VirtualTimeLoop) -> None:
        self.loop = loop
        self.gateway = DrivenGateway()
        self.said: list[logging.LogRecord] = []
        self.mishaps: list[str] = []
        self._runner = runner
        self.run(self.gateway.start())
        self.owner: User = person("alice", "wonderland")
        self.model = model_now("some/model", self.gateway.base_url)
        self.agents = {
            policy: Agent.objects.create(slug=policy, name=policy, cut_policy=policy)
            for policy in Agent.CutPolicy.values
        }

    def run(self, play: Coroutine[Any, Any, Seen]) -> Seen:
        """Let the loop run until this is done; in between its clock stands still."""
        return self._runner.run(play)

    def markers(self, marker: str) -> int:
        """Count the warnings of this example that begin so."""
        return sum(each.getMessage().startswith(marker) for each in self.said)

    async def is_still(self) -> None:
        """See that no round has left a task or a connection behind.

        What answers were whole may wait in the pool, one connection at the most.
        """
        await asyncio.sleep(2)
        await self.loop.quiet()
        here = asyncio.current_task()
        left = {task.get_name() for task in asyncio.all_tasks() if task is not here}
        assert left <= HOUSEKEEPING, left
        assert len(self.gateway.connections) <= 1
        assert not self.gateway.is_busy

    def unexpected(self) -> list[str]:
        """Return what the code said that no round may make it say."""
        return [
            record.getMessage()
            for record in self.said
            if record.levelno >= logging.ERROR
            or not record.getMessage().startswith(EXPECTED_MARKERS)
        ]

    def strike(self) -> None:
        """Let go of everything, and look at what failed where nobody looked."""
        self.run(engine.shutdown())
        self.run(self.gateway.close())
        gc.collect()
        self.run(asyncio.sleep(1))
        assert self.mishaps == []
        assert {task.get_name() for task in asyncio.all_tasks(self.loop)} == set()

    def note(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.mishaps.append(f"{context.get('message')}: {context.get('exception')!r}")

    def note_unraisable(self, unraisable: Any) -> None:
        """Note what nobody could catch.

        But for this: the SDK leaves its generators to the garbage collector, and
        one that runs in the database's thread may look at a generator which the
        loop is closing at that moment.
        """
        if str(unraisable.exc_value) == "async generator already executing":
            return
        self.mishaps.append(f"{unraisable.object!r}: {unraisable.exc_value!r}")


class _Listener(logging.Handler):
    """Keeps what an example's code said, and away from pytest, who would keep it all."""

    def __init__(self, said: list[logging.LogRecord]) -> None:
        super().__init__(logging.WARNING)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record)


def _has_tool() -> bool:
    """A tool runs in a thread of its own, which the loop does not know."""
    return any(each.name.startswith("tool-") for each in threading.enumerate())


@contextmanager
def open_theatre() -> Iterator[Theatre]:
    """Build the theatre in a test's database, and take it down again."""
    hook = sys.unraisablehook
    logger = logging.getLogger("threads")
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.is_held = _has_tool
        theatre = Theatre(runner, loop)
        listener = _Listener(theatre.said)
        loop.set_exception_handler(theatre.note)
        sys.unraisablehook = theatre.note_unraisable
        logger.addHandler(listener)
        logger.propagate = False
        try:
            yield theatre
        finally:
            sys.unraisablehook = hook
            logger.removeHandler(listener)
            logger.propagate = True
        theatre.strike()
