"""Two clocks around one stream: only silence of the provider trips them."""

import asyncio
from contextlib import aclosing

import pytest

from tests.fakegateway import (
    DONE,
    FakeGateway,
    Head,
    Pause,
    Script,
    Stall,
    chunk,
    frame,
)
from tests.fakescript import Step
from tests.gateway.calling import (
    PATIENT,
    answered,
    called,
    request_to,
)
from threads.core.events import TextDelta
from threads.core.faults import Ending
from threads.gateway.calls import CallBounds, CallEnded, run_call

HALF = chunk(content="Half")
STOP = chunk(finish="stop")
COMMENT = ": PROCESSING\n\n"
SETTLED = CallBounds(first_data_seconds=30, idle_seconds=1)
"""Patient until the first chunk."""


def for_ever(
    sign: bytes | str, *, seconds: float = 0.02, times: int = 500
) -> list[bytes | str | Step]:
    """Signs of life, longer than any bound here waits."""
    return [sign, Pause(seconds)] * times


BEFORE_DATA = {
    "no answer at all": Script(Stall()),
    "a head only": Script(Head(), Stall()),
    "a comment, then nothing": Script(COMMENT, Stall()),
    "comments for ever": Script(*for_ever(COMMENT)),
    "control frames for ever": Script(*for_ever("event: ping\n\n")),
    "half an event": Script(b'data: {"cho', Stall()),
}


@pytest.mark.parametrize("script", BEFORE_DATA.values(), ids=BEFORE_DATA)
async def test_a_gateway_that_never_starts_has_stalled(
    gateway: FakeGateway, script: Script
) -> None:
    bounds = CallBounds(first_data_seconds=1, idle_seconds=30)

    called = await answered(gateway, script, bounds=bounds)

    assert called.verdict.code == "stalled_before_start"
    assert called.verdict.ending is Ending.STALLED
    assert called.record.stream_state == "failed_before_display"
    assert called.record.first_data_ms is None
    await gateway.requests[0].wait_closed()


MID_ANSWER = {
    "silence": Script(HALF, Stall()),
    "comments for ever": Script(HALF, *for_ever(COMMENT)),
    "half an event": Script(HALF, b'data: {"cho', Stall()),
}


@pytest.mark.parametrize("script", MID_ANSWER.values(), ids=MID_ANSWER)
async def test_silence_mid_answer_stalls_and_keeps_the_text(
    gateway: FakeGateway, script: Script
) -> None:
    called = await answered(gateway, script, bounds=SETTLED)

    assert called.verdict.code == "stalled_mid_answer"
    assert called.ended.text == "Half"
    assert called.record.stream_state == "partial"
    await gateway.requests[0].wait_closed()


async def test_comments_are_counted_and_a_role_chunk_counts_as_data(
    gateway: FakeGateway,
) -> None:
    script = Script(COMMENT, COMMENT, chunk(), Stall())

    called = await answered(gateway, script, bounds=SETTLED)

    assert called.verdict.code == "stalled_mid_answer"
    assert (called.record.comments_seen, called.record.chunks_received) == (2, 1)
    assert called.record.stream_state == "failed_before_display"


@pytest.mark.parametrize(
    "sign",
    [
        chunk(reasoning="hm"),
        chunk(),
        frame({"choices": []}),
        frame({"choices": None}),
    ],
    ids=["reasoning", "empty delta", "no choices", "null choices"],
)
async def test_any_chunk_resets_the_idle_clock(
    gateway: FakeGateway, sign: bytes
) -> None:
    bounds = CallBounds(first_data_seconds=30, idle_seconds=1)
    script = Script(HALF, *for_ever(sign, seconds=0.1, times=15), STOP, DONE)

    called = await answered(gateway, script, bounds=bounds)

    assert called.verdict.ending is Ending.COMPLETED


async def test_a_thinking_model_that_falls_silent_has_stalled(
    gateway: FakeGateway,
) -> None:
    script = Script(chunk(reasoning="hm"), Stall())

    called = await answered(gateway, script, bounds=SETTLED)

    assert called.verdict.code == "stalled_mid_answer"
    assert called.thought == called.ended.reasoning == "hm"
    assert called.record.stream_state == "partial"
    assert not called.record.output_committed


async def test_a_slow_consumer_trips_no_clock(gateway: FakeGateway) -> None:
    gateway.play(Script(HALF, Pause(0.1), HALF, Pause(0.1), HALF, STOP, DONE))
    call = run_call(request_to(gateway.base_url), bounds=SETTLED)
    ended: CallEnded | None = None

    async with aclosing(call) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                await asyncio.sleep(1.2)
            if isinstance(event, CallEnded):
                ended = event

    assert ended is not None
    assert ended.verdict.ending is Ending.COMPLETED
    assert ended.text == "HalfHalfHalf"


AFTER_THE_END = {
    "an open socket after [DONE]": Script(HALF, STOP, DONE, Stall()),
    "an open socket after the finish reason": Script(HALF, STOP, Stall()),
    "comments after the finish reason": Script(HALF, STOP, *for_ever(COMMENT)),
    "empty chunks after the finish reason": Script(
        HALF, STOP, *for_ever(frame({"choices": []}))
    ),
    "an open socket after [DONE] alone": Script(HALF, DONE, Stall()),
}


@pytest.mark.parametrize("script", AFTER_THE_END.values(), ids=AFTER_THE_END)
async def test_a_whole_answer_does_not_wait_for_the_socket(
    gateway: FakeGateway, script: Script
) -> None:
    called = await answered(gateway, script, bounds=SETTLED)

    assert called.verdict.ending is Ending.COMPLETED
    assert called.ended.text == "Half"
    await gateway.requests[0].wait_closed()


async def test_usage_that_comes_after_the_finish_reason_is_waited_for(
    gateway: FakeGateway,
) -> None:
    usage = chunk(usage={"prompt_tokens": 3, "completion_tokens": 5})
    script = Script(HALF, STOP, Pause(0.1), usage, DONE)

    called = await answered(gateway, script)

    assert (called.ended.usage.input_tokens, called.ended.usage.output_tokens) == (3, 5)
    assert called.record.usage_source == "provider"


async def test_a_call_after_a_stall_uses_a_new_connection(
    gateway: FakeGateway,
) -> None:
    request = request_to(gateway.base_url)
    gateway.play(Script(HALF, Stall()), Script(HALF, STOP, DONE))

    stalled = await called(request, bounds=SETTLED)
    completed = await called(request, bounds=PATIENT)

    assert stalled.verdict.ending is Ending.STALLED
    assert completed.verdict.ending is Ending.COMPLETED
    first, second = gateway.requests
    assert first.connection_id != second.connection_id
