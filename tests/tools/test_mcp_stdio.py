"""Tool servers on this machine: what they answer, how they fail, what they leave."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from tests.polling import eventually
from tests.rounds.helpers import until, until_stored
from tests.tools.conftest import (
    OLD_SCRIPT,
    alive_in_group,
    checked,
    known_row,
    run,
    stdio_row,
)
from threads.models import ToolServer
from threads.rounds import engine
from threads.tools import running
from threads.tools.mcp import client, keeper, wire
from threads.tools.mcp.client import CALL_SECONDS, OPEN_SECONDS
from threads.tools.mcp.tools import wire_name
from threads.tools.running import RUN_SECONDS

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("sessions"),
]

Health = ToolServer.Health


async def test_a_server_is_listed_called_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-servers")

    await sync_to_async(known_row)()

    echoed = await run("demo__echo", word="soup")
    assert (echoed.state, echoed.text) == ("ok", "You said soup")
    pid, *variables = (await run("demo__pid")).text.split()
    assert "A_TOKEN" in variables
    assert "OPENAI_API_KEY" not in variables
    failed = await run(wire_name("demo", "shouts.loudly"))
    assert (failed.state, failed.text) == ("error", "The tool failed: No soup today")
    odd = [
        await run("demo__echo", word="\ud800"),
        await run("demo__pid", x=float("nan")),
    ]
    assert [result.state for result in odd] == ["ok", "not_run"]
    long = await run("demo__rambles")
    assert (long.state, len(long.text)) == ("ok", running.RESULT_LENGTH)
    assert long.text.endswith("[Shortened: the result had 3400000 characters.]")
    drawn = await run("demo__draws")
    assert drawn.text == '{"price": 12}\n[Not shown here: image, image/png.]'
    group = os.getpgid(int(pid))
    assert len(alive_in_group(group)) == 2
    await engine.shutdown()
    assert alive_in_group(group) == []
    server = await ToolServer.objects.aget()
    effects = {tool["name"]: not tool["is_read_only"] for tool in server.tools}
    assert effects["refuses"] is True
    assert effects["token"] is False


async def test_a_call_that_hangs_is_given_up_alone_and_the_next_one_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = await sync_to_async(known_row)()
    first = (await run("demo__pid")).text.split()[0]
    cancelled = asyncio.ensure_future(run("demo__hangs"))
    beside = await asyncio.gather(*(run("demo__echo", word=str(n)) for n in range(3)))
    cancelled.cancel()
    await asyncio.wait({cancelled})

    assert [result.text for result in beside] == [f"You said {n}" for n in range(3)]
    assert (await run("demo__pid")).text.split()[0] == first
    monkeypatch.setattr(client, "CALL_SECONDS", 1.0)
    hung, waited = await asyncio.gather(run("demo__hangs"), run("demo__waits"))
    assert (hung.state, waited.state) == ("unknown", "error")
    assert "The tool server 'demo' did not answer within" in hung.text
    assert hung.text.endswith(running.MAYBE)
    monkeypatch.setattr(client, "CALL_SECONDS", 120.0)
    assert (await run("demo__pid")).text.split()[0] != first
    await until(lambda: not alive_in_group(int(first)))
    await until_stored(lambda: _health(server) == Health.WORKS)


async def test_a_server_that_dies_is_named_started_again_and_closed_when_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = await sync_to_async(known_row)()
    group = os.getpgid(int((await run("demo__pid")).text.split()[0]))

    died = await run("demo__dies")

    assert (died.state, died.text) == (
        "unknown",
        f"The tool server 'demo' ended. {running.MAYBE}",
    )
    await until(lambda: not alive_in_group(group))
    await until_stored(lambda: _health(server) == Health.PROBLEM)
    await server.arefresh_from_db()
    assert re.fullmatch(
        r"The tool server 'demo' ended. Its last words: Out of memory in \d+ \[key\]",
        server.problem,
    )
    monkeypatch.setattr(client, "IDLE_SECONDS", 0.1)
    group = os.getpgid(int((await run("demo__pid")).text.split()[0]))
    await until_stored(lambda: _health(server) == Health.WORKS)
    await until(lambda: not alive_in_group(group))


async def test_a_server_of_the_older_protocol_is_spoken_to_and_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "RELIST_SECONDS", 0.0)
    server = await sync_to_async(
        lambda: checked(stdio_row(arguments=["-S", OLD_SCRIPT]))
    )()
    assert [tool["name"] for tool in server.tools] == ["learn", "refuse", "garble"]

    refused = await run("demo__refuse")
    garbled = await run("demo__garble")
    learned = await run("demo__learn")

    assert refused.text == "The tool failed: The tool server 'demo' refused: Not today"
    assert (garbled.state, learned.state) == ("unknown", "ok")
    assert garbled.text.startswith("The tool server 'demo' sent an answer that is no")
    await until_stored(
        lambda: "new" in [tool["name"] for tool in ToolServer.objects.get().tools]
    )


async def test_a_site_that_ends_while_a_server_starts_leaves_nothing(
    tmp_path: Path,
) -> None:
    note = tmp_path / "pid"
    script = f"echo $$ > {note}.new; mv {note}.new {note}; exec sleep 600"
    await sync_to_async(known_row)(command="/bin/sh", arguments=["-c", script])
    begun = asyncio.ensure_future(run("demo__dies"))
    await until(note.exists)
    group = os.getpgid(int(note.read_text()))

    await engine.shutdown()

    assert alive_in_group(group) == []
    result = await begun
    assert (result.state, result.text) == (
        "error",
        "The tool failed: The site is shutting down.",
    )


def test_a_call_ends_before_the_runner_gives_up() -> None:
    assert OPEN_SECONDS < CALL_SECONDS < RUN_SECONDS


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["/no/such/program"], "ended. Its last words: /no/such/program: No such file"),
        ([sys.executable, "-c", "raise SystemExit('no config')"], "words: no config"),
        (
            ["/bin/sh", "-c", "echo hello; exec sleep 600"],
            "did not answer within 3 seconds; what it sends is not the protocol.",
        ),
    ],
)
def test_what_is_no_tool_server_is_named(
    monkeypatch: pytest.MonkeyPatch, command: list[str], problem: str
) -> None:
    monkeypatch.setattr(wire, "CONNECT_SECONDS", 3.0)

    server = checked(stdio_row(command=command[0], arguments=command[1:]))

    assert server.health == Health.PROBLEM
    assert problem in server.problem


def test_no_server_survives_the_site_be_it_killed() -> None:
    site = subprocess.Popen(  # noqa: S603 - our own script
        [
            *(sys.executable, "-c"),
            "import os, subprocess, sys\n"
            "keeper = [sys.executable, '-I', '-S', sys.argv[1], str(os.getpid())]\n"
            "server = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
            "print(subprocess.Popen(keeper + server, start_new_session=True).pid,"
            " flush=True)\n"
            "sys.stdin.read()",
            keeper.__file__,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert site.stdout is not None
    group = int(site.stdout.readline())
    eventually(lambda: len(alive_in_group(group)) == 2)

    site.kill()
    site.communicate()

    eventually(lambda: not alive_in_group(group))


def _health(server: ToolServer) -> ToolServer.Health:
    server.refresh_from_db()
    return server.health
