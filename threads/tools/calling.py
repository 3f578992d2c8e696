"""Calling a plain function from the loop, in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable

from django.db import connections


async def in_thread(function: Callable[[], object], *, name: str) -> object:
    """Call a function that may block; returns what it returns, or what it raised.

    Raised here, a tool's TimeoutError would pass for the end of our patience, and
    its CancelledError for our own; StopIteration cannot cross a future at all.
    A daemon: a tool that hangs holds up neither other tools nor the end of the
    process, as a worker of a pool would.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[object] = loop.create_future()

    def settle(outcome: object) -> None:
        if not done.done():
            done.set_result(outcome)

    def call() -> None:
        outcome: object
        try:
            try:
                outcome = function()
            finally:
                connections.close_all()
        except BaseException as raised:  # noqa: BLE001 - a tool is anybody's code
            outcome = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=call, name=f"tool-{name}", daemon=True).start()
    return await done
