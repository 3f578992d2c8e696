"""A process that is killed inside a tool with effects: nobody runs the tool again."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

WORKER = """
import asyncio, os, signal, sys
import django
django.setup()
from django.core.management import call_command
from tests.conftest import model_now, person
from tests.fakegateway import FakeGateway
from tests.rounds.helpers import opened
from tests.rounds.tooling import asking, function_tool, with_tools
from threads.models import Thread, ToolRule
from threads.rounds import engine

call_command("migrate", verbosity=0)

def send(word):
    with open(sys.argv[1], "a") as sent:
        sent.write(word)
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with FakeGateway() as gateway:
        gateway.play(asking(("send", {"word": "a letter. "}), text="I send it."))
        from asgiref.sync import sync_to_async
        owner = await sync_to_async(person)("alice", "wonderland")
        await ToolRule.objects.acreate(tool="send", policy="allow")
        thread = await Thread.objects.acreate(owner=owner)
        model = await sync_to_async(model_now)("some/model", gateway.base_url)
        round_ = await opened(thread, model)
        await engine.start(round_.pk)
        await engine.wait(round_.pk)

with with_tools(function_tool("send", send, has_effects=True)):
    asyncio.run(main())
"""

LATER = """
import asyncio, json, sys
import django
django.setup()
from tests.rounds.tooling import function_tool, with_tools
from threads.models import Cell, Round, ToolRun
from threads.rounds import engine, resubmit

def send(word):
    with open(sys.argv[1], "a") as sent:
        sent.write(word)

async def sweep():
    await engine.engine().sweep()
    await engine.shutdown()

with with_tools(function_tool("send", send, has_effects=True)):
    asyncio.run(sweep())
    asyncio.run(sweep())
    cell = Cell.objects.get(role="assistant")
    try:
        resubmit.resubmit(cell, by=None, locale="en", attended=True)
        asked = []
    except resubmit.EffectsError as error:
        asked = list(error.tools)
run = ToolRun.objects.get()
told = [cell.sentence_key, cell.sentence_params.get("unknown_tool")]
print(json.dumps([cell.status, cell.code, cell.text, run.state, asked, told]))
"""


def play(
    script: str, *, database: Path, sent: Path
) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own."""
    environment = os.environ | {
        "DATABASE_URL": f"sqlite:///{database}",
        "DJANGO_SETTINGS_MODULE": "chatsite.settings",
        "PYTHONPATH": str(ROOT),
        "CHAT_CALL_RETRIES": "0",
    }
    return subprocess.run(  # noqa: S603 - our own scripts
        [sys.executable, "-c", script, str(sent)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_tool_whose_process_was_killed_is_unknown_and_never_run_again(
    tmp_path: Path,
) -> None:
    database, sent = tmp_path / "db.sqlite3", tmp_path / "sent"

    killed = play(WORKER, database=database, sent=sent)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert sent.read_text() == "a letter. "

    later = play(LATER, database=database, sent=sent)

    assert later.returncode == 0, later.stderr
    assert later.stdout.strip() == (
        '["error", "worker_lost", "I send it.", "unknown", ["send"],'
        ' ["round.worker_lost", "send"]]'
    )
    assert sent.read_text() == "a letter. "
