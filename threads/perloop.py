"""What belongs to one event loop: objects made once for each, and tasks of its own.

Never knows what a round is.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

Made = TypeVar("Made")
Result = TypeVar("Result")


class PerLoop(Generic[Made]):
    """One object for each running event loop, made when it is first asked for."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, Made] = (
            WeakKeyDictionary()
        )

    def get(self) -> Made:
        """Return the running loop's own.

        Raises:
            RuntimeError: no loop is running in this thread.
        """
        loop = asyncio.get_running_loop()
        made = self._made.get(loop)
        if made is None:
            made = self._made[loop] = self._make()
        return made


def start_task(
    coroutine: Coroutine[Any, Any, Result], *, name: str
) -> asyncio.Task[Result]:
    """Start a task that inherits nothing from whoever starts it.

    A round outlives the request that asked for it: its language and Django's
    thread-sensitive context (whose thread ends with the request) stay behind.
    The caller keeps the reference.
    """
    loop = asyncio.get_running_loop()
    return loop.create_task(coroutine, name=name, context=contextvars.Context())
