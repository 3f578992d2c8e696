"""Tool servers in processes of their own, and the rows that name them."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.utils import timezone

from tests.conftest import ROOT
from threads.core.events import ToolCall
from threads.models import ToolServer
from threads.rounds import engine
from threads.tools import running
from threads.tools.mcp import client, health, http, wire
from threads.tools.registry import ToolContext
from threads.tools.running import ToolResult
from threads.tools.toolset import toolset_for

SCRIPT = str(Path(__file__).with_name("mcpserver.py"))
OLD_SCRIPT = str(Path(__file__).with_name("oldserver.py"))
TOKEN = "s3cret-4711"
CONTEXT = ToolContext(
    round_id=1, thread_id=1, owner_id=1, locale="en", idempotency_key="round-1-call-1-0"
)

WORD = {"type": "object", "properties": {"word": {"type": "string"}}}
KNOWN = [
    {"name": name, "description": "", "schema": schema, "is_read_only": is_read_only}
    for name, schema, is_read_only in (
        *(("echo", WORD, True), ("pid", {"type": "object"}, True)),
        *(("hangs", {"type": "object"}, False), ("waits", {"type": "object"}, True)),
        *((name, {"type": "object"}, False) for name in ("dies", "shouts.loudly")),
        *((name, {"type": "object"}, True) for name in ("rambles", "draws")),
    )
]
"""A few tools of the test server, as they were listed at some earlier time."""


@pytest.fixture(autouse=True)
def _slow_machines_have_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server takes a second to start, and many where the machine is busy."""
    for module in (wire, http):
        monkeypatch.setattr(module, "CONNECT_SECONDS", 60.0)
    monkeypatch.setattr(wire, "LIST_SECONDS", 60.0)
    monkeypatch.setattr(client, "OPEN_SECONDS", 120.0)
    monkeypatch.setattr(client, "CALL_SECONDS", 120.0)
    monkeypatch.setattr(running, "RUN_SECONDS", 150.0)
    monkeypatch.setenv("A_TOKEN", TOKEN)


@pytest_asyncio.fixture
async def sessions(transactional_db: None) -> AsyncIterator[None]:
    """Sessions may be opened; they are closed as when the site ends."""
    yield
    await engine.shutdown()


def stdio_row(slug: str = "demo", **more: Any) -> ToolServer:
    """A server on this machine, of which nothing is known yet."""
    command = {"command": sys.executable, "arguments": [SCRIPT, "stdio"]}
    values = command | {"name": slug, "secret_variable": "A_TOKEN", "policy": "allow"}
    return ToolServer.objects.create(slug=slug, **values | more)


def known_row(slug: str = "demo", **more: Any) -> ToolServer:
    """A server on this machine which was listed earlier."""
    now = timezone.now()
    known = {"tools": KNOWN, "last_ok_at": now, "last_checked_at": now}
    return stdio_row(slug, **known | more)


def checked(server: ToolServer) -> ToolServer:
    """Ask a server for its tools and return what is known then."""
    health.check([server])
    server.refresh_from_db()
    return server


class HttpServer:
    """The test server on loopback; it can be started again at its address."""

    def __init__(self) -> None:
        self.port = 0
        self.process: subprocess.Popen[str]

    def start(self, *more: str) -> None:
        """Start it, and wait until its port is open."""
        if self.port:
            self.stop()
        self.process = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, SCRIPT, "http", str(self.port), *more],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def stop(self) -> None:
        """End it, if it has not ended."""
        self.process.kill()
        self.process.communicate()

    def row(self, **more: Any) -> ToolServer:
        """The row that names it."""
        return http_row(f"http://127.0.0.1:{self.port}/mcp", **more)


def http_row(url: str, **more: Any) -> ToolServer:
    """A server at an address, of which nothing is known yet."""
    values = {"slug": "web", "name": "web", "transport": "http", "policy": "allow"}
    return ToolServer.objects.create(
        url=url, **values | {"secret_variable": "A_TOKEN"} | more
    )


@pytest.fixture
def http_server() -> Iterator[HttpServer]:
    """A running server on loopback."""
    server = HttpServer()
    server.start()
    yield server
    server.stop()


async def run(name: str, **arguments: Any) -> ToolResult:
    """Run a call with the tools that a round would have."""
    toolset = await sync_to_async(toolset_for)(None)
    asked = ToolCall("call_1", name, json.dumps(arguments), "")
    return await running.run_asked(asked, toolset, CONTEXT)


def alive_in_group(group: int) -> list[int]:
    """The processes of a group that have not ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            found.append(int(entry.parent.name))
    return found
