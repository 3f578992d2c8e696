"""What the property test of test_any_stream.py found, each as one plain test."""

import pytest

from tests.fakegateway import (
    DONE,
    EVENT_STREAM,
    FakeGateway,
    Head,
    Script,
    Stall,
    chunk,
    frame,
    reply,
)
from tests.gateway.calling import answered, called, request_to
from threads.core.faults import Ending
from threads.gateway.calls import CallBounds

HALF, STOP = chunk(content="Half"), chunk(finish="stop")
WHOLE = (HALF, STOP, DONE)
HURRIED = CallBounds(first_data_seconds=1, idle_seconds=1)


@pytest.mark.parametrize("status", [201, 203, 206, 299])
async def test_every_success_is_read_as_a_stream(
    gateway: FakeGateway, status: int
) -> None:
    """It was read as an error's body: cut after seconds, its `[DONE]` not seen."""
    result = await answered(gateway, Script(HALF, DONE, status=status))

    assert (result.verdict.ending, result.shown) == (Ending.COMPLETED, "Half")
    assert result.record.done_received


@pytest.mark.parametrize("pieces", [1, 3], ids=["at once", "one by one"])
async def test_an_end_behind_what_cannot_be_read_proves_nothing(
    gateway: FakeGateway, pieces: int
) -> None:
    """It was complete, with text missing, whenever all of it came in one read."""
    frames = (HALF, b"data: {no json\n\n", chunk(content=" more") + DONE)
    script = Script(*frames) if pieces == 3 else Script(b"".join(frames))

    result = await answered(gateway, script)

    assert (result.verdict.code, result.shown) == ("stream_unreadable", "Half")


@pytest.mark.parametrize(
    "script",
    [
        reply(429, {"error": {"message": "slow"}}, headers={"retry-after": "60"}),
        Script(Head(), Stall(), status=429, headers={"retry-after": "9000"}),
    ],
    ids=["a long wait", "a body that does not come"],
)
async def test_a_refusal_that_outlasts_the_clock_was_no_silence(
    gateway: FakeGateway, script: Script
) -> None:
    """It was reported as a gateway that never began to answer."""
    result = await answered(gateway, script, bounds=HURRIED)

    assert (result.verdict.ending, result.verdict.code) == (Ending.REFUSED, "http_429")
    assert result.record.http_status == 429


async def test_a_try_that_stays_silent_after_one_that_was_refused_is_silence(
    gateway: FakeGateway,
) -> None:
    """The refusal that counts is that of the latest try."""
    refused = reply(503, {"error": {}}, headers={"retry-after-ms": "1"})

    result = await answered(gateway, refused, Script(Stall()), bounds=HURRIED)

    assert (result.verdict.code, result.record.http_status) == (
        "stalled_before_start",
        None,
    )


async def test_a_message_after_streamed_reasoning_is_the_answer(
    gateway: FakeGateway,
) -> None:
    """Its text was dropped, as if the deltas had said it already."""
    message = {"index": 0, "message": {"content": "Well"}, "finish_reason": "stop"}
    script = Script(chunk(reasoning="hm"), frame({"choices": [message]}), DONE)

    result = await answered(gateway, script)

    assert (result.shown, result.thought) == ("Well", "hm")
    assert result.verdict.ending is Ending.COMPLETED


async def test_bytes_behind_a_response_do_not_reach_the_next_one(
    gateway: FakeGateway,
) -> None:
    """They are read as its head, which the SDK's next try makes good."""
    body = b"".join(WHOLE)
    length = EVENT_STREAM | {"content-length": str(len(body))}
    gateway.play(
        Script(body + b"leftover", headers=length, framing="length"), Script(*WHOLE)
    )

    first = await called(request_to(gateway.base_url))
    second = await called(request_to(gateway.base_url))

    for result in (first, second):
        assert (result.shown, result.verdict.ending) == ("Half", Ending.COMPLETED)
