"""What a caller learns of an attempt, and when: withheld, buffered, or at once."""

from collections.abc import Iterator

from threads.core.events import Envelope, ReasoningDelta, TextDelta, ToolCallBegan
from threads.gateway.attempt import Attempt, AttemptRecord

Piece = TextDelta | ReasoningDelta
Delivered = Envelope | Piece | ToolCallBegan


class CallObserver:
    """Lets the caller account for a call that it cancelled.

    `held` is the last text that a buffered call has received and not yet shown.
    """

    def __init__(self) -> None:
        self.attempt: Attempt | None = None
        self.held: list[Piece] = []

    def record(self) -> AttemptRecord | None:
        """The attempt in flight as a stopped one; None when nothing was sent."""
        if self.attempt is None or not self.attempt.wire.tries:
            return None
        return self.attempt.record(stopped=True)


class Delivery:
    """What of one attempt reaches the caller, and when.

    The envelope (which model serves) comes here with the first output: that of a
    silent attempt which is tried again says nothing about the answer (D5); a silent
    last one delivers it at its end. Reasoning is progress and is shown at once (X21).
    Buffered, envelope and text wait for the end of the attempt (D19).
    """

    def __init__(self, observer: CallObserver, *, is_buffered: bool) -> None:
        self.has_shown = False
        self._is_buffered = is_buffered
        self._observer = observer
        self._held = list[Piece]()
        self._delivered: Envelope | None = None

    def take(self, event: Delivered) -> Iterator[Delivered]:
        """Give what may be seen of one event now."""
        match event:
            case Envelope():
                if not self._is_buffered:
                    self._delivered = event
                    yield event
            case ToolCallBegan():
                yield event
            case _ if self._is_buffered:
                self._held.append(event)
                if event.text.strip() and isinstance(event, TextDelta):
                    self._observer.held = self._held
            case _:
                self.has_shown = True
                yield event

    def rest(self, model: str, *, is_whole: bool) -> Iterator[Delivered]:
        """Give what was withheld, once no other attempt follows.

        Of a buffered call that did not become whole this is the last text that
        came, be it an earlier attempt's: nothing that was streamed is lost.
        """
        if self._delivered is None or self._delivered.model != model:
            yield Envelope(model)
        observer = self._observer
        if is_whole or not observer.held:
            observer.held = self._held
        # In one piece, and held until the caller has it: whoever leaves meanwhile
        # finds it there.
        for kind in (ReasoningDelta, TextDelta):
            pieces = [each.text for each in observer.held if isinstance(each, kind)]
            if pieces:
                yield kind("".join(pieces))
        observer.held = []
