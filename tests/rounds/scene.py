"""One example of any round: its thread and pages, the gateway's steps, what must follow.

Each method is one step. When it returns, all has happened that can happen without
time passing, so the round waits for the gateway, waits before another attempt, or
is over; what the pages show then has been compared with what must stand.
"""

import asyncio
from itertools import accumulate
from typing import Literal

from tests.fakescript import DONE, chunk, frame, tool_call
from tests.rounds.drivengateway import Exchange
from tests.rounds.expected import BROKEN, Asked, Expected, Rules, Step
from tests.rounds.helpers import Page
from tests.rounds.theatre import Theatre
from tests.rounds.watching import Watching, words, words_of
from threads.core.snapshot import Position
from threads.models import Round, Thread
from threads.rounds import engine

FIRST_DATA, IDLE = 5.0, 4.0
FRAME = 0.3
"""Longer than the hub ever takes to publish."""
FLUSH = 0.7
"""Longer than the journal ever takes to be written."""

Message = dict[str, object]
State = Literal["asked", "refused", "waiting", "over"]
Cut = Literal["eof", "half", "reset", "silence"]
After = Literal["done", "eof", "reset", "error", "silence"]
Amid = Literal["", "text", "end", "cut", "tools"]


class Scene:
    """One thread, and the round that runs in it."""

    def __init__(
        self, theatre: Theatre, thread: Thread, round_: Round, rules: Rules
    ) -> None:
        self.theatre = theatre
        self.thread = thread
        self.round = round_
        self.expected = Expected(rules)
        self.state: State = "waiting"
        self.is_stopped = self.is_vague = False
        self.may_stand = set[str]()
        self.visitors: list[Page] = []
        self.log: list[Exchange] = []
        self._connections = set[int]()
        self._messages: list[Message] = []
        self._sent_at = 0.0

    async def begin(self, messages: list[Message]) -> None:
        """Start the round; its first request must hold these messages."""
        self._messages = messages
        self.eager = Watching(self.thread.pk, self.round.answer_cell_id)
        self.lazy = Watching(self.thread.pk, self.round.answer_cell_id)
        self.eager.be_eager()
        await engine.start(self.round.pk)
        await self._follow(frozenset({"call"}))

    # What the gateway sends inside a response.

    async def say(self, pieces: list[str], *, together: bool, passes: bool) -> None:
        """Send text, perhaps in one piece of the body; time may pass then."""
        frames = [self._chunk(content=piece) for piece in pieces]
        for piece in pieces:
            self.expected.say(piece)
        await self._send(*([b"".join(frames)] if together else frames), passes=passes)

    async def think(self, piece: str, *, passes: bool) -> None:
        """Send reasoning."""
        self.expected.think(piece)
        await self._send(self._chunk(reasoning=piece), passes=passes)

    async def call_tool(self, kind: Literal["name", "half", "whole"]) -> None:
        """Send a fragment of a tool call, which may be all that ever comes of it."""
        asked = self.expected.call_tool("ok" if kind == "whole" else "not_run")
        arguments = {"half": '{"expression": "1'}.get(kind, '{"expression": "1 + 1"}')
        index = len(self.expected.now.tools) - 1
        fragment = tool_call(
            index, call_id=asked.id, name=asked.name, arguments=arguments
        )
        if kind == "name":
            del fragment["function"]["arguments"]
        await self._send(self._chunk(tool_calls=[fragment]), passes=False)

    async def hint(self, kind: Literal["role", "comment", "usage", "empty"]) -> None:
        """Send something that shows nothing."""
        now = self.expected.now
        match kind:
            case "comment":
                self._exchange.send(b": keep-alive\n\n")
                await self._settle(passes=False)
                return
            case "usage":
                now.usage = (10 + now.chunks, 20 * now.call + now.number)
                sent = self._chunk(usage=_usage(now.usage))
            case "role":
                sent = self._chunk(content="")
            case "empty":
                sent = frame({"id": "x", "model": self._served, "choices": []})
        now.chunks += 1
        await self._send(sent, passes=False)

    async def pass_time(self, seconds: float) -> None:
        """Be silent, but not for long enough to be given up."""
        await asyncio.sleep(seconds)
        await self._settle(passes=True)

    def may_pass(self, seconds: float) -> bool:
        """Tell whether the gateway may be silent for so much longer."""
        now = self.theatre.loop.time()
        return now + seconds + 2 * FRAME < self._gives_up_at

    # How a response ends.

    async def cut(self, how: Cut) -> None:
        """Break the response off, in a way that proves nothing."""
        code = "truncated"
        match how:
            case "eof":
                self._exchange.end()
            case "half":
                self._exchange.half()
            case "reset":
                self._exchange.reset()
            case "silence":
                code = f"stalled_{'mid_answer' if self._has_data else 'before_start'}"
                await self._be_silent()
        await self._end(code)

    async def fail(self, code: str, *, asked_wait: float | None = None) -> None:
        """Send an error object, or a finish reason that is one."""
        now = self.expected.now
        now.chunks += 1
        if code == "finish_error":
            self._exchange.send(self._chunk(finish="error"), DONE)
        else:
            said: Message = {"message": "no", "code": 502}
            if code != "http_5xx":
                said["code"] = int(code[-3:])
            if asked_wait is not None:
                said["retry_after"] = now.asked_wait = asked_wait
            self._exchange.send(frame({"error": said}))
        await self._end(code)

    async def complete(self, finish: str, then: After, *, has_usage: bool) -> None:
        """Send a finish reason, and then something that changes nothing."""
        frames = self._finishing(finish, has_usage=has_usage)
        await self._send(*frames, passes=False)
        match then:
            case "done":
                self._exchange.send(DONE)
                self._exchange.end()
            case "eof":
                self._exchange.end()
            case "reset":
                self._exchange.reset()
            case "error":
                self.expected.now.chunks += 1
                self._exchange.send(frame({"error": {"code": 502, "message": "no"}}))
            case "silence":
                await self._be_silent()
        await self._end("")

    async def refuse(self, status: int) -> None:
        """Refuse the request; the SDK may come again by itself. 0 closes at once."""
        now, exchange = self.expected.now, self._exchange
        if status:
            exchange.refuse(status, {"error": {"code": status, "message": "no"}})
        else:
            exchange.drop()
        if status not in (400, 403) and len(now.exchanges) < 3:
            self.state = "refused"
            await self._settle(passes=False)
            return
        code = {0: "connect_failed", 503: "overloaded"}.get(status, f"http_{status}")
        follows = self.expected.refuse(code, self.theatre.loop.time())
        await self._follow(follows)

    # What else happens.

    async def wait(self) -> None:
        """Let the wait before the next request pass, and see that it was kept to."""
        gateway, expected = self.theatre.gateway, self.expected
        gateway.arrived.clear()
        async with asyncio.timeout(expected.wait[1] + 10):
            await gateway.arrived.wait()
        was_refused, was_broken = self.state == "refused", expected.now.ending in BROKEN
        earlier = set(self._connections)
        low, high = expected.wait
        self._receive(is_next_call=False)
        if not was_refused:
            now, first = expected.now, expected.of_call[0]
            assert low - 0.001 <= now.waited <= high + 0.001
            assert now.began_at - first.began_at <= expected.rules.window + 0.001
            assert not was_broken or self._exchange.connection_id not in earlier
        await self._settle(passes=False)

    async def stop(self, *, sees: bool, amid: Amid, turns: int) -> None:
        """Press Stop, perhaps in the moment in which something else happens."""
        expected, shown = self.expected, self.eager.look()
        seen = Position(shown.generation, shown.offset) if sees else None
        may_follow = [expected.copy()]
        if amid and self.state == "asked":
            self.is_vague = True
            may_follow += self._do_amid(amid)
            for _ in range(turns):
                await asyncio.sleep(0)
        elif self.state in ("asked", "refused"):
            expected.now.ending = "stopped"
            expected.now.reasons = frozenset({"stopped"})
        pressed_at = self.theatre.loop.time()
        await engine.stop(self.round.pk, seen=seen)
        await self.theatre.loop.quiet()
        assert self.theatre.loop.time() - pressed_at < 0.1, "Stop had to wait"
        assert engine.engine().run(self.round.pk) is None, "Stop did not end the round"
        self.state, self.is_stopped = "over", True
        self.log = list(self.theatre.gateway.exchanges)
        for each in (expected, *may_follow):
            each.close(is_stopped=True)
            if seen is not None:
                each.clamp(seen.generation, seen.length)
        self.may_stand = {each.text for each in may_follow}
        if self.is_vague and seen is not None:
            self.may_stand |= {text[: seen.length] for text in self.may_stand}

    def _do_amid(self, amid: Amid) -> list[Expected]:
        """Do something that Stop may overtake; returns what may come of it."""
        expected, exchange, at = self.expected, self._exchange, self.theatre.loop.time()
        then = [expected.copy()]
        if amid == "text":
            pieces = ["in ", "the ", "air "]
            exchange.send(*(self._chunk(content=piece) for piece in pieces))
            for piece in pieces:
                then.append(then[-1].copy())
                then[-1].say(piece)
            return then
        if amid == "cut":
            exchange.end()
            if "again" in then[0].end("truncated", at):
                then.append(then[0].copy())
                then[1].goes_on()
            return then
        if amid == "tools":
            asked = then[0].call_tool("ok")
            fragment = tool_call(
                0, call_id=asked.id, name=asked.name, arguments='{"expression": "2"}'
            )
            exchange.send(self._chunk(tool_calls=[fragment]))
        then[0].now.finish = "stop"
        then[0].end("", at)
        exchange.send(self._chunk(finish="stop"), DONE)
        exchange.end()
        return then

    # Inside.

    @property
    def _exchange(self) -> Exchange:
        return self.theatre.gateway.exchanges[-1]

    @property
    def _has_data(self) -> bool:
        return self.expected.now.chunks > 0

    @property
    def _gives_up_at(self) -> float:
        if self._has_data:
            return self._sent_at + IDLE
        return self.expected.now.began_at + FIRST_DATA

    @property
    def _served(self) -> str:
        return f"served-{self.expected.now.name}"

    def _chunk(self, **parts: object) -> bytes:
        return chunk(**parts, model=self._served)  # type: ignore[arg-type]

    def _finishing(self, finish: str, *, has_usage: bool) -> list[bytes]:
        now = self.expected.now
        now.finish = finish
        now.chunks += 1 + has_usage
        frames = [self._chunk(finish=finish)]
        if has_usage:
            now.usage = (7, 30 + now.number)
            frames.append(self._chunk(usage=_usage(now.usage)))
        return frames

    async def _send(self, *frames: bytes, passes: bool) -> None:
        self._exchange.send(*frames)
        self._sent_at = self.theatre.loop.time()
        await self._settle(passes=passes)

    async def _be_silent(self) -> None:
        """Say nothing until we are given up, which has to be at a known moment."""
        gives_up_at = self._gives_up_at
        await self._exchange.left.wait()
        assert abs(self.theatre.loop.time() - gives_up_at) < 0.01

    async def _end(self, code: str) -> None:
        await self._follow(self.expected.end(code, self.theatre.loop.time()))

    async def _follow(self, may_follow: frozenset[Step]) -> None:
        """See what the round does now, and that it may do that."""
        await self.theatre.loop.quiet()
        exchanges = self.theatre.gateway.exchanges
        follows: Step = "again"
        if len(exchanges) > len(self.log):
            follows = "call"
        elif engine.engine().run(self.round.pk) is None:
            follows = "over"
        assert follows in may_follow
        match follows:
            case "call":
                self._receive(is_next_call=True)
            case "again":
                self.expected.goes_on()
                self.state = "waiting"
            case "over":
                self.state = "over"
                self.expected.close()
                self.may_stand = {self.expected.text}
        if follows != "over":
            await self._settle(passes=False)

    def _receive(self, *, is_next_call: bool) -> None:
        """Take the one request that has arrived, and look at its messages."""
        expected = self.expected
        [exchange] = self.theatre.gateway.exchanges[len(self.log) :]
        if is_next_call and self.log:
            asked = expected.now
            self._messages = [*self._messages, _asking(asked)]
        if self.state == "refused":
            expected.now.exchanges.append(exchange)
        else:
            expected.begin(exchange, is_next_call=is_next_call)
        first = expected.of_call[0].exchanges[0]
        assert exchange.body == first.body
        if first is exchange:
            self._messages = said_in(exchange, self._messages)
        self.log.append(exchange)
        self._connections.add(exchange.connection_id)
        self.state = "asked"

    async def _settle(self, *, passes: bool) -> None:
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
        await self._read_visitors(is_exact=passes)
