"""The cap of a round: what it names, read off what it cut, on a clock that jumps."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pytest_django import Settings

from tests.conftest import model_at
from tests.fakegateway import FakeGateway, Pause, Reset, Script, Stall, chunk
from tests.rounds.helpers import cell_of, opened
from tests.rounds.tooling import WORD, asking, with_tools
from tests.virtualtime import VirtualTimeLoop
from threads.models import CallAttempt, Cell, Round, Thread, ToolRun
from threads.rounds import engine, ledger
from threads.tools.registry import ToolContext

pytestmark = pytest.mark.django_db(transaction=True)

CAP = 1800.0
PREFIX = "AI streaming exceeded the maximum round duration of 30 minutes."
THINKS = [step for _ in range(40) for step in (chunk(reasoning="Hm. "), Pause(60))]


@dataclass(frozen=True)
class Endless:
    """A tool that never comes to an end, and waits on the loop's own clock."""

    name: str = "dig"
    description: str = "Digs."
    has_effects: bool = False

    @property
    def parameters(self) -> dict[str, Any]:
        return WORD

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> object:
        await asyncio.sleep(10 * CAP)
        return ""


def _has_tool() -> bool:
    return any(each.name.startswith("tool-") for each in threading.enumerate())


@pytest.fixture
def play(thread: Thread, settings: Settings) -> Callable[..., tuple[Cell, float]]:
    """Play a round to its end; gives its cell, and how long it took in seconds."""
    settings.CHAT_ROUND_CAP_SECONDS = str(CAP)
    # The bound of one call is below the cap on a real site.
    settings.CHAT_FIRST_DATA_SECONDS = settings.CHAT_IDLE_SECONDS = "4000"

    async def played(
        scripts: tuple[Script, ...], stop_after: float | None
    ) -> tuple[Cell, float]:
        loop = asyncio.get_running_loop()
        try:
            async with FakeGateway() as gateway:
                gateway.play(*scripts)
                model = await model_at("some/model", gateway.base_url)
                round_ = await opened(thread, model)
                began = loop.time()
                await engine.start(round_.pk)
                moment = None if stop_after is None else began + stop_after
                stop = asyncio.ensure_future(_stop_at(round_, moment))
                await engine.wait(round_.pk)
                took = loop.time() - began
                await stop
                return await cell_of(round_), took
        finally:
            await engine.shutdown()

    def run(*scripts: Script, stop_after: float | None = None) -> tuple[Cell, float]:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            loop = runner.get_loop()
            assert isinstance(loop, VirtualTimeLoop)
            loop.is_held = _has_tool
            return runner.run(played(scripts, stop_after))

    return run


async def _stop_at(round_: Round, moment: float | None) -> None:
    if moment is None:
        return
    await asyncio.sleep(moment - asyncio.get_running_loop().time())
    await engine.stop(round_.pk)


Play = Callable[..., tuple[Cell, float]]


def test_while_the_model_reasons_it_says_so(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    cell, took = play(Script(*THINKS))

    assert took == pytest.approx(CAP)
    assert (cell.code, cell.sentence_key) == ("round_cap", "round.cap_reasoning")
    assert cell.sentence.startswith(PREFIX)
    assert "still reasoning" in cell.sentence
    assert cell.reasoning == "Hm. " * 30
    attempt = CallAttempt.objects.get()
    assert (attempt.silent_updates, attempt.first_output_ms) == (30, None)
    assert "[ThreadExec] ROUND_CAP_WHILE_REASONING" in caplog.text


def test_where_nothing_ever_came_it_says_so(play: Play) -> None:
    cell, took = play(Script(Stall()))

    assert took == pytest.approx(CAP)
    assert (cell.code, cell.sentence_key) == ("round_cap", "round.cap_silent")
    assert cell.sentence.startswith(PREFIX)
    assert CallAttempt.objects.get().silent_updates == 0


def test_where_the_answer_had_begun_it_is_kept(play: Play) -> None:
    cell, _ = play(Script(chunk(content="So far"), Stall()))

    assert (cell.sentence_key, cell.text) == ("round.cap", "So far")
    assert "stopped responding" not in cell.sentence


def test_during_a_tool_it_names_the_tool(play: Play) -> None:
    late = asking(("dig", {"word": "here"}), text="I dig.")
    with with_tools(Endless()):
        cell, took = play(Script(*THINKS[:58], Pause(30), *late.steps))

    assert took == pytest.approx(CAP)
    assert (cell.code, cell.sentence_key) == ("round_cap", "round.cap_tool")
    assert cell.sentence.startswith(PREFIX)
    assert "dig" in cell.sentence
    assert (cell.text, ToolRun.objects.get().state) == ("I dig.", "unknown")


@pytest.mark.usefixtures("retries")
def test_during_a_wait_the_fault_is_named_that_is_waited_for(
    play: Play, settings: Settings
) -> None:
    settings.CHAT_ROUND_CAP_SECONDS = "25"
    settings.CHAT_RETRY_WAITS = "60"

    cell, took = play(Script(chunk(content="Half"), Pause(10), Reset()))

    assert took == pytest.approx(25)
    assert (cell.code, cell.ending) == ("truncated", "truncated")
    assert cell.text == "Half"
    assert CallAttempt.objects.get().retry_decision == "regenerate"


@pytest.mark.parametrize("early", [0.0, 1e-9, 1.0])
def test_a_stop_at_the_same_instant_is_a_stop(play: Play, early: float) -> None:
    cell, took = play(Script(*THINKS), stop_after=CAP - early)

    assert took == pytest.approx(CAP - early)
    assert (cell.status, cell.code) == ("stopped", "stopped")


def test_a_stop_that_is_written_while_the_cap_ends_the_round_wins(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = ledger.finish_round

    def stop_first(round_id: int, *args: Any, **more: Any) -> bool:
        ledger.request_stop(round_id)
        return finish(round_id, *args, **more)

    monkeypatch.setattr(ledger, "finish_round", stop_first)
    cell, _ = play(Script(chunk(content="So far"), Stall()))

    assert (cell.status, cell.text) == ("stopped", "So far")
