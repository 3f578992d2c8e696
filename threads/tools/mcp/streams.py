"""The stream of messages from a tool server, and its end."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import anyio


class Watched:
    """A read stream that tells when it ends: the SDK keeps that to itself."""

    def __init__(self, inner: Any, ended: Callable[[], None]) -> None:
        self._inner = inner
        self._ended = ended

    @property
    def last_context(self) -> Any:
        """The context in which the latest message was sent, for the SDK."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        """Take one message."""
        try:
            return await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended()
            raise

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
