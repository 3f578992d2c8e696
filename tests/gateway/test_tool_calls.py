"""Tool calls: announced at their first fragment, handed over only with proof."""

import pytest

from tests.fakegateway import (
    DONE,
    Close,
    FakeGateway,
    Reset,
    Script,
    Stall,
    chunk,
    frame,
    tool_call,
)
from tests.gateway.calling import answered, called, request_to
from threads.core.events import Envelope, TextDelta, ToolCall, ToolCallBegan
from threads.core.faults import Ending
from threads.gateway.calls import CallBounds

BEGIN = chunk(tool_calls=[tool_call(call_id="a", name="look", arguments='{"q":')])
REST = chunk(tool_calls=[tool_call(arguments="1}")])
CALLS = chunk(finish="tool_calls")
LOOK = ToolCall("a", "look", '{"q":1}')
BOUNDS = CallBounds(first_data_seconds=30, idle_seconds=1)


@pytest.mark.parametrize(
    "script",
    [
        Script(BEGIN, REST, CALLS, DONE),
        Script(BEGIN, REST, chunk(finish="stop"), DONE),
        Script(BEGIN, REST, CALLS, Reset()),
        Script(BEGIN, REST, CALLS, Stall()),
        Script(BEGIN, REST, DONE),
    ],
    ids=["usual", "stop", "reset after", "silence after", "[DONE] only"],
)
async def test_calls_with_proof_are_handed_over(
    gateway: FakeGateway, script: Script
) -> None:
    result = await answered(gateway, script, bounds=BOUNDS)

    assert result.verdict.ending is Ending.COMPLETED
    assert result.ended.tool_calls == (LOOK,)
    assert result.record.output_committed


@pytest.mark.parametrize(
    "script",
    [
        Script(BEGIN, REST),
        Script(BEGIN, REST, Reset()),
        Script(BEGIN, REST, Close()),
        Script(BEGIN, REST, Stall()),
        Script(BEGIN, REST, frame({"error": {"code": 502}}), CALLS, DONE),
        Script(BEGIN, REST, chunk(finish="error"), DONE),
        Script(BEGIN, REST, chunk(finish="odd"), DONE),
        Script(BEGIN, REST, b"data: {no\n\n", CALLS, DONE),
    ],
    ids=["end", "reset", "close", "silence", "error", "finish", "odd", "unreadable"],
)
async def test_whole_calls_without_proof_are_not_handed_over(
    gateway: FakeGateway, script: Script
) -> None:
    result = await answered(gateway, script, bounds=BOUNDS)

    assert result.verdict.ending in (Ending.TRUNCATED, Ending.STALLED, Ending.FAULTED)
    assert result.ended.tool_calls == ()
    assert ToolCallBegan(1, 1) in result.events


async def test_a_call_cut_by_the_output_limit_is_handed_over_as_one_not_to_run(
    gateway: FakeGateway,
) -> None:
    result = await answered(gateway, Script(BEGIN, chunk(finish="length"), DONE))

    assert result.verdict.ending is Ending.LENGTH
    (call,) = result.ended.tool_calls
    assert call.problem == "the arguments are not complete JSON"


async def test_the_first_fragment_is_announced_once_and_in_its_place(
    gateway: FakeGateway,
) -> None:
    second = chunk(tool_calls=[tool_call(1, call_id="b", name="look", arguments="{}")])
    script = Script(chunk(content="Half"), BEGIN, REST, second, CALLS, DONE)

    result = await answered(gateway, script)

    shown = [Envelope("fake-model"), TextDelta("Half"), ToolCallBegan(1, 1)]
    assert result.events[1:4] == shown
    assert result.events.count(ToolCallBegan(1, 1)) == 1
    assert result.ended.tool_calls == (LOOK, ToolCall("b", "look", "{}"))


async def test_tools_are_offered_as_they_were_given(gateway: FakeGateway) -> None:
    tools: list[dict[str, object]] = [{"type": "function", "function": {"name": "f"}}]
    gateway.play(Script(BEGIN, REST, CALLS, DONE))

    await called(request_to(gateway.base_url, tools=tools))

    assert gateway.requests[0].json["tools"] == tools
