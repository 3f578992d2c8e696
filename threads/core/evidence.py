"""What an attempt's events prove about its end.

Fed with every event; at the end it turns what it saw, and how the transport
ended, into the facts that `threads.core.faults.classify` judges. It also keeps
the counts that the ledger shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from threads.core.events import (
    ErrorReport,
    Finish,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    carries_output,
    is_withdrawable,
)
from threads.core.faults import Arrival, Facts, finish_of


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """How the transport ended: what the gateway's driver saw, without meaning.

    `http_status` and `body` may come from beside the events (a comment, a stray
    line); `keepalives` counts comments and empty events since the last data.
    """

    arrival: Arrival
    http_status: int | None = None
    body: object = None
    words: str = ""
    headers: Mapping[str, str] | None = None
    keepalives: int = 0


class Evidence:
    """The proof of one attempt; `chunks` and `silent_updates` count wire chunks."""

    def __init__(self) -> None:
        self.finish: Finish | None = None
        self.error: ErrorReport | None = None
        self.done = False
        self.has_text = False
        self.has_reasoning = False
        self.has_tool_calls = False
        self.has_output = False
        self.is_withdrawable = True
        self.chunks = 0
        self.silent_updates = 0

    def feed_chunk(self, events: list[StreamEvent], *, is_rest: bool = False) -> None:
        """Take the events of one wire chunk, or the rest that was held back of some.

        The first finish reason stands: some gateways send the last chunk twice.
        One that comes with or after an error proves nothing, nor does an error
        that comes in a later chunk than the finish reason.
        """
        self.chunks += not is_rest
        fails = any(isinstance(event, ErrorReport) for event in events)
        for event in events:
            match event:
                case TextDelta(text=text):
                    self.has_text = self.has_text or bool(text.strip())
                case ReasoningDelta():
                    self.has_reasoning = True
                case ToolCallDelta():
                    self.has_tool_calls = True
                case Finish(reason=reason) if self.finish is None and not self.error:
                    if not fails or finish_of(reason) is None:
                        self.finish = event
                case ErrorReport() if self.error is None:
                    self.error = event
                case _:
                    pass
            self.has_output = self.has_output or carries_output(event)
            self.is_withdrawable = self.is_withdrawable and is_withdrawable(event)
        if not self.has_output and not is_rest:
            self.silent_updates += 1

    @property
    def is_settled(self) -> bool:
        """Nothing that follows can change the ending; only usage may come."""
        return self.finish is not None or self.done

    def facts(self, end: StreamEnd, secrets: tuple[str, ...] = ()) -> Facts:
        """Join what was seen with how it ended."""
        error = self.error
        return Facts(
            arrival=end.arrival if error is None else Arrival.STREAMED_ERROR,
            finish_reason=self.finish.reason if self.finish else "",
            native_finish_reason=(self.finish.native or "") if self.finish else "",
            done=self.done,
            has_text=self.has_text,
            has_tool_calls=self.has_tool_calls,
            http_status=error.http_status if error else end.http_status,
            body=error.body if error else end.body,
            words=end.words if error is None else "",
            headers=end.headers or {},
            secrets=secrets,
            keepalives=end.keepalives,
        )
