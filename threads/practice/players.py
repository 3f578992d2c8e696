"""Performing the steps of an answer: as a stream of events, or as one JSON object.

A player owns the order and the timing of what is sent. It does not watch for the client
going away: whoever runs it cancels it then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeAlias

from threads.practice import wire
from threads.practice.asks import Ask
from threads.practice.steps import (
    Abort,
    CallTools,
    Fail,
    Finish,
    Frame,
    NextTurn,
    Say,
    Silence,
    Step,
    ToolCall,
)

# The ASGI extension with which a server offers to break its own connection.
ABORT = "practice.abort"

COMMENT_SECONDS = 2.0
CATCH_UP_SECONDS = 0.25

Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Stage:
    """What a player is given to play one answer with.

    Every wait is multiplied by `pace`; 0 means as fast as the client reads.
    """

    send: Send
    ask: Ask
    envelope: wire.Envelope
    headers: Headers
    keep_turn: Callable[[int], None]
    pace: float = 1.0
    can_abort: bool = False


class Pacer:
    """Waits that keep a rate: being woken late once shortens the waits after it."""

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._due: float | None = None

    async def wait(self, seconds: float) -> None:
        """Return when the time has passed; always lets others run in between."""
        now = asyncio.get_running_loop().time()
        due = now if self._due is None else max(self._due, now - CATCH_UP_SECONDS)
        self._due = due + seconds * self._factor
        await asyncio.sleep(max(0.0, self._due - now))


@dataclass(slots=True)
class Said:
    """What an answer has come to so far."""

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)

    def add(self, words: str, *, reasoning: bool) -> None:
        if reasoning:
            self.reasoning += words
        else:
            self.text += words

    def usage(self, ask: Ask) -> dict[str, Any]:
        arguments = "".join(f" {call.name} {call.arguments}" for call in self.calls)
        return wire.usage_of(
            prompt=ask.prompt_text,
            answer=self.text + arguments,
            reasoning=self.reasoning,
        )


class StreamPlayer:
    """Plays steps as server-sent events."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._pacer = Pacer(stage.pace)
        self._said = Said()
        self._begun = False

    async def play(self, steps: Iterable[Step]) -> None:
        """Send the whole response, to its end or to the break that the steps ask for."""
        await self._stage.send(
            {
                "type": "http.response.start",
                "status": HTTPStatus.OK,
                "headers": [
                    (b"content-type", b"text/event-stream; charset=utf-8"),
                    (b"cache-control", b"no-cache"),
                    *self._stage.headers,
                ],
            }
        )
        for step in steps:
            await self._perform(step)
        await self._stage.send({"type": "http.response.body", "body": b""})

    async def _perform(self, step: Step) -> None:
        match step:
            case Say():
                await self._say(step)
            case CallTools(calls):
                await self._call(calls)
            case Finish(reason):
                await self._finish(reason)
            case Fail():
                await self._write(self._failure(step))
            case Frame(text):
                await self._write(f"data: {text}\n\n".encode())
            case Silence(comments):
                await self._fall_silent(comments=comments)
            case Abort(reset):
                await self._abort(reset=reset)
            case NextTurn(to):
                self._stage.keep_turn(to)

    async def _say(self, step: Say) -> None:
        name = "reasoning_content" if step.reasoning else "content"
        for token in wire.tokens_of(step.text):
            await self._pacer.wait(1 / step.tokens_per_second)
            await self._delta({name: token})
            self._said.add(token, reasoning=step.reasoning)

    async def _call(self, calls: tuple[ToolCall, ...]) -> None:
        for index, call in enumerate(calls):
            await self._delta(wire.call_opening(index, call))
            for piece in wire.tokens_of(call.arguments):
                await self._pacer.wait(0.02)
                await self._delta(wire.call_arguments(index, piece))
        self._said.calls.extend(calls)

    async def _finish(self, reason: str) -> None:
        await self._delta({}, finish_reason=reason)
        if self._stage.ask.include_usage:
            usage = self._said.usage(self._stage.ask)
            await self._write(wire.frame(self._stage.envelope.usage(usage)))
        await self._write(wire.DONE)

    def _failure(self, fail: Fail) -> bytes:
        if self._begun:
            return wire.frame(self._stage.envelope.failure(fail))
        return wire.frame({"error": wire.failure_object(fail)})

    async def _fall_silent(self, *, comments: bool) -> None:
        while comments:
            await self._write(wire.comment("PRACTICE PROCESSING"))
            if not self._stage.pace:
                break
            await self._pacer.wait(COMMENT_SECONDS)
        await asyncio.Event().wait()

    async def _abort(self, *, reset: bool) -> None:
        if self._stage.can_abort:
            await self._stage.send(
                {"type": ABORT, "reset": reset, "body": b'data: {"id":"chatcmpl'}
            )

    async def _delta(
        self, delta: dict[str, Any], *, finish_reason: str | None = None
    ) -> None:
        if not self._begun:
            self._begun = True
            await self._delta({"role": "assistant", "content": ""})
        chunk = self._stage.envelope.chunk(delta, finish_reason=finish_reason)
        await self._write(wire.frame(chunk))

    async def _write(self, body: bytes) -> None:
        await self._stage.send(
            {"type": "http.response.body", "body": body, "more_body": True}
        )


class WholePlayer:
    """Plays steps as one `chat.completion`, which takes as long as the stream would."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._pacer = Pacer(stage.pace)
        self._said = Said()
        self._finish_reason: str | None = None
        self._failure: Fail | None = None
        self._garbled = False
        self._abort: Abort | None = None

    async def play(self, steps: Iterable[Step]) -> None:
        """Send the whole response, to its end or to the break that the steps ask for."""
        for step in steps:
            await self._perform(step)
        status, body = self._response()
        half = body[: len(body) // 2]
        if self._abort and self._stage.can_abort:
            await self._start(status, len(body))
            await self._stage.send(
                {"type": "http.response.body", "body": half, "more_body": True}
            )
            await self._stage.send({"type": ABORT, "reset": self._abort.reset})
            return
        if self._abort or self._garbled:
            body = half
        await self._start(status, len(body))
        await self._stage.send({"type": "http.response.body", "body": body})

    async def _perform(self, step: Step) -> None:
        match step:
            case Say(text, tokens_per_second, reasoning):
                tokens = sum(1 for _ in wire.tokens_of(text))
                await self._pacer.wait(tokens / tokens_per_second)
                self._said.add(text, reasoning=reasoning)
            case CallTools(calls):
                self._said.calls.extend(calls)
            case Finish(reason):
                self._finish_reason = reason
            case Fail():
                self._failure = step
            case Frame():
                self._garbled = True
            case Silence():
                await asyncio.Event().wait()
            case Abort():
                self._abort = step
            case NextTurn(to):
                self._stage.keep_turn(to)

    def _response(self) -> tuple[int, bytes]:
        if self._failure:
            error = wire.failure_object(self._failure)
            return self._failure.code, wire.encode({"error": error})
        completion = self._stage.envelope.completion(
            self._message(),
            finish_reason=self._finish_reason,
            usage=self._said.usage(self._stage.ask),
        )
        return HTTPStatus.OK, wire.encode(completion)

    def _message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self._said.text}
        if self._said.reasoning:
            message["reasoning_content"] = self._said.reasoning
        if self._said.calls:
            message["tool_calls"] = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self._said.calls
            ]
        return message

    async def _start(self, status: int, length: int) -> None:
        await self._stage.send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [
                    (b"content-type", b"application/json"),
                    (b"content-length", str(length).encode()),
                    *self._stage.headers,
                ],
            }
        )
