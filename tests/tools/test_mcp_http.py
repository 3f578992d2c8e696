"""Tool servers at an address: what they answer and how they fail."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from asgiref.sync import sync_to_async

from tests.tools.conftest import HttpServer, checked, http_row, run
from threads.models import ToolServer
from threads.tools.mcp import client, wire
from threads.tools.mcp.values import unsafe

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("sessions"),
]


async def test_a_server_at_an_address_is_listed_called_and_dies(
    http_server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await sync_to_async(lambda: checked(http_server.row()))()

    assert server.health == ToolServer.Health.WORKS, server.problem
    assert (await run("web__echo", word="soup")).text == "You said soup"
    assert (await run("web__token")).text == "<Bearer [key]>"
    refused = await run("web__refuses")
    assert (refused.state, "I do not like it" in refused.text) == ("error", True)
    odd = [await run("web__echo", word="\ud800"), await run("web__pid", x=float("nan"))]
    assert [result.state for result in odd] == ["ok", "not_run"]
    long = await run("web__rambles")
    assert long.text.endswith("[Shortened: the result had 3400000 characters.]")
    monkeypatch.setattr(client, "CALL_SECONDS", 1.0)
    hung, waited = await asyncio.gather(run("web__hangs"), run("web__waits"))
    assert (hung.state, waited.state) == ("unknown", "error")
    monkeypatch.setattr(client, "CALL_SECONDS", 120.0)
    dead, beside = await asyncio.gather(
        run("web__dies", after="soup"), run("web__hangs", word="soup")
    )
    assert (dead.state, beside.state) == ("unknown", "unknown")
    assert "The connection to the tool server 'web' broke." in dead.text
    gone = await run("web__dies")
    assert gone.state == "error"
    assert gone.text.startswith("The tool failed: The tool server 'web' cannot be rea")
    await sync_to_async(http_server.start)("json")
    assert (await run("web__echo", word="again")).text == "You said again"
    assert (await run("web__dies")).state == "unknown"


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("401 Unauthorized", "The tool server 'web' refused (HTTP 401)"),
        ("307 Elsewhere\r\nLocation: /secret", "redirects elsewhere"),
        ("308 Elsewhere\r\nLocation: http://127.0.0.1:9/", "redirects elsewhere"),
        ("502 Bad Gateway", "The tool server 'web' failed (HTTP 502)"),
        ("200 OK\r\nContent-Type: text/html", "sent an answer that is no result"),
        ("200 OK\r\nContent-Type: application/json", "sent an answer that is no"),
        ("", "The connection to the tool server 'web' broke."),
    ],
)
async def test_what_is_no_tool_server_is_named(head: str, problem: str) -> None:
    async with answering(f"HTTP/1.1 {head}\r\n" if head else "") as url:
        server = await sync_to_async(lambda: checked(http_row(url)))()

    assert server.health == ToolServer.Health.PROBLEM
    assert problem in server.problem
    assert "secret" not in server.problem


async def test_a_server_that_says_nothing_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "CONNECT_SECONDS", 1.0)
    async with answering(None) as url:
        server = await sync_to_async(lambda: checked(http_row(url)))()

    assert "did not answer within" in server.problem


def test_what_leaves_this_network_is_encrypted() -> None:
    for url in ("https://example.com/mcp", "http://127.0.0.1:1/", "http://box/mcp"):
        assert unsafe(url) == ""
    for url in (
        "http://example.com/",
        "ftp://box/",
        "example.com",
        "",
        "http://[",
        "/",
    ):
        assert unsafe(url) != ""
    assert "only https" in checked(http_row("http://example.com/mcp")).problem


@asynccontextmanager
async def answering(head: str | None) -> AsyncIterator[str]:
    """A server that answers every request with this head, with nothing, or not."""

    async def answer(reads: asyncio.StreamReader, writes: asyncio.StreamWriter) -> None:
        asked = await reads.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", asked, re.IGNORECASE)
        # To close before all of it is read would reset the connection.
        await reads.readexactly(int(length[1]) if length else 0)
        if head is None:
            await reads.read()
        elif head:
            writes.write(
                f"{head}Connection: close\r\nContent-Length: 2\r\n\r\n<>".encode()
            )
            await writes.drain()
        writes.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/mcp"
