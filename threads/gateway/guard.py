"""Two clocks around one stream, and a close that never masks the fault.

The clocks run only while we wait for the provider: a slow reader of ours trips
neither. A chunk of any kind is progress, a comment is none (A8, A9, X13). After
a finish reason only the usage may still come; it is waited for briefly.
"""

import asyncio
import logging
from dataclasses import dataclass

from threads.core.events import StreamEvent
from threads.core.evidence import StreamEnd
from threads.core.faults import Arrival
from threads.gateway.client import EventStream, GatewayClient
from threads.gateway.transport import CLOSE_SECONDS, Wire, close_quietly

logger = logging.getLogger(__name__)

AFTER_FINISH_SECONDS = 5.0
"""How long usage and `[DONE]` are waited for once the answer is whole."""

_closing: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True)
class CallBounds:
    """How long a provider may be silent, in seconds (A8, A9)."""

    first_data_seconds: float
    idle_seconds: float


class GuardedStream:
    """One request and its chunks, bounded; `close` must always be awaited."""

    def __init__(
        self, client: GatewayClient, *, wire: Wire, bounds: CallBounds
    ) -> None:
        self._client = client
        self._wire = wire
        self._bounds = bounds
        self._stream: EventStream | None = None
        self._has_data = False
        self._was_settled = False
        self._deadline = 0.0

    @property
    def model_served(self) -> str:
        """The model that the chunks name, or nothing."""
        return self._stream.reader.model if self._stream else ""

    @property
    def provider(self) -> str:
        """The provider that the chunks name, or nothing."""
        return self._stream.reader.provider if self._stream else ""

    async def open(self, body: dict[str, object]) -> StreamEnd | None:
        """Send the request; None when a stream was accepted.

        The clock of the first data begins here: a gateway that accepts and never
        answers is as silent as one that answers with comments. One that refused,
        and whose body or whose `Retry-After` outlasts the clock, was not silent.
        """
        self._deadline = self._now() + self._bounds.first_data_seconds
        clock = asyncio.timeout_at(self._deadline)
        try:
            async with clock:
                opened = await self._client.open(body, self._wire)
        except TimeoutError:
            if not clock.expired():
                raise
            if self._wire.refused is not None:
                return StreamEnd(
                    Arrival.STATUS,
                    http_status=self._wire.refused,
                    headers=self._wire.headers,
                )
            return StreamEnd(Arrival.SILENT_START)
        if isinstance(opened, StreamEnd):
            return opened
        self._stream = opened
        return None

    async def next(self, *, is_settled: bool) -> list[StreamEvent] | StreamEnd:
        """Wait for the next chunk within the bound in force."""
        if self._stream is None:
            raise RuntimeError("the stream is not open")
        if is_settled:
            # Set once: heartbeats may come as chunks, for ever.
            if not self._was_settled:
                self._was_settled = True
                self._deadline = self._now() + min(
                    AFTER_FINISH_SECONDS, self._bounds.idle_seconds
                )
        elif self._has_data:
            self._deadline = self._now() + self._bounds.idle_seconds
        clock = asyncio.timeout_at(self._deadline)
        try:
            async with clock:
                chunk = await self._stream.next()
        except TimeoutError:
            if not clock.expired():
                raise
            arrival = Arrival.SILENT_MID if self._has_data else Arrival.SILENT_START
            return self._stream.end(arrival)
        self._has_data = True
        return chunk

    def flush(self) -> list[StreamEvent]:
        """Give what the reader held back."""
        return self._stream.reader.flush() if self._stream else []

    async def close(self) -> None:
        """Close, shielded from cancellation and bounded; a failure is only logged.

        A failing close would otherwise replace the fault, or turn a whole answer
        into an error (A15, measured).
        """
        stream, self._stream = self._stream, None
        if stream is None:
            return
        task = asyncio.ensure_future(close_quietly(stream.close, seconds=CLOSE_SECONDS))
        _closing.add(task)
        task.add_done_callback(_closing.discard)
        await asyncio.shield(task)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
