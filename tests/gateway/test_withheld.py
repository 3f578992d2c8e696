"""What a call holds back: which model serves until there is output, or all of it."""

from contextlib import aclosing
from dataclasses import replace

import pytest

from tests.fakegateway import (
    DONE,
    FakeGateway,
    Reset,
    Script,
    Stall,
    chunk,
)
from tests.gateway.calling import AGAIN, PATIENT, request_to
from tests.gateway.cuts import CALL, CUT, HALF, SILENT, WHOLE, ending, recovered
from threads.core.events import (
    Envelope,
    ReasoningDelta,
    TextDelta,
    ToolCallBegan,
)
from threads.core.faults import Ending
from threads.core.retry import ONCE
from threads.gateway.calls import (
    AttemptRecord,
    CallEnded,
    CallEvent,
    CallObserver,
    run_call,
)

ROLE = chunk(content="", model="served-1")
USAGE = chunk(usage={"prompt_tokens": 7, "completion_tokens": 3}, model="served-1")
FILTERED = chunk(finish="content_filter", model="served-1")
BUFFERED = replace(AGAIN, is_buffered=True)


async def while_open(gateway: FakeGateway, script: Script, count: int) -> list[object]:
    """The first events of a call whose stream is still open when they come."""
    gateway.play(script)
    running = run_call(request_to(gateway.base_url), bounds=PATIENT, retry=AGAIN)
    events: list[object] = []
    async with aclosing(running) as call:
        async for event in call:
            events.append(event)
            if len(events) == count:
                break
    return events


@pytest.mark.parametrize(
    "came", [(ROLE,), (ROLE, chunk(reasoning="hm", model="served-1"))]
)
@pytest.mark.parametrize("end", ["reset", "502", "finish"])
async def test_the_envelope_of_a_silent_attempt_that_is_tried_again_is_not_delivered(
    gateway: FakeGateway, came: tuple[bytes, ...], end: str
) -> None:
    result = await recovered(gateway, ending(end, *came), WHOLE)

    assert result.served == ["fake-model"]
    assert result.records[0].model_served == "served-1"


async def test_the_envelope_comes_with_the_first_output_and_once(
    gateway: FakeGateway,
) -> None:
    thought = chunk(reasoning="hm", model="served-1")
    script = Script(ROLE, thought, HALF, HALF, chunk(finish="stop"), DONE)

    result = await recovered(gateway, script)

    assert result.events[1:5] == [
        ReasoningDelta("hm"),
        Envelope("served-1"),
        TextDelta("Half an ans"),
        TextDelta("Half an ans"),
    ]
    assert result.served == ["served-1"]


@pytest.mark.parametrize("script", [Script(ROLE, Reset()), Script(ROLE, DONE)])
async def test_a_silent_last_attempt_delivers_its_envelope_at_its_end(
    gateway: FakeGateway, script: Script
) -> None:
    result = await recovered(gateway, script, retry=ONCE)

    _started, envelope, record, ended = result.events
    assert envelope == Envelope("served-1")
    assert isinstance(record, AttemptRecord)
    assert isinstance(ended, CallEnded)


async def test_of_several_silent_attempts_only_the_last_delivers_its_envelope(
    gateway: FakeGateway,
) -> None:
    second, third = (
        Script(chunk(content="", model=f"served-{number}"), Reset())
        for number in (2, 3)
    )

    result = await recovered(gateway, Script(ROLE, Reset()), second, third)

    assert result.served == ["served-3"]


async def test_a_finish_reason_on_a_last_chunk_without_content_survives(
    gateway: FakeGateway,
) -> None:
    result = await recovered(gateway, Script(ROLE, FILTERED, DONE))

    assert result.verdict.ending is Ending.BLOCKED
    assert result.ended.finish_reason == "content_filter"
    assert result.record.finish_reason == "content_filter"
    assert result.served == ["served-1"]


@pytest.mark.parametrize(
    ("came", "shown"),
    [
        (HALF, [Envelope("fake-model"), TextDelta("Half an ans")]),
        (CALL, [Envelope("fake-model"), ToolCallBegan(1, 1)]),
        (USAGE, [Envelope("served-1")]),
        (chunk(reasoning="hm"), [ReasoningDelta("hm")]),
    ],
    ids=["text", "tool call", "usage", "thoughts"],
)
async def test_what_is_progress_is_never_held_back(
    gateway: FakeGateway, came: bytes, shown: list[CallEvent]
) -> None:
    open_stream = Script(came, Stall())

    events = await while_open(gateway, open_stream, 1 + len(shown))

    assert events[1:] == shown


async def test_usage_of_a_silent_stream_is_not_lost(gateway: FakeGateway) -> None:
    result = await recovered(gateway, Script(ROLE, chunk(finish="stop"), USAGE, DONE))

    assert result.verdict.code == "empty_completion"
    assert result.ended.usage.output_tokens == 3


# Buffered calls (requirement D19).


async def test_a_buffered_call_that_is_cut_is_sent_again_and_shows_nothing_of_it(
    gateway: FakeGateway,
) -> None:
    result = await recovered(gateway, CUT, WHOLE, retry=BUFFERED)

    assert result.shown == "All of it"
    assert result.served == ["fake-model"]
    assert result.withdrawn == []
    assert result.decisions == [("reissue", ""), ("none", "whole")]
    assert result.records[0].withdrawn_text == ""
    assert result.records[0].characters == 11
    assert not result.waits[0].withdrew


async def test_a_buffered_call_shows_its_answer_when_it_is_whole(
    gateway: FakeGateway,
) -> None:
    script = Script(
        chunk(reasoning="hm"), HALF, chunk(content="wer"), chunk(finish="stop"), DONE
    )

    result = await recovered(gateway, script, retry=BUFFERED)

    assert result.events[1:4] == [
        Envelope("fake-model"),
        ReasoningDelta("hm"),
        TextDelta("Half an answer"),
    ]


@pytest.mark.parametrize(
    ("scripts", "text"),
    [
        ([CUT, SILENT, SILENT], "Half an ans"),
        ([CUT, Script(chunk(content="Another"), Reset()), SILENT], "Another"),
        ([SILENT, CUT, Script(chunk(content=" "), Reset())], "Half an ans"),
        ([SILENT, SILENT, SILENT], ""),
    ],
)
async def test_the_last_text_of_a_buffered_call_that_fails_is_delivered_at_its_end(
    gateway: FakeGateway, scripts: list[Script], text: str
) -> None:
    result = await recovered(gateway, *scripts, retry=BUFFERED)

    assert result.shown == text
    assert [each.retry_decision for each in result.records] == [
        "reissue",
        "reissue",
        "none",
    ]
    assert result.verdict.code == "truncated"


async def test_a_buffered_call_that_asked_for_a_tool_is_not_sent_again(
    gateway: FakeGateway,
) -> None:
    result = await recovered(gateway, Script(HALF, CALL, Reset()), retry=BUFFERED)

    assert len(gateway.requests) == 1
    assert result.decisions == [("none", "tool_call")]
    assert result.shown == "Half an ans"


async def test_who_leaves_a_buffered_call_can_have_what_it_held(
    gateway: FakeGateway,
) -> None:
    observer = CallObserver()
    gateway.play(CUT)
    running = run_call(
        request_to(gateway.base_url), bounds=PATIENT, retry=BUFFERED, observer=observer
    )

    async with aclosing(running) as call:
        async for event in call:
            assert not isinstance(event, TextDelta)
            if isinstance(event, AttemptRecord):
                break

    assert observer.held == [TextDelta("Half an ans")]


async def test_a_buffered_call_that_asks_for_a_tool_in_the_end_shows_no_draft(
    gateway: FakeGateway,
) -> None:
    asks = Script(CALL, chunk(finish="tool_calls"), DONE)

    result = await recovered(gateway, CUT, asks, retry=BUFFERED)

    assert result.shown == ""
    assert result.decisions == [("reissue", ""), ("none", "whole")]
