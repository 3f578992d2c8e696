"""The steps of any round: what its gateway may do, and the person who presses Stop."""

import asyncio
from typing import Literal

from tests.fakescript import DONE, chunk, frame, tool_call
from tests.rounds.expected import Expected
from tests.rounds.scene import FIRST_DATA, FRAME, IDLE, Message, Scene
from tests.rounds.tries import Asked

Fragment = Literal["name", "half", "whole"]
Hint = Literal["role", "comment", "usage", "empty"]
Cut = Literal["eof", "half", "reset", "silence"]
After = Literal["done", "eof", "reset", "error", "silence"]
Amid = Literal["", "text", "end", "cut", "tools"]

NEVER_AGAIN = (400, 403)
"""Statuses after which the SDK does not try again by itself."""
SDK_TRIES = 3


class Play(Scene):
    """A scene, and everything that can be done in it."""

    _sent_at = 0.0

    # Inside a response.

    async def say(self, pieces: list[str], *, together: bool, passes: bool) -> None:
        """Send text, perhaps in one piece of the body; time may pass then."""
        for piece in pieces:
            self.expected.say(piece)
        frames = [self._chunk(content=piece) for piece in pieces]
        await self._send(*([b"".join(frames)] if together else frames), passes=passes)

    async def think(self, piece: str, *, passes: bool) -> None:
        """Send reasoning."""
        self.expected.think(piece)
        await self._send(self._chunk(reasoning=piece), passes=passes)

    async def call_tool(self, kind: Fragment) -> None:
        """Send a fragment of a tool call, which may be all that ever comes of it."""
        asked = self.expected.call_tool(
            "ok" if kind == "whole" else "not_run", has_arguments=kind != "name"
        )
        await self._send(self._fragment(asked, kind), passes=False)

    async def hint(self, kind: Hint) -> None:
        """Send something that shows nothing."""
        if kind == "comment":
            self.exchange.send(b": keep-alive\n\n")
            await self.settle(passes=False)
            return
        now = self.expected.now
        now.chunks += 1
        if kind == "usage":
            now.usage = (10 + now.chunks, 20 * now.call + now.number)
            await self._send(self._chunk(usage=_usage(now.usage)), passes=False)
        elif kind == "role":
            await self._send(self._chunk(content=""), passes=False)
        else:
            empty = frame({"id": "x", "model": self._served, "choices": []})
            await self._send(empty, passes=False)

    async def pass_time(self, seconds: float) -> None:
        """Be silent, but not for long enough to be given up."""
        await asyncio.sleep(seconds)
        await self.settle(passes=True)

    def may_pass(self, seconds: float) -> bool:
        """Tell whether the gateway may be silent for so much longer."""
        # A little less than there is: sums of floats are never quite the same.
        return self.time + seconds + 4 * FRAME < self._gives_up_at - 0.05

    # How a response ends.

    async def cut(self, how: Cut) -> None:
        """Break the response off, in a way that proves nothing."""
        exchange, code = self.exchange, "truncated"
        match how:
            case "eof":
                exchange.end()
            case "half":
                exchange.half()
            case "reset":
                exchange.reset()
                if not exchange.has_head:
                    await self._refused(0)
                    return
            case "silence":
                code = (
                    "stalled_mid_answer" if self._has_data else "stalled_before_start"
                )
                await self._be_silent()
        await self._end(code)

    async def fail(self, code: str, *, asked_wait: float | None = None) -> None:
        """Send an error object, or a finish reason that is one."""
        now = self.expected.now
        now.chunks += 1
        if code == "finish_error":
            now.finish = "error"
            self.exchange.send(self._chunk(finish="error"), DONE)
            self.exchange.end()
        else:
            status = 502 if code == "http_5xx" else int(code[-3:])
            said: Message = {"message": "no", "code": status}
            if asked_wait is not None:
                said["retry_after"] = now.asked_wait = asked_wait
            self.exchange.send(frame({"error": said}))
        await self._end(code)

    async def complete(self, finish: str, then: After, *, has_usage: bool) -> None:
        """Send a finish reason, and then something that changes nothing."""
        now = self.expected.now
        now.finish = finish
        now.chunks += 1
        frames = [self._chunk(finish=finish)]
        if has_usage:
            now.chunks += 1
            now.usage = (7, 30 + now.number)
            frames.append(self._chunk(usage=_usage(now.usage)))
        await self._send(*frames, passes=False)
        match then:
            case "done":
                self.exchange.send(DONE)
                self.exchange.end()
            case "eof":
                self.exchange.end()
            case "reset":
                self.exchange.reset()
            case "error":
                now.chunks += 1
                self.exchange.send(frame({"error": {"code": 502, "message": "no"}}))
            case "silence":
                await self._be_silent()
        await self._end("")

    async def refuse(self, status: int) -> None:
        """Refuse the request; the SDK may come again by itself. 0 closes at once."""
        if status:
            self.exchange.refuse(status, {"error": {"code": status, "message": "no"}})
        else:
            self.exchange.drop()
        await self._refused(status)

    async def _refused(self, status: int) -> None:
        if status not in NEVER_AGAIN and len(self.expected.now.exchanges) < SDK_TRIES:
            self.state = "refused"
            await self.settle(passes=False)
            return
        code = {0: "connect_failed", 503: "overloaded"}.get(status, f"http_{status}")
        await self.follow(self.expected.refuse(code, self.time))

    async def _end(self, code: str) -> None:
        await self.follow(self.expected.end(code, self.time))

    # The person.

    async def press_stop(self, *, sees: bool, amid: Amid, turns: int) -> None:
        """Press Stop, perhaps in the moment in which something else happens."""
        expected = self.expected
        if self.state == "asked" and amid:
            self.is_vague = True
            may_follow = [expected, *self._do(amid)]
            for _ in range(turns):
                await asyncio.sleep(0)
        else:
            may_follow = [expected]
            if self.state in ("asked", "refused"):
                expected.now.ending = "stopped"
                expected.now.reasons = frozenset({"stopped"})
        is_late = self.is_vague and turns > 0
        await self.stop(sees=sees, may_follow=may_follow, may_be_late=is_late)

    def _do(self, amid: Amid) -> list[Expected]:
        """Do something that Stop may overtake; returns what else may come of it."""
        then, exchange = [self.expected.copy()], self.exchange
        match amid:
            case "text":
                for piece in ("in ", "the ", "air "):
                    exchange.send(self._chunk(content=piece))
                    then.append(then[-1].copy())
                    then[-1].say(piece)
                return then
            case "cut":
                exchange.end()
                if "again" in then[0].end("truncated", self.time):
                    then.append(then[0].copy())
                    then[1].goes_on()
                return then
            case "tools":
                asked = then[0].call_tool("ok")
                exchange.send(self._fragment(asked, "whole"))
            case _:
                pass
        then[0].now.finish = "stop"
        then[0].end("", self.time)
        exchange.send(self._chunk(finish="stop"), DONE)
        exchange.end()
        return then

    # Inside.

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

    def _fragment(self, asked: Asked, kind: Fragment) -> bytes:
        index = int(asked.id.rpartition("_")[2])
        # No two are alike, as long as they have any.
        sum_ = f'{{"expression": "{asked.id.removeprefix("call_").replace("_", " + ")}'
        arguments = {"half": sum_, "whole": sum_ + '"}'}.get(kind, "")
        call = tool_call(index, call_id=asked.id, name=asked.name, arguments=arguments)
        if kind == "name":
            del call["function"]["arguments"]
        return self._chunk(tool_calls=[call])

    async def _send(self, *frames: bytes, passes: bool) -> None:
        self.exchange.send(*frames)
        self._sent_at = self.time
        await self.settle(passes=passes)

    async def _be_silent(self) -> None:
        """Say nothing until we are given up, which has to be at a known moment."""
        gives_up_at = self._gives_up_at
        await self.exchange.left.wait()
        assert abs(self.time - gives_up_at) < 0.01


def _usage(counts: tuple[int, int]) -> dict[str, int]:
    given, made = counts
    return {"prompt_tokens": given, "completion_tokens": made}
