"""What the fake gateway can be told to send: scripts, their steps, and usual chunks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal, TypeAlias

Framing: TypeAlias = Literal["chunked", "length", "close", "raw"]
EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}
JSON = {"content-type": "application/json"}
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes of the body; in chunked framing they are one HTTP chunk."""

    body: bytes | str


@dataclass(frozen=True, slots=True)
class Head:
    """The status line and headers, now."""


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing more, the connection open until the client closes it."""


@dataclass(frozen=True, slots=True)
class Reset:
    """RST, whatever was or was not sent."""


@dataclass(frozen=True, slots=True)
class Close:
    """FIN with no proper end; `half` begins an HTTP chunk which is never finished."""

    half: bytes = b""


@dataclass(frozen=True, slots=True)
class End:
    """The proper end of the response, as its framing has it."""


Step: TypeAlias = Send | Head | Pause | Stall | Reset | Close | End


class Script:
    """One response: steps (bare bytes and strings are sent) and how it is framed.

    `headers` replaces the default ones. `length` framing counts the scripted bytes,
    unless a content-length is given; `close` adds none; `raw` sends no head at all.
    """

    def __init__(
        self,
        *steps: Step | bytes | str,
        status: int = 200,
        headers: Mapping[str, str] = EVENT_STREAM,
        framing: Framing = "chunked",
    ) -> None:
        self.steps: tuple[Step, ...] = tuple(
            Send(step) if isinstance(step, bytes | str) else step for step in steps
        )
        self.status = status
        self.headers = dict(headers)
        self.framing = framing

    def head(self) -> bytes:
        """The status line and headers."""
        if self.framing == "raw":
            return b""
        headers = dict(self.headers)
        if self.framing == "chunked":
            headers["transfer-encoding"] = "chunked"
        elif self.framing == "close":
            headers["connection"] = "close"
        else:
            bodies = (s.body for s in self.steps if isinstance(s, Send))
            length = sum(len(encoded(body)) for body in bodies)
            headers.setdefault("content-length", str(length))
        phrases = {status.value: status.phrase for status in HTTPStatus}
        lines = [f"HTTP/1.1 {self.status} {phrases.get(self.status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


def encoded(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else body


def reply(
    status: int, body: object, *, headers: Mapping[str, str] | None = None
) -> Script:
    """A whole JSON response, as refusals are."""
    return Script(
        json.dumps(body),
        status=status,
        headers=JSON | dict(headers or {}),
        framing="length",
    )


def frame(value: object) -> bytes:
    """One server-sent event holding the value as JSON."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def chunk(
    *,
    content: str | None = None,
    reasoning: str | None = None,
    finish: str | None = None,
    tool_calls: Sequence[Mapping[str, Any]] | None = None,
    usage: Mapping[str, Any] | None = None,
    **extra: object,
) -> bytes:
    """A chat-completions chunk as one event; with usage alone it has no choice.

    `extra` is merged into the top level of the chunk.
    """
    deltas = {
        "content": content,
        "reasoning_content": reasoning,
        "tool_calls": tool_calls,
    }
    delta = {name: value for name, value in deltas.items() if value is not None}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    value: dict[str, object] = {
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": "fake-model",
        "choices": [] if usage and not delta and finish is None else [choice],
    }
    if usage is not None:
        value["usage"] = usage
    return frame(value | extra)


def tool_call(
    index: int = 0,
    *,
    call_id: str | None = None,
    name: str | None = None,
    arguments: str,
) -> dict[str, Any]:
    """One entry of a `tool_calls` delta: an opening when it has an id and a name."""
    if call_id is None:
        return {"index": index, "function": {"arguments": arguments}}
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": call_id, "type": "function", "function": function}
