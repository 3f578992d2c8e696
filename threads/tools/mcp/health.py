"""What the database has of tool servers: how to reach them, what they offer, how they fare.

A server is tried when it is saved, when the site starts and when an operator asks
for it; whatever a round meets is written down as well.
"""

import asyncio
import logging
import threading
from collections.abc import Iterable
from datetime import datetime

from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from threads.core.redaction import REASON_LENGTH
from threads.endpoints import key_in
from threads.models import ToolServer
from threads.perloop import PerLoop, start_task
from threads.tools.calling import in_thread
from threads.tools.mcp.client import CLOSE_SECONDS, Report, close_servers, listing_of
from threads.tools.mcp.values import STDIO, Listing, ServerAddress, ServerError

logger = logging.getLogger(__name__)

_trying = set[int]()
"""The servers that are being tried in the background by this process."""


def address_of(server: ToolServer) -> ServerAddress:
    """Return where a server is, with its secrets as the environment has them now."""
    names = [server.secret_variable, *server.extra_variables.split()]
    is_command = server.transport == STDIO
    passed_on = {name: key_in(name) for name in names if name and is_command}
    return ServerAddress(
        slug=server.slug,
        transport=server.transport,
        command=server.command if is_command else "",
        arguments=tuple(map(str, server.arguments)) if is_command else (),
        environment=tuple((name, value) for name, value in passed_on.items() if value),
        url="" if is_command else server.url,
        token=key_in(server.secret_variable),
    )


def record(server_id: int, news: Listing | str, at: datetime) -> None:
    """Write down what a server offers, or why it cannot be used.

    `at` is when that was learnt: it does not undo what was learnt later, since
    threads and processes write in any order.
    """
    rows = ToolServer.objects.filter(pk=server_id).exclude(last_checked_at__gt=at)
    if isinstance(news, str):
        rows.update(last_checked_at=at, problem=news[:REASON_LENGTH])
        return
    problem = ""
    if news.left_out:
        problem = f"Tools left out, too many, too large or unfit: {news.left_out}."
    rows.update(tools=news.tools, last_ok_at=at, last_checked_at=at, problem=problem)


def check(servers: Iterable[ToolServer]) -> None:
    """Ask servers for their tools, all at the same time, and write down what came.

    For synchronous code, which waits some twenty seconds at most.
    """
    asked = {server.pk: address_of(server) for server in servers}

    async def ask_all() -> list[tuple[Listing | str, datetime]]:
        return await asyncio.gather(*map(_news_of, asked.values()))

    for server_id, (news, at) in zip(asked, asyncio.run(ask_all()), strict=True):
        record(server_id, news, at)


async def _news_of(address: ServerAddress) -> tuple[Listing | str, datetime]:
    news: Listing | str
    try:
        news = await listing_of(address)
    except ServerError as error:
        news = error.report
    return news, timezone.now()


def check_soon(server_id: int) -> None:
    """Ask a server for its tools in the background; returns at once."""
    if server_id not in _trying:
        _trying.add(server_id)
        threading.Thread(
            target=_try, args=(server_id,), name=f"try-{server_id}", daemon=True
        ).start()


def check_untried() -> None:
    """Ask those servers in the background of whose tools nothing is known."""
    for server in ToolServer.objects.enabled():
        if server.wants_trying:
            check_soon(server.pk)


def _try(server_id: int) -> None:
    try:
        check(ToolServer.objects.filter(pk=server_id))
    except (DatabaseError, InterfaceError) as error:
        logger.warning("TOOL_SERVER_NOT_RECORDED %s", type(error).__name__)
    finally:
        connections.close_all()
        _trying.discard(server_id)


_reports = PerLoop[set[asyncio.Task[None]]](set)


def reporter(server_id: int) -> Report:
    """Return what writes down the news of a server without holding up a call."""

    def report(news: Listing | str) -> None:
        reports = _reports.get()
        writing = _write(server_id, news, timezone.now())
        task = start_task(writing, name=f"report-{server_id}")
        reports.add(task)
        task.add_done_callback(reports.discard)

    return report


async def _write(server_id: int, news: Listing | str, at: datetime) -> None:
    outcome = await in_thread(lambda: record(server_id, news, at), name="report")
    if isinstance(outcome, BaseException):
        logger.warning("TOOL_SERVER_NOT_RECORDED %s", type(outcome).__name__)


async def shut_down() -> None:
    """Close this loop's sessions, end their processes, and finish what is written."""
    await close_servers()
    if reports := _reports.get():
        await asyncio.wait(set(reports), timeout=CLOSE_SECONDS)
