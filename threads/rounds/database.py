"""The one thread that writes rounds.

Never knows what a round is.
"""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import DatabaseError, InterfaceError, connections

Result = TypeVar("Result")
Params = ParamSpec("Params")

# Twenty writers gain nothing over one, and on SQLite they wait for each other:
# every write of every round of this process goes through this thread, whose
# connection stays open (opening one costs more than the write).
WRITER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rounds-database")


async def in_database(
    function: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
) -> Result:
    """Run a synchronous function that uses the ORM in the writing thread.

    A cancelled caller does not interrupt the function: what was begun is
    finished. Whatever the function raises is raised here.
    """

    def call() -> Result:
        try:
            return function(*args, **kwargs)
        except (DatabaseError, InterfaceError):
            # The next caller gets a connection that works.
            for connection in connections.all(initialized_only=True):
                if not connection.in_atomic_block:
                    connection.close_if_unusable_or_obsolete()
            raise

    # Shielded: a call that still waits for its turn would otherwise be dropped.
    return await asyncio.shield(
        asyncio.get_running_loop().run_in_executor(WRITER, call)
    )


async def close_database() -> None:
    """Close the writing thread's connections; the next write opens new ones."""
    with contextlib.suppress(RuntimeError):
        await asyncio.get_running_loop().run_in_executor(WRITER, connections.close_all)
