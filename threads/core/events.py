"""What a model call can yield, as values.

The gateway turns chunks into these events; everything above it (the runner, the
reducer, the page) knows only them. An event never holds a clock reading or a
connection, so any list of events can be replayed.
"""

from dataclasses import dataclass
from enum import StrEnum


class UsageSource(StrEnum):
    """Where a token count comes from. Unknown is not zero (requirement G3)."""

    PROVIDER = "provider"
    ESTIMATED = "estimated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one attempt, or of a sum of attempts; None where unknown."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    source: UsageSource = UsageSource.UNKNOWN


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning: progress, but not output (X21)."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A fragment of one tool call, as the wire sent it.

    Any field may be missing; `index` is the wire's own, or None. `arguments` is
    text to append, or a whole object where a gateway sends it so.
    """

    index: int | None
    id: str | None
    name: str | None
    arguments: str | dict[str, object] | None


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The provider's own count; within an attempt the last one wins (G4)."""

    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True, slots=True)
class Finish:
    """The wire's finish reason, verbatim, and the provider's native one."""

    reason: str
    native: str | None = None


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """Something that says or means failure inside an accepted stream (A4).

    `body` is the decoded JSON that carried it (object, list, string) and
    `http_status` a status that the wire named beside it, in a comment.
    """

    body: object
    http_status: int | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """A chunk without output: role, id, model, keep-alive.

    It counts as progress for the idle clock and carries the served model.
    """

    model: str | None = None
    id: str | None = None


StreamEvent = (
    TextDelta
    | ReasoningDelta
    | ToolCallDelta
    | UsageReport
    | Finish
    | ErrorReport
    | Envelope
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call, assembled.

    `arguments` is the JSON text as received. `problem` says why it must not run
    (no name, arguments that do not parse to an object), empty when it may.
    """

    id: str
    name: str
    arguments: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """An attempt of call `call` is about to be sent; both count from 1.

    `asked` counts the models that the call has left behind: 0 asks the first one.
    """

    call: int
    attempt: int
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The text that this attempt showed no longer stands (D10, E9)."""

    call: int
    attempt: int


@dataclass(frozen=True, slots=True)
class ToolCallBegan:
    """The first fragment of a tool call arrived: nothing is re-issued now (D8)."""

    call: int
    attempt: int


def carries_output(event: StreamEvent) -> bool:
    """Tell whether an event makes a call count as answered (requirement D4).

    Text, tool calls and usage are output. Reasoning and envelopes are progress.
    """
    match event:
        case TextDelta(text=text):
            return bool(text)
        case ToolCallDelta() | UsageReport():
            return True
        case ReasoningDelta() | Finish() | ErrorReport() | Envelope():
            return False


def is_withdrawable(event: StreamEvent) -> bool:
    """Tell whether what an event brought can be unsaid (requirement D7).

    An allow-list: whatever else may come one day forbids another attempt.
    """
    match event:
        case TextDelta() | ReasoningDelta() | UsageReport() | Envelope():
            return True
        case other:
            return isinstance(other, Finish | ErrorReport)
