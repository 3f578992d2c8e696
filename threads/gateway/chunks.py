"""One decoded chunk of the OpenAI wire, in its many dialects, as core events.

Every dialect that a gateway was seen to speak is a line here; none of them gets
a meaning here. Text is cleaned, so that nothing above ever meets half an emoji.
"""

from collections.abc import Iterator, Mapping

from threads.core.answer import Cleaner, clean
from threads.core.events import (
    Envelope,
    ErrorReport,
    Finish,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)

THINK_OPENS, THINK_CLOSES = "<think>", "</think>"

LARGEST_COUNT = 2**31 - 1
"""What a database column holds; more tokens than this is no count."""


class ThinkTags:
    """Tells reasoning from answer where a model writes its own tags into the text.

    Only a tag at the very start counts: a later one is somebody's example.
    """

    def __init__(self) -> None:
        self._state = "start"
        self._held = ""

    def feed(self, text: str) -> Iterator[StreamEvent]:
        """Split one piece of content."""
        if self._state == "answer":
            yield TextDelta(text)
            return
        self._held += text
        if self._state == "start":
            yield from self._begin()
        if self._state == "thinking":
            yield from self._think()
        if self._state == "gap" and (answer := self._held.lstrip()):
            self._state, self._held = "answer", ""
            yield TextDelta(answer)

    def _begin(self) -> Iterator[StreamEvent]:
        begun = self._held.lstrip()
        if begun.startswith(THINK_OPENS):
            self._state, self._held = "thinking", begun[len(THINK_OPENS) :]
        elif not THINK_OPENS.startswith(begun):
            self._state, held, self._held = "answer", self._held, ""
            yield TextDelta(held)

    def _think(self) -> Iterator[StreamEvent]:
        thought, closed, answer = self._held.partition(THINK_CLOSES)
        if closed:
            self._state, self._held = "gap", answer
            if thought:
                yield ReasoningDelta(thought)
            return
        keep = next(
            (n for n in range(8, 0, -1) if thought.endswith(THINK_CLOSES[:n])), 0
        )
        ready, self._held = (
            thought[: len(thought) - keep],
            thought[len(thought) - keep :],
        )
        if ready:
            yield ReasoningDelta(ready)

    def flush(self) -> Iterator[StreamEvent]:
        """Give what was held, once nothing more can come."""
        held, self._held = self._held, ""
        if held and self._state != "gap":
            yield ReasoningDelta(held) if self._state == "thinking" else TextDelta(held)


class ChunkReader:
    """Reads the chunks of one attempt; keeps what spans them."""

    def __init__(self) -> None:
        self.model = ""
        self.provider = ""
        self._choice: object = None
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
        events: list[StreamEvent] = []
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping):
                events += self._read_choice(choice, http_status)
        events += _usage(chunk.get("usage"))
        if chunk.get("error") or (not choices and _says_failure(chunk, event)):
            events.append(ErrorReport(chunk, http_status))
        return events or [Envelope(self.model)]

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
        index = choice.get("index")
        if self._choice is None and ("delta" in choice or "message" in choice):
            self._choice = index
        if index != self._choice and self._choice is not None:
            return
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            delta = choice.get("message")
        if isinstance(delta, Mapping):
            yield from self._read_delta(delta)
        yield from _usage(choice.get("usage"))
        if choice.get("error"):
            yield ErrorReport({"error": choice["error"]}, http_status)
        reason = choice.get("finish_reason")
        if reason:
            native = choice.get("native_finish_reason")
            yield Finish(
                _label(str(reason))[:100],
                _label(native)[:100] if isinstance(native, str) else None,
            )

    def _read_delta(self, delta: Mapping[str, object]) -> Iterator[StreamEvent]:
        for name in ("reasoning_content", "reasoning"):
            thought = delta.get(name)
            if isinstance(thought, str) and thought:
                if cleaned := self._reasoning.feed(thought):
                    yield ReasoningDelta(cleaned)
                break
        content = delta.get("content")
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
    if event == "error" or ("error" in chunk and chunk["error"] is not None):
        return True
    base = chunk.get("base_resp")
    if isinstance(base, Mapping) and base.get("status_code"):
        return True
    return "choices" not in chunk and any(
        isinstance(chunk.get(name), str | list | Mapping) and bool(chunk.get(name))
        for name in ("detail", "message")
    )


def _usage(value: object) -> Iterator[StreamEvent]:
    if not isinstance(value, Mapping):
        return
    given, made = value.get("prompt_tokens"), value.get("completion_tokens")
    if _is_count(given) or _is_count(made):
        yield UsageReport(
            given if isinstance(given, int) and _is_count(given) else None,
            made if isinstance(made, int) and _is_count(made) else None,
        )


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
            yield _fragment(call, call.get("function"))
    legacy = delta.get("function_call")
    if isinstance(legacy, Mapping):
        yield _fragment({"index": 0}, legacy)


def _fragment(call: Mapping[str, object], function: object) -> ToolCallDelta:
    inner = function if isinstance(function, Mapping) else {}
    index, id_, name, arguments = (
        call.get("index"),
        call.get("id"),
        inner.get("name"),
        inner.get("arguments"),
    )
    if isinstance(index, str) and index.isdecimal():
        index = int(index)
    return ToolCallDelta(
        index=index if isinstance(index, int) and not isinstance(index, bool) else None,
        id=id_ if isinstance(id_, str) and id_ else None,
        name=name if isinstance(name, str) and name else None,
        arguments=dict(arguments)
        if isinstance(arguments, Mapping)
        else arguments
        if isinstance(arguments, str)
        else None,
    )
