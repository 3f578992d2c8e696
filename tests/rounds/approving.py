"""Rounds whose tools ask first: brought to where they ask, decided, let go on."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from tests.conftest import model_at
from tests.fakegateway import FakeGateway, Script
from tests.rounds.helpers import ask, over
from tests.rounds.tooling import function_tool
from threads.models import Cell, Round, Thread, ToolRun
from threads.rounds import approval, engine
from threads.tools.registry import FunctionTool


def same(word: str) -> str:
    """What a tool does that says what it was told."""
    return word


def sending(function: Callable[[str], Any] = same) -> FunctionTool:
    """A tool with effects, which asks first."""
    return function_tool("send", function, has_effects=True)


async def rested(thread: Thread, gateway: FakeGateway, *scripts: Script) -> Round:
    """A round that has ended, or come so far that it asks."""
    gateway.play(*scripts)
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    await engine.wait(round_.pk)
    await over(round_)
    await round_.arefresh_from_db()
    return round_


async def decide(run: ToolRun, by: User, **word: Any) -> bool:
    """Give a person's word."""
    return await sync_to_async(approval.decide)(run, by=by, **word)


async def go_on(round_: Round) -> Cell:
    """Let a round go on until it has ended, or asks again."""
    await engine.start(round_.pk)
    await engine.wait(round_.pk)
    return await over(round_)


async def allowed(round_: Round, by: User) -> Cell:
    """Allow what waits, and let the round go on."""
    await decide(await ToolRun.objects.aget(state="waiting"), by, allow=True)
    return await go_on(round_)
