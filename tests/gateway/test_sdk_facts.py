"""What the raw SDK does today, one test for each fact that our code leans on.

Red here is news of the SDK, not a bug of ours: each test says which code of ours the
change would retire, or put in doubt.
"""

import json

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk

from tests.fakegateway import (
    DONE,
    EVENT_STREAM,
    Close,
    FakeGateway,
    Reset,
    Script,
    Stall,
    chunk,
    frame,
    reply,
)
from tests.gateway.rawsdk import plain, typed
from tests.loopback import loopback_client

HALF = chunk(content="Half")
STOP = chunk(finish="stop")
BOOM = {"code": 502, "message": "boom"}
AT_ONCE = {"retry-after-ms": "1"}


CLEAN_ENDS = {
    "finish_reason error": (Script(HALF, chunk(finish="error"), DONE), 2),
    "an unknown finish reason": (Script(HALF, chunk(finish="odd"), DONE), 2),
    "an error inside a choice": (
        Script(HALF, frame({"choices": [{"finish_reason": "error", "error": BOOM}]})),
        2,
    ),
    "no proof of an end": (Script(HALF), 1),
    "an end told by closing": (Script(HALF, framing="close"), 1),
    "an event without its blank line": (Script(HALF, STOP[:-1]), 1),
    "[DONE] alone": (Script(DONE), 0),
    "an empty body": (Script(), 0),
    "an HTML page": (Script("<html>", headers={"content-type": "text/html"}), 0),
    "an error as JSON": (reply(200, {"error": BOOM}), 0),
    "an empty error object": (Script(frame({"error": {}})), 1),
    "a failure without an error key": (Script(frame({"detail": "Internal"})), 1),
}


@pytest.mark.parametrize(("script", "count"), CLEAN_ENDS.values(), ids=CLEAN_ENDS)
async def test_the_sdk_ends_cleanly_on_ends_that_are_none(
    gateway: FakeGateway, sdk: AsyncOpenAI, script: Script, count: int
) -> None:
    """Would retire: the rows for it in `Evidence`, `ChunkReader`, `end_of_body`."""
    gateway.play(script)
    chunks: list[ChatCompletionChunk] = []

    await typed(sdk, chunks)

    assert len(chunks) == count


async def test_the_sdk_raises_an_error_chunk_and_loses_the_text_beside_it(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Would retire: `stream_mode="events"` in `GatewayClient.open`."""
    gateway.play(Script(HALF, chunk(content=" tail", finish="error", error=BOOM)))
    chunks: list[ChatCompletionChunk] = []

    with pytest.raises(openai.APIError, match="boom") as caught:
        await typed(sdk, chunks)

    assert type(caught.value) is openai.APIError
    assert not hasattr(caught.value, "status_code")
    assert (caught.value.code, caught.value.body) == ("502", BOOM)
    assert [c.choices[0].delta.content for c in chunks] == ["Half"]


async def test_in_events_mode_every_frame_is_handed_over_as_plain_json(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Puts in doubt: all of `EventStream.next`, if chunks are no longer plain."""
    values = [{"error": BOOM, "choices": [{"delta": {"content": "x"}}]}, 5, [], None]
    gateway.play(Script(*(frame(value) for value in values), DONE))
    chunks: list[object] = []

    await plain(sdk, chunks)

    assert chunks == values
    assert type(chunks[0]) is dict


@pytest.mark.parametrize("collect", [typed, plain], ids=["typed", "plain"])
@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (b"{no json", json.JSONDecodeError),
        (b'"\xff"', UnicodeDecodeError),
        (b"1" * 5000, ValueError),
        (b"[" * 100_000, RecursionError),
    ],
    ids=["no JSON", "no UTF-8", "a long number", "absurd depth"],
)
async def test_an_unreadable_frame_raises_the_decoders_own_error(
    gateway: FakeGateway,
    sdk: AsyncOpenAI,
    collect: object,
    payload: bytes,
    error: type[Exception],
) -> None:
    """Would retire: `except (ValueError, RecursionError)` in `EventStream.next`."""
    gateway.play(Script(HALF, b"data: " + payload + b"\n\n"))

    with pytest.raises(error) as caught:
        await (typed(sdk, []) if collect is typed else plain(sdk, []))

    assert not isinstance(caught.value, openai.OpenAIError)


@pytest.mark.parametrize(
    "control",
    [b"retry: 3000\n\n", b"event: ping\n\n", b"data:\n\n", b"id: 7\n\n"],
    ids=["retry", "ping", "empty data", "id"],
)
async def test_a_legal_control_frame_ends_the_sdks_stream(
    gateway: FakeGateway, sdk: AsyncOpenAI, control: bytes
) -> None:
    """Would retire: dropping what carries no data, in `SseFilter`."""
    gateway.play(Script(b"id: 1\n" + HALF, control, STOP, DONE))
    chunks: list[object] = []

    with pytest.raises(json.JSONDecodeError):
        await plain(sdk, chunks)

    assert len(chunks) == 1


async def test_a_byte_order_mark_loses_the_first_event(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Would retire: `BOM` in `SseFilter`."""
    gateway.play(Script(b"\xef\xbb\xbf" + HALF, STOP, DONE))
    chunks: list[object] = []

    await plain(sdk, chunks)

    assert len(chunks) == 1


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        (Script(HALF, Close()), httpx2.RemoteProtocolError),
        (Script(HALF, Close(half=b"data: {")), httpx2.RemoteProtocolError),
        (Script(HALF, Reset()), httpx2.ReadError),
        (Script(HALF, STOP, Reset()), httpx2.ReadError),
        (
            Script(HALF, headers=EVENT_STREAM | {"content-encoding": "gzip"}),
            httpx2.DecodingError,
        ),
    ],
    ids=["close", "close inside", "reset", "reset after the end", "no gzip"],
)
async def test_a_broken_transport_is_a_connection_error_with_its_cause(
    gateway: FakeGateway,
    sdk: AsyncOpenAI,
    script: Script,
    cause: type[Exception],
) -> None:
    """Puts in doubt: `except APIConnectionError` in `EventStream.next`."""
    gateway.play(script)

    with pytest.raises(openai.APIConnectionError) as caught:
        await plain(sdk, [])

    assert isinstance(caught.value.__cause__, cause)
    assert len(gateway.requests) == 1


async def test_comments_reset_the_read_timeout_and_yield_nothing(
    gateway: FakeGateway,
) -> None:
    """Would retire: the two clocks of `GuardedStream`."""
    comments = Script(": PROCESSING\n\n", Stall())
    gateway.play(comments)
    async with AsyncOpenAI(
        base_url=gateway.base_url,
        api_key="sk-raw",
        http_client=loopback_client(),
        timeout=httpx2.Timeout(5, read=0.2),
        max_retries=0,
    ) as sdk:
        chunks: list[object] = []

        with pytest.raises(openai.APITimeoutError):
            await plain(sdk, chunks)

    assert issubclass(openai.APITimeoutError, openai.APIConnectionError)
    assert chunks == []
