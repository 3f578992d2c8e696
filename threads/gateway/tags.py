"""Telling reasoning from answer where a model writes its own tags into the text."""

from collections.abc import Iterator

from threads.core.events import ReasoningDelta, StreamEvent, TextDelta

THINK_OPENS, THINK_CLOSES = "<think>", "</think>"


class ThinkTags:
    """Splits the text of one answer as it comes.

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
