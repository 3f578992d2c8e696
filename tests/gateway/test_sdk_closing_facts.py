"""What the raw SDK does today when a stream ends or is left, fact by fact.

As in test_sdk_facts.py: each test says which code of ours a change would retire, or
put in doubt.
"""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import openai
import pytest
from openai import AsyncOpenAI, AsyncStream

from tests.fakegateway import (
    DONE,
    Close,
    FakeGateway,
    Reset,
    Script,
    Send,
    Stall,
    chunk,
    frame,
)
from tests.gateway.rawsdk import opened, plain, typed
from tests.loopback import NO_CERTIFICATES

HALF = chunk(content="Half")
STOP = chunk(finish="stop")


@pytest.mark.parametrize(
    "after",
    [
        (),
        (Stall(),),
        (Reset(),),
        (Close(half=b"data"),),
        (Send(b": more\n\n"), Stall()),
    ],
    ids=["the end", "silence", "reset", "close", "comments"],
)
async def test_what_follows_done_is_waited_for_briefly_and_means_nothing(
    gateway: FakeGateway, sdk: AsyncOpenAI, after: tuple[Reset | Close | Send, ...]
) -> None:
    """Puts in doubt: that a whole answer needs no guard of ours behind `[DONE]`."""
    gateway.play(Script(HALF, STOP, DONE, *after))
    chunks: list[object] = []

    async with asyncio.timeout(5):
        await plain(sdk, chunks)

    assert len(chunks) == 2


async def test_a_connection_is_used_again_only_when_its_response_was_read_to_the_end(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Would retire: closing mid-stream as the way to end a request (A18, A19)."""
    whole = Script(HALF, STOP, DONE)
    gateway.play(whole, whole, Script(HALF, STOP, DONE, Stall()), whole)

    for _ in range(4):
        await plain(sdk, [])

    assert [request.connection_id for request in gateway.requests] == [1, 1, 1, 2]


async def test_closing_a_stream_mid_way_closes_its_connection(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Puts in doubt: `EventStream.close`."""
    gateway.play(Script(HALF, Stall()))
    stream = await opened(sdk)
    await anext(stream)

    await stream.close()

    await gateway.requests[0].wait_closed()


async def test_leaving_a_stream_unclosed_leaves_its_connection_open(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Would retire: that `GuardedStream.close` must always be awaited."""
    gateway.play(Script(HALF, Stall()))
    stream = await opened(sdk)

    async for _ in stream:
        break

    with pytest.raises(TimeoutError):
        await gateway.requests[0].wait_closed(within_seconds=0.1)
    await stream.close()


class FailingClose(httpx2.AsyncByteStream):
    """A body that cannot be closed."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    async def aclose(self) -> None:
        raise RuntimeError("close failed")


class FailingTransport(httpx2.AsyncBaseTransport):
    """Answers every request with a body that cannot be closed."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(
            200,
            headers={"content-type": "text/event-stream"},
            stream=FailingClose(self._body),
            request=request,
        )


@pytest.mark.parametrize(
    "body",
    [HALF + frame({"error": {"message": "boom"}}), HALF + STOP + DONE],
    ids=["a fault", "a whole answer"],
)
async def test_a_failing_close_replaces_the_fault_and_breaks_a_whole_answer(
    body: bytes,
) -> None:
    """Would retire: what `GuardedStream.close` swallows (A15)."""
    async with AsyncOpenAI(
        base_url="http://gateway.test/v1",
        api_key="sk-raw",
        http_client=httpx2.AsyncClient(
            transport=FailingTransport(body), verify=NO_CERTIFICATES, trust_env=False
        ),
    ) as sdk:
        with pytest.raises(RuntimeError, match="close failed") as caught:
            await typed(sdk, [])

    assert not isinstance(caught.value, openai.OpenAIError)


async def test_closing_twice_is_harmless(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Puts in doubt: that `close` may follow a stream which the SDK has closed."""
    gateway.play(Script(HALF, STOP, DONE))
    stream: AsyncStream[object] = await opened(sdk)
    chunks = [each async for each in stream]

    await stream.close()
    await stream.close()

    assert len(chunks) == 2
