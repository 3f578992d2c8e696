"""The vocabulary in which a practice answer is written down: what happens, in order.

Steps are values. They know nothing of HTTP and nothing of time; the players give them
both. An answer whose steps run out without a `Finish` ends without proof that it was
complete, which is exactly what some of the practice models are for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Say:
    """Text, a token at a time; `reasoning` puts it where a model thinks aloud."""

    text: str
    tokens_per_second: float = 40.0
    reasoning: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of one tool; `arguments` is the JSON text that goes on the wire."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CallTools:
    """Tool calls asked for in parallel."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """The proper end: a finish reason, usage when it was asked for, `[DONE]`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fail:
    """An error object sent inside a stream that had been accepted with a 200."""

    code: int
    message: str
    provider_name: str = ""
    raw: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """One `data:` frame sent as it stands, whether or not it means anything."""

    text: str


@dataclass(frozen=True, slots=True)
class Silence:
    """No data for ever, the connection open; with `comments`, only SSE comments."""

    comments: bool = False


@dataclass(frozen=True, slots=True)
class Abort:
    """The connection itself ends: reset, or closed in the middle of an HTTP chunk."""

    reset: bool


@dataclass(frozen=True, slots=True)
class NextTurn:
    """From here on an identical request is played turn `to` of the same script."""

    to: int


Step: TypeAlias = Say | CallTools | Finish | Fail | Frame | Silence | Abort | NextTurn


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole HTTP response given in place of a stream."""

    status: int
    body: str
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


Play: TypeAlias = Answer | tuple[Step, ...]
