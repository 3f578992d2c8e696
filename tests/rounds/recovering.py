"""Rounds whose calls are cut and tried again, and a page that watches them."""

from typing import Any

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Head, Reset, Script, chunk, tool_call
from tests.rounds.helpers import opened, over, until_stored
from tests.rounds.watching import Watching
from threads.models import CallAttempt, Cell, Round, Thread
from threads.rounds import engine

HALF = "Half an ans"
CUT = Script(chunk(content=HALF), Reset())
SILENT = Script(Head())
"""Accepted, and ended with nothing in it."""

ASK_TOOL = (
    chunk(
        tool_calls=[
            tool_call(call_id="a", name="calculator", arguments='{"expression": "1"}')
        ]
    ),
    chunk(finish="tool_calls"),
    DONE,
)


def says(*pieces: str, **more: Any) -> Script:
    """A whole answer."""
    told = (chunk(content=piece, **more) for piece in pieces)
    return Script(*told, chunk(finish="stop", **more), DONE)


def cut_after(*pieces: str, **more: Any) -> Script:
    """An answer that breaks off."""
    return Script(*(chunk(content=piece, **more) for piece in pieces), Reset())


class Watched:
    """A round under way, and a page that takes every frame of it."""

    def __init__(self, round_: Round) -> None:
        self.round = round_
        self.page = Watching(round_.thread_id, round_.answer_cell_id)
        self.page.be_eager()

    async def ended(self) -> Cell:
        """Wait for the end and return the cell; the page has seen all of it."""
        await engine.wait(self.round.pk)
        return await over(self.round)

    async def stopped(self, **seen: Any) -> Cell:
        """Press Stop and wait for the end."""
        await engine.stop(self.round.pk, **seen)
        return await self.ended()

    async def waits(self, attempts: int = 1) -> None:
        """Return when so many attempts have ended and the next is waited for."""
        rows = CallAttempt.objects.filter(round=self.round)
        await until_stored(lambda: rows.count() == attempts)


async def begun(
    thread: Thread, gateway: FakeGateway, *scripts: Script, **more: Any
) -> Watched:
    """Start a round that these scripts are played to."""
    gateway.play(*scripts)
    is_buffered = more.pop("is_buffered", False)
    model = await model_at("some/model", gateway.base_url)
    round_ = await opened(thread, model, **more)
    await Round.objects.filter(pk=round_.pk).aupdate(is_buffered=is_buffered)
    watched = Watched(round_)
    await engine.start(round_.pk)
    return watched


async def rows_of(round_: Round) -> list[CallAttempt]:
    """The ledger of a round."""
    rows = CallAttempt.objects.filter(round=round_)
    return [row async for row in rows.order_by("call", "attempt")]
