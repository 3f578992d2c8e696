"""One decoded chunk of the OpenAI wire, in its many dialects, as core events.

Every dialect that a gateway was seen to speak is a line here; none of them gets
a meaning here. Text is cleaned, so that nothing above ever meets half an emoji.
"""

import json
from collections.abc import Iterator, Mapping

from threads.core import reasons
from threads.core.answer import Cleaner, clean
from threads.core.events import (
    Envelope,
    ErrorReport,
    Finish,
    ReasoningDelta,
    StreamEvent,
    ToolCallDelta,
    UsageReport,
)
from threads.gateway.tags import ThinkTags

ANSWERS = ("content", "refusal", "tool_calls", "function_call")
PAYLOADS = (*ANSWERS, "reasoning_content", "reasoning")
"""Fields of a delta that add something; the first ones to the answer."""

FAILURE_TYPES = frozenset({"error", "response.failed", "response.error"})
FAILURE_FIELDS = (
    *("detail", "message", "msg", "errors"),
    *("error_message", "error_msg", "errorMessage"),
)
"""What a chunk without choices says failure with, where it has no error field."""

NO_FINISH = frozenset({"null", "none"})
"""Finish reasons that are an absent one, written out."""

LARGEST_COUNT = 2**31 - 1
"""What a database column holds; more tokens than this is no count."""


class ChunkReader:
    """Reads the chunks of one attempt; keeps what spans them."""

    def __init__(self) -> None:
        self.model = ""
        self.provider = ""
        self._choice: object = None
        self._has_deltas = False
        self._text = Cleaner()
        self._reasoning = Cleaner()
        self._tags = ThinkTags()

    def read(
        self, chunk: object, event: str = "", http_status: int | None = None
    ) -> list[StreamEvent]:
        """Turn one decoded chunk into events, in their order of meaning.

        Text that shares a chunk with an error comes first, so that it is kept.
        An empty chunk is an `Envelope`: progress without output.
        """
        if not isinstance(chunk, Mapping):
            return [ErrorReport(chunk, http_status)]
        self._note_origin(chunk)
        choices = chunk.get("choices")
        if isinstance(choices, Mapping):
            choices = [choices]
        events: list[StreamEvent] = []
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping):
                events += self._read_choice(choice, http_status)
        events += _usage(chunk.get("usage"))
        if "x_groq" in chunk:
            events += self._read_groq(chunk["x_groq"], http_status)
        if chunk.get("error") or (not choices and _says_failure(chunk, event)):
            events.append(ErrorReport(chunk, http_status))
        return events or [Envelope(self.model)]

    @staticmethod
    def _read_groq(value: object, http_status: int | None) -> Iterator[StreamEvent]:
        """Groq puts usage, and why it broke off, into a field of its own."""
        if isinstance(value, Mapping):
            yield from _usage(value.get("usage"))
            if value.get("error"):
                yield ErrorReport({"error": value["error"]}, http_status)

    def flush(self) -> list[StreamEvent]:
        """Give what was held back, once nothing more can come."""
        events: list[StreamEvent] = []
        if thought := self._reasoning.flush():
            events.append(ReasoningDelta(thought))
        if rest := self._text.flush():
            events += self._tags.feed(rest)
        return [*events, *self._tags.flush()]

    def _note_origin(self, chunk: Mapping[str, object]) -> None:
        for name in ("model", "provider"):
            value = chunk.get(name)
            if isinstance(value, str) and value and not getattr(self, name):
                setattr(self, name, _label(value)[:200])

    def _read_choice(
        self, choice: Mapping[str, object], http_status: int | None
    ) -> Iterator[StreamEvent]:
        # Several choices answer one request; we asked for one, the first counts.
        # Without an index it is the one.
        index = choice.get("index")
        if self._choice is None and ("delta" in choice or "message" in choice):
            self._choice = index
        if None not in (index, self._choice) and index != self._choice:
            return
        yield from self._read_delta(self._delta_of(choice))
        yield from _usage(choice.get("usage"))
        if choice.get("error"):
            yield ErrorReport({"error": choice["error"]}, http_status)
        reason = choice.get("finish_reason")
        if isinstance(reason, Mapping):  # SGLang's own form
            reason = reason.get("type")
        if reason and str(reason).strip().lower() not in NO_FINISH:
            native = choice.get("native_finish_reason")
            yield Finish(
                _label(str(reason))[:100],
                _label(native)[:100] if isinstance(native, str) else None,
            )

    def _delta_of(self, choice: Mapping[str, object]) -> Mapping[str, object]:
        """What a choice adds: its delta, or a message where there are no deltas.

        Some gateways send the message so far beside each delta. One that streams
        the reasoning alone has yet to say its answer.
        """
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            if delta.get("content") or any(delta.get(name) for name in ANSWERS):
                self._has_deltas = True
                return delta
            if any(delta.get(name) for name in PAYLOADS):
                return delta
        message = choice.get("message")
        if isinstance(message, Mapping) and not self._has_deltas:
            return message
        text = choice.get("text")
        return {"content": text} if isinstance(text, str) else {}

    def _read_delta(self, delta: Mapping[str, object]) -> Iterator[StreamEvent]:
        for name in ("reasoning_content", "reasoning"):
            thought = delta.get(name)
            if isinstance(thought, str) and thought:
                if cleaned := self._reasoning.feed(thought):
                    yield ReasoningDelta(cleaned)
                break
        content = delta.get("content")
        if isinstance(content, Mapping):
            content = [content]
        if isinstance(content, list):
            yield from self._read_parts(content)
        for text in (content, delta.get("refusal")):
            if isinstance(text, str) and text and (cleaned := self._text.feed(text)):
                yield from self._tags.feed(cleaned)
        yield from _tool_calls(delta)

    def _read_parts(self, parts: list[object]) -> Iterator[StreamEvent]:
        for part in parts:
            if not isinstance(part, Mapping):
                continue
            if isinstance(text := part.get("text"), str) and text:
                yield from self._tags.feed(self._text.feed(text))
            thinking = part.get("thinking")
            for piece in thinking if isinstance(thinking, list) else (thinking,):
                inner = piece.get("text") if isinstance(piece, Mapping) else piece
                if isinstance(inner, str) and inner:
                    yield ReasoningDelta(self._reasoning.feed(inner))


def _label(text: str) -> str:
    """Fold a name that a gateway gives to one line that can be stored."""
    return " ".join(clean(text).split())


def _says_failure(chunk: Mapping[str, object], event: str) -> bool:
    """Tell whether a chunk without choices means failure (requirement A5)."""
    if event == "error" or chunk.get("type") in FAILURE_TYPES:
        return True
    if "error" in chunk and chunk["error"] is not None:
        return True
    if reasons.vendor_code(chunk):
        return True
    if chunk.get("usage") or chunk.get("code") in (0, "0"):
        return False  # a message beside it says that all is well
    return any(_is_account(chunk.get(name)) for name in FAILURE_FIELDS)


def _is_account(value: object) -> bool:
    """Tell whether a field gives an account of a failure: a message with a role is
    what some other protocol begins an answer with."""
    if isinstance(value, Mapping):
        return bool(value) and "role" not in value
    return isinstance(value, str | list) and bool(value)


def _usage(value: object) -> Iterator[StreamEvent]:
    if not isinstance(value, Mapping):
        return
    given = _count(value, "prompt_tokens", "input_tokens")
    made = _count(value, "completion_tokens", "output_tokens")
    if given is not None or made is not None:
        yield UsageReport(given, made)


def _count(value: Mapping[str, object], *names: str) -> int | None:
    for name in names:
        count = value.get(name)
        if isinstance(count, float) and count.is_integer():
            count = int(count)
        if isinstance(count, int) and _is_count(count):
            return count
    return None


def _is_count(value: object) -> bool:
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and 0 <= value <= LARGEST_COUNT
    )


def _tool_calls(delta: Mapping[str, object]) -> Iterator[StreamEvent]:
    calls = delta.get("tool_calls")
    if isinstance(calls, Mapping):
        calls = [calls]
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            yield from _fragment(call)
    legacy = delta.get("function_call")
    if isinstance(legacy, Mapping):
        yield from _fragment({"index": 0, "function": legacy})


def _fragment(call: Mapping[str, object]) -> Iterator[StreamEvent]:
    """Read one entry; an entry that holds nothing begins no call."""
    function = call.get("function", call.get("custom", call))
    inner = function if isinstance(function, Mapping) else {}
    fragment = ToolCallDelta(
        index=_index(call.get("index")),
        id=_named(call.get("id")),
        name=_named(inner.get("name")),
        arguments=_arguments(inner.get("arguments", inner.get("input"))),
    )
    if fragment.id or fragment.name or fragment.arguments is not None:
        yield fragment


def _index(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 9:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _named(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _arguments(value: object) -> str | dict[str, object] | None:
    """Take text and objects as they are; anything else is kept as its JSON text.

    It will be found to be no object, so that the call is not run.
    """
    if value is None or isinstance(value, str):
        return value
    return dict(value) if isinstance(value, Mapping) else json.dumps(value)
