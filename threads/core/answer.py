"""Text, tool calls and usage of one attempt so far.

`Accumulator` is fed the attempt's events; the ledger, the runner and the
evidence read it. `clean` and `Cleaner` are the one place where text is made fit
to store and send.
"""

import json
from dataclasses import dataclass, field, replace

from threads.core.events import (
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
    UsageReport,
    UsageSource,
)

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    """Take out NUL and replace lone surrogates (design section 11).

    PostgreSQL refuses the first and UTF-8 has no form for the second.
    """
    if "\0" in text:
        text = text.replace("\0", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class Cleaner:
    """Cleans a text that arrives in pieces.

    A gateway may cut an emoji between two deltas, so that each carries half of a
    surrogate pair: the first half waits for the second.
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what can be shown now."""
        if self._held:
            piece, self._held = self._held + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._held = piece[:-1], piece[-1]
        return clean(piece)

    def flush(self) -> str:
        """Return what was held, once nothing more can come."""
        held, self._held = self._held, ""
        return REPLACEMENT if held else ""


@dataclass(slots=True)
class _OpenCall:
    index: int | None
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def text(self) -> str:
        return "".join(self.arguments)


class ToolCallAssembler:
    """Puts fragments of parallel tool calls together.

    The index tells calls apart where it can. Gateways leave it out, or send 0
    for every call: then a new id together with a name begins a new call, and so
    does a name with arguments once those before it are whole; a fragment without
    either goes on with the last one. An id that came before is that call's,
    whatever the index, unless a name says that another call begins.
    """

    def __init__(self) -> None:
        self._calls: list[_OpenCall] = []

    def feed(self, delta: ToolCallDelta) -> None:
        """Take one fragment."""
        call = self._find(delta)
        if call is None:
            call = _OpenCall(delta.index, delta.id or "")
            self._calls.append(call)
        elif _repeats(delta, call):
            return
        call.id = call.id or delta.id or ""
        call.name = _joined(call, delta)
        if isinstance(delta.arguments, dict):
            call.arguments.append(json.dumps(delta.arguments, ensure_ascii=False))
        elif delta.arguments:
            call.arguments.append(delta.arguments)

    def _find(self, delta: ToolCallDelta) -> _OpenCall | None:
        for call in reversed(self._calls):
            if (
                delta.index is not None
                and call.index is not None
                and call.index != delta.index
            ):
                if delta.id and delta.id == call.id and not delta.name:
                    return call
                continue
            begins = bool(delta.id and delta.name and call.id and delta.id != call.id)
            begins = begins or _follows(delta, call)
            if delta.index is None and delta.id and call.id and delta.id != call.id:
                continue
            return None if begins else call
        return self._unfinished(delta)

    def _unfinished(self, delta: ToolCallDelta) -> _OpenCall | None:
        """Find the call that a fragment of an unknown index goes on with.

        One without id and name begins none; some gateways give a second call the
        index of the first, and the rest of its arguments their own.
        """
        if delta.id or delta.name or not self._calls:
            return None
        last = self._calls[-1]
        return None if isinstance(_decoded(last.text()), dict) else last

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def text(self) -> str:
        """Names and arguments as they came, for estimates only."""
        return " ".join(f"{call.name} {call.text()}" for call in self._calls)

    def finish(self) -> tuple[ToolCall, ...]:
        """Return the calls; a `problem` marks one that must not run (F14).

        No two have one id: an answer to the one would answer the other too.
        """
        calls: list[ToolCall] = []
        for number, call in enumerate(self._calls, 1):
            assembled = _assembled(call, number)
            if any(assembled.id == other.id for other in calls):
                assembled = replace(assembled, id=f"{assembled.id}_{number}")
            calls.append(assembled)
        return tuple(calls)


def _joined(call: _OpenCall, delta: ToolCallDelta) -> str:
    """A name comes whole, again with every fragment, or in pieces of its own."""
    if not delta.name or delta.name == call.name or call.arguments:
        return call.name or delta.name or ""
    return delta.name if delta.name.startswith(call.name) else call.name + delta.name


def _repeats(delta: ToolCallDelta, call: _OpenCall) -> bool:
    """Tell a call that is sent again, whole, from one that goes on."""
    if not (delta.id and delta.name and delta.arguments and call.arguments):
        return False
    given = delta.arguments
    text = json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else given
    return (
        (delta.id, delta.name) == (call.id, call.name)
        and text == call.text()
        and isinstance(_decoded(text), dict)
    )


def _follows(delta: ToolCallDelta, call: _OpenCall) -> bool:
    """Tell two whole calls apart that came without any id."""
    if delta.id or call.id or not (delta.name and call.name):
        return False
    return delta.arguments not in (None, "") and isinstance(_decoded(call.text()), dict)


def _no_number(text: str) -> object:
    raise ValueError(text)


def _decoded(text: str) -> object:
    """Read JSON; None where it is incomplete, of absurd depth, or says NaN."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None


def _assembled(call: _OpenCall, number: int) -> ToolCall:
    arguments = call.text().strip() or "{}"
    decoded = _decoded(arguments)
    problem = ""
    if not call.name:
        problem = "the call names no tool"
    elif decoded is None:
        problem = "the arguments are not complete JSON"
    elif not isinstance(decoded, dict):
        problem = "the arguments are not a JSON object"
    return ToolCall(
        clean(call.id) or f"call_{number}", clean(call.name), clean(arguments), problem
    )


class Accumulator:
    """What one attempt has yielded so far."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self.tool_calls = ToolCallAssembler()
        self.usage = Usage()
        self.text_length = 0
        self.reasoning_length = 0

    def feed(self, event: StreamEvent) -> None:
        """Take one event; usage is last-wins (requirement G4)."""
        match event:
            case TextDelta(text=text):
                self._text.append(text)
                self.text_length += len(text)
            case ReasoningDelta(text=text):
                self._reasoning.append(text)
                self.reasoning_length += len(text)
            case ToolCallDelta():
                self.tool_calls.feed(event)
            case UsageReport(input_tokens=given, output_tokens=made):
                self.usage = Usage(given, made, UsageSource.PROVIDER)
            case _:
                pass

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return "".join(self._reasoning)
