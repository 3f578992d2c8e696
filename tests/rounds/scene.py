"""One example of any round: its thread, its pages, and what it does between two steps.

Whenever a step returns, all has happened that can happen without time passing. So
the round waits for the gateway, waits before another attempt, or is over; and what
the pages show has been compared with what must stand.
"""

import asyncio
from contextlib import suppress
from typing import Any, Literal

from channels.layers import BaseChannelLayer, get_channel_layer

from tests.rounds.drivengateway import Exchange
from tests.rounds.expected import Expected, Step
from tests.rounds.helpers import Page, PageCell, answers_in
from tests.rounds.theatre import Theatre
from tests.rounds.tries import BROKEN, Rules, Try
from tests.rounds.watching import Watching, words, words_of
from threads.core.snapshot import Position
from threads.models import Cell, Round, Thread
from threads.rendering import ToolsOf, render_text
from threads.rounds import pages
from threads.rounds.broadcast import thread_group
from threads.rounds.database import in_database
from threads.rounds.engine import engine
from threads.rounds.engine import stop as engine_stop

FIRST_DATA, IDLE = 5.0, 4.0
FRAME = 0.3
"""Longer than the hub ever takes to publish."""

Message = dict[str, Any]
State = Literal["asked", "refused", "waiting", "over"]


def layer() -> BaseChannelLayer:
    """The channel layer of this process."""
    found = get_channel_layer()
    assert found is not None
    return found


class Scene:
    """One round of one thread, followed from before its start."""

    def __init__(
        self, theatre: Theatre, thread: Thread, round_: Round, rules: Rules
    ) -> None:
        self.theatre = theatre
        self.thread = thread
        self.round = round_
        self.cell_id = round_.answer_cell_id
        self.expected = Expected(rules)
        self.state: State = "waiting"
        self.log: list[Exchange] = []
        self.is_vague = False
        self.may_stand = set[str]()
        self.may_end = set[tuple[str, str]]()
        self.visitors: list[Page] = []
        self.told: list[Message] = []

    async def begin(self, messages: list[Message]) -> None:
        """Start the round; its first request must hold these messages."""
        self.told = messages
        self.theatre.gateway.exchanges.clear()
        self.eager = Watching(self.thread.pk, self.cell_id)
        self.lazy = Watching(self.thread.pk, self.cell_id)
        self.eager.be_eager()
        self._channel = await layer().new_channel()
        await layer().group_add(thread_group(self.thread.pk), self._channel)
        engine().begin(self.round.pk)
        await self.follow(frozenset({"call"}))

    @property
    def exchange(self) -> Exchange:
        """The request that is being answered."""
        return self.log[-1]

    @property
    def time(self) -> float:
        """The loop's time."""
        return self.theatre.loop.time()

    # What the round does by itself.

    async def follow(self, may_follow: frozenset[Step]) -> None:
        """See what the round does now, and that it may do that."""
        await self.theatre.loop.quiet()
        follows: Step = "again"
        if len(self.theatre.gateway.exchanges) > len(self.log):
            follows = "call"
        elif engine().run(self.round.pk) is None:
            follows = "over"
        assert follows in may_follow
        assert follows == "call" or not self.theatre.gateway.is_busy
        match follows:
            case "call":
                self._receive()
            case "again":
                self.expected.goes_on()
                self.state = "waiting"
            case "over":
                self.state = "over"
                self.expected.close()
                self.may_stand.add(self.expected.text)
                self.may_end.add(self.expected.ended)
        if follows != "over":
            await self.settle(passes=False)

    async def wait(self) -> None:
        """Let the wait before the next request pass, and see that it was kept to."""
        gateway, expected = self.theatre.gateway, self.expected
        gateway.arrived.clear()
        (low, high), was_refused = expected.wait, self.state == "refused"
        async with asyncio.timeout(high + 10):
            await gateway.arrived.wait()
        was_broken = expected.now.ending in BROKEN
        earlier = {each.connection_id for each in self.log}
        self._receive()
        if not was_refused:
            now, first = expected.now, expected.of_call[0]
            assert low - 0.001 <= now.waited <= high + 0.001
            assert now.began_at - first.began_at <= expected.rules.window + 0.001
            assert not was_broken or self.exchange.connection_id not in earlier
        await self.settle(passes=False)

    def _receive(self) -> None:
        """Take the one request that has arrived, and look at its bytes."""
        expected, is_next = self.expected, self.state == "asked" or not self.log
        asked = expected.now if is_next and self.log else None
        [exchange] = self.theatre.gateway.exchanges[len(self.log) :]
        if self.state == "refused":
            expected.now.exchanges.append(exchange)
        else:
            expected.begin(exchange, is_next_call=is_next)
        if is_next:
            self.told = _continued(exchange.json["messages"], self.told, asked)
        assert exchange.body == expected.of_call[0].exchanges[0].body
        self.log.append(exchange)
        self.state = "asked"

    async def stop(
        self, *, sees: bool, may_follow: list[Expected], may_be_late: bool
    ) -> None:
        """Press Stop, as a tab does; one of these must come of it.

        When it may be late, the round may have ended by itself before.
        """
        shown, pressed_at = self.eager.look(), self.time
        seen = (shown.generation, shown.offset) if sees else None
        await engine_stop(self.round.pk, seen=Position(*seen) if seen else None)
        await self.theatre.loop.quiet()
        assert self.time - pressed_at < 0.1, "Stop had to wait"
        assert engine().run(self.round.pk) is None, "Stop did not end the round"
        self.state, self.log = "over", list(self.theatre.gateway.exchanges)
        self.may_end = {("stopped", "stopped")}
        for each in may_follow:
            if may_be_late and each.now.ending:
                unstopped = each.copy()
                unstopped.close()
                self.may_stand.add(unstopped.text)
                self.may_end.add(unstopped.ended)
            each.close(is_stopped=True, seen=seen)
            self.may_stand.add(each.text)

    # The pages.

    async def settle(self, *, passes: bool) -> None:
        """Wait until nothing more happens, and compare pages with what must stand."""
        await self.theatre.loop.quiet()
        if passes:
            await asyncio.sleep(FRAME)
            await self.theatre.loop.quiet()
        expected, page = self.expected, self.eager.look()
        assert page.generation == expected.generation
        assert page.withdrawals == expected.withdrawn
        assert words(expected.text).startswith(page.words)
        assert expected.thoughts.startswith(page.reasoning)
        if passes:
            assert page.words == words(expected.text)
            assert page.offset == len(expected.text)
            assert page.reasoning == expected.thoughts
        await self.read_visitors(is_exact=passes)

    async def open_page(self) -> None:
        """Somebody opens the thread in another tab."""
        page = Page(self.theatre.owner, self.thread)
        self.visitors.append(page)
        await page.open()
        await self.settle(passes=True)

    async def lose_page(self) -> None:
        """A tab's socket breaks; its next one says hello from where the page stands."""
        old = self.visitors.pop(0)
        await old.close()
        await self.settle(passes=True)
        page = Page(self.theatre.owner, self.thread)
        page.cells, page.position = old.cells, old.position
        self.visitors.append(page)
        await page.connect()
        await page.greet()
        await self.settle(passes=True)

    async def read_visitors(self, *, is_exact: bool) -> None:
        """Let the other tabs read what has come for them."""
        for page in self.visitors:
            while not page.socket.output_queue.empty():
                await page.read()
            assert page.errors == []
            cell = page.cells.get(self.cell_id)
            if is_exact and cell is not None:
                assert cell.generation == self.expected.generation
                assert cell.offset == len(self.expected.text)
                shown = words_of(cell.blocks, cell.open_html, cell.tail)
                assert shown == words(self.expected.text)
                assert cell.reasoning == self.expected.thoughts

    async def pages_agree(self, text: str, generation: int, status: str) -> None:
        """See that every page shows, at the end, what the database has."""
        await self.settle_visitors()
        assert await self._notices() == ["round.started", "round.ended"]
        blocks = await in_database(self._blocks, text)
        for watching in (self.eager, self.lazy):
            page = watching.look()
            assert (page.blocks, page.tail, page.open_html) == (blocks, "", "")
            assert (page.generation, page.offset) == (generation, len(text))
            watching.leave()
        for visitor in self.visitors:
            _shows(visitor.cells[self.cell_id], blocks, generation, len(text), status)
            await visitor.close()
        self.visitors.clear()

    def late_page_agrees(self, text: str, generation: int, status: str) -> None:
        """See what a page is sent that says hello when all is over."""
        reading = pages.read(
            self.thread.pk,
            self.theatre.owner.pk,
            position=-1,
            lack=pages.Lack(newer=True),
        )
        assert reading is not None
        _, cell = answers_in("".join(reading.messages))[self.cell_id]
        _shows(cell, self._blocks(text), generation, len(text), status)

    def _blocks(self, text: str) -> list[str]:
        """What pages show of a text, and of the tools that stand in it."""
        tools = ToolsOf(Cell.objects.filter(pk=self.cell_id))
        return list(render_text(text, tools.slots(self.cell_id)))

    async def _notices(self) -> list[str]:
        """What was told to all who show the thread, since the round began, but for
        what its tools did."""
        told = list[str]()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                while True:
                    told.append((await layer().receive(self._channel))["type"])
        await layer().group_discard(thread_group(self.thread.pk), self._channel)
        return [kind for kind in told if kind != "tools.changed"]

    async def settle_visitors(self) -> None:
        """Let time pass, and every other tab read what has come for it."""
        await asyncio.sleep(FRAME)
        await self.theatre.loop.quiet()
        for visitor in self.visitors:
            while not visitor.socket.output_queue.empty():
                await visitor.read()

    async def leave(self) -> None:
        """Let go of everything, in whatever state it is."""
        await engine_stop(self.round.pk)
        await self.theatre.loop.quiet()
        for watching in (self.eager, self.lazy):
            watching.leave()
        for visitor in self.visitors:
            await visitor.close()
        await asyncio.sleep(1)


def _shows(
    cell: PageCell, blocks: list[str], generation: int, offset: int, status: str
) -> None:
    assert (cell.blocks, cell.tail, cell.open_html) == (blocks, "", "")
    assert (cell.generation, cell.offset) == (generation, offset)
    assert cell.status == status


def _continued(
    messages: list[Message], before: list[Message], asked: Try | None
) -> list[Message]:
    """See that a call's messages are those before it and what a whole call added."""
    assert messages[: len(before)] == before
    added = messages[len(before) :]
    if asked is None:
        assert added == []
        return messages
    asking, *results = added
    assert asking["role"] == "assistant"
    assert asking["content"] == (asked.text if asked.is_readable else None)
    ids = [tool.id for tool in asked.tools]
    assert [call["id"] for call in asking["tool_calls"]] == ids
    assert [result["tool_call_id"] for result in results] == ids
    assert {result["role"] for result in results} == {"tool"}
    return messages
