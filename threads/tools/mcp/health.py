"""What the database has of tool servers: how to reach them, what they offer, how they fare.

A server is tried when it is saved, when the site starts and when an operator asks
for it; whatever a round meets is written down as well.
"""

import asyncio
import logging
import threading
from collections.abc import Iterable
from datetime import datetime

from django.db import DatabaseError, InterfaceError, connections, transaction
from django.utils import timezone

from threads.core.redaction import REASON_LENGTH
from threads.endpoints import key_in
from threads.models import ToolServer
from threads.perloop import PerLoop, start_task
from threads.tools.calling import in_thread
from threads.tools.mcp.client import CLOSE_SECONDS, Report, close_servers, try_server
from threads.tools.mcp.values import STDIO, Listing, ServerAddress, ServerError

logger = logging.getLogger(__name__)

LEFT_OUT = "Tools left out, too many, too large or unfit:"

_trying = set[ServerAddress]()
"""The servers that are being tried in the background by this process."""

News = Listing | str
"""The tools of a server that works, or why one does not."""


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


def record(server_id: int, address: ServerAddress, news: News, at: datetime) -> None:
    """Write down what a server offers, or why it cannot be used.

    `address` is who was asked and `at` when it was learnt. What was learnt later is
    not undone, since threads and processes write in any order; nor is a server
    blamed for another that had its row before. A time to come counts as past: some
    clock was wrong.
    """
    with transaction.atomic():
        row = ToolServer.objects.select_for_update().filter(pk=server_id).first()
        if row is None or address_of(row) != address:
            return
        if row.last_checked_at and at <= row.last_checked_at <= timezone.now():
            return
        row.last_checked_at, row.problem = at, ""
        if isinstance(news, str):
            row.problem = news if len(news) <= REASON_LENGTH else _cut(news)
        else:
            row.tools, row.last_ok_at = news.tools, at
            if news.left_out:
                row.problem = f"{LEFT_OUT} {news.left_out}."
        row.save(update_fields=["last_checked_at", "problem", "tools", "last_ok_at"])


def _cut(words: str) -> str:
    return words[: REASON_LENGTH - 1] + "…"


def check(servers: Iterable[ToolServer]) -> None:
    """Ask servers for their tools, all at the same time, and write down what came.

    For synchronous code, which waits some twenty seconds at most.
    """
    asked = {server.pk: address_of(server) for server in servers}

    async def ask_all() -> list[tuple[News, datetime]]:
        return await asyncio.gather(*map(_news_of, asked.values()))

    told = asyncio.run(ask_all())
    for (server_id, address), (news, at) in zip(asked.items(), told, strict=True):
        record(server_id, address, news, at)


async def _news_of(address: ServerAddress) -> tuple[News, datetime]:
    """Ask one server; the time is that of its answer, not of its goodbye."""
    told = list[tuple[News, datetime]]()
    try:
        await try_server(address, lambda news: told.append((news, timezone.now())))
    except ServerError as error:
        told.append((error.report, timezone.now()))
    return told[0]


def check_soon(server: ToolServer) -> None:
    """Ask a server for its tools in the background; returns at once."""
    address = address_of(server)
    if address not in _trying:
        _trying.add(address)
        threading.Thread(
            target=_try, args=(server, address), name=f"try-{server.slug}", daemon=True
        ).start()


def check_untried() -> None:
    """Ask those servers in the background of whose tools nothing is known."""
    for server in ToolServer.objects.enabled():
        if server.wants_trying:
            check_soon(server)


def _try(server: ToolServer, address: ServerAddress) -> None:
    try:
        check([server])
    except (DatabaseError, InterfaceError) as error:
        logger.warning("TOOL_SERVER_NOT_RECORDED %s", type(error).__name__)
    finally:
        connections.close_all()
        _trying.discard(address)


_reports = PerLoop[set[asyncio.Task[None]]](set)


def reporter(server_id: int, address: ServerAddress) -> Report:
    """Return what writes down the news of a server without holding up a call."""

    def report(news: News) -> None:
        reports = _reports.get()
        writing = _write(server_id, address, news, timezone.now())
        task = start_task(writing, name=f"report-{server_id}")
        reports.add(task)
        task.add_done_callback(reports.discard)

    return report


async def _write(
    server_id: int, address: ServerAddress, news: News, at: datetime
) -> None:
    outcome = await in_thread(
        lambda: record(server_id, address, news, at), name="report"
    )
    if isinstance(outcome, BaseException):
        logger.warning("TOOL_SERVER_NOT_RECORDED %s", type(outcome).__name__)


async def shut_down() -> None:
    """Close this loop's sessions, end their processes, and finish what is written."""
    await close_servers()
    if reports := _reports.get():
        await asyncio.wait(set(reports), timeout=CLOSE_SECONDS)
