"""A call that is tried again: sent again, or regenerated with its text withdrawn."""

import logging
from dataclasses import replace
from itertools import pairwise

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
    reply,
    tool_call,
)
from tests.gateway.calling import AGAIN, PATIENT, Called, answered
from threads.core.events import (
    AttemptStarted,
    Envelope,
    TextDelta,
    ToolCallBegan,
    Withdrawn,
)
from threads.core.faults import Ending
from threads.core.retry import Policy, RetryWait
from threads.gateway.calls import CallBounds

WHOLE = Script(chunk(content="All of it"), chunk(finish="stop"), DONE)
HALF = chunk(content="Half an ans")
HURRIED = CallBounds(first_data_seconds=0.5, idle_seconds=0.3)
"""For calls that fall silent."""

ENDS = {
    "end": (),
    "close": (Close(),),
    "reset": (Reset(),),
    "half a chunk": (Close(b'data: {"choices": [{"delta": {"con'),),
    "silence": (Stall(),),
    "502": (frame({"error": {"code": 502, "message": "no"}}), DONE),
    "429": (frame({"error": {"code": 429, "message": "slow down"}}),),
    "408": (frame({"error": {"code": 408, "message": "late"}}),),
    "overloaded": (frame({"error": {"type": "overloaded_error", "message": "x"}}),),
    "finish": (chunk(finish="error"), DONE),
}
"""Ways in which a stream ends that pass by themselves (requirement D3)."""

VERDICTS = {
    "402": frame({"error": {"code": 402, "message": "no credit"}}),
    "403": frame({"error": {"code": 403, "message": "no"}}),
    "404": frame({"error": {"code": 404, "message": "no such model"}}),
    "401": frame({"error": {"code": 401, "message": "no"}}),
    "unknown": frame({"error": {"message": "odd"}}),
    "final": frame({"error": {"code": 503, "availability": {"retryable": False}}}),
    "unreadable": b"data: {no json\n\n",
    "finish": chunk(finish="odd_end"),
}
NAME_ONLY = chunk(tool_calls=[{"index": 0, "function": {"name": "look"}}])
ARGUMENTS_ONLY = chunk(tool_calls=[tool_call(arguments="{")])
CALL = chunk(tool_calls=[tool_call(call_id="a", name="look", arguments="{}")])

every_end = pytest.mark.parametrize("end", ENDS)


async def recovered(gateway: FakeGateway, *scripts: Script) -> Called:
    """Make a call that may be tried again twice."""
    is_silent = any(Stall() in script.steps for script in scripts)
    bounds = HURRIED if is_silent else PATIENT
    return await answered(gateway, *scripts, bounds=bounds, retry=AGAIN)


def outcomes(called: Called) -> list[str]:
    return [each.outcome for each in called.records]


@every_end
async def test_a_call_that_produced_nothing_is_sent_again_and_nothing_withdrawn(
    gateway: FakeGateway, end: str
) -> None:
    result = await recovered(gateway, Script(*ENDS[end]), WHOLE)

    assert len(gateway.requests) == 2
    assert (result.ended.text, result.shown) == ("All of it", "All of it")
    assert result.verdict.ending is Ending.COMPLETED
    assert result.decisions == [("reissue", ""), ("none", "whole")]
    assert result.withdrawn == []
    assert [wait.withdrew for wait in result.waits] == [False]


@every_end
async def test_a_call_that_was_cut_after_text_is_regenerated(
    gateway: FakeGateway, end: str
) -> None:
    result = await recovered(gateway, Script(HALF, *ENDS[end]), WHOLE)

    first, second = result.records
    fault = result.waits[0].fault
    assert result.events == [
        AttemptStarted(1, 1),
        Envelope("fake-model"),
        TextDelta("Half an ans"),
        Withdrawn(1, 1),
        first,
        RetryWait(1, 2, 3, result.waits[0].seconds, fault, withdrew=True),
        AttemptStarted(1, 2),
        Envelope("fake-model"),
        TextDelta("All of it"),
        second,
        result.ended,
    ]
    assert result.ended.text == "All of it"
    assert (first.withdrawn_text, first.characters) == ("Half an ans", 11)
    assert (fault.code, fault.transient) == (first.code, True)
    assert result.decisions == [("regenerate", ""), ("none", "whole")]
    assert outcomes(result) == ["faulted", "completed"]


async def test_two_faults_and_an_answer_are_three_rows_with_their_own_outcomes(
    gateway: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    result = await recovered(gateway, Script(), Script(HALF, Reset()), WHOLE)

    assert outcomes(result) == ["faulted", "faulted", "completed"]
    assert [(each.call, each.attempt) for each in result.records] == [
        (1, 1),
        (1, 2),
        (1, 3),
    ]
    assert [(w.attempt, w.total) for w in result.waits] == [(2, 3), (3, 3)]
    said = [
        message
        for name, level, message in caplog.record_tuples
        if "[ProviderRetry]" in message and level == logging.WARNING
    ]
    assert [line.split(" in ")[0] for line in said] == [
        "[ProviderRetry] RETRY 1/2",
        "[ProviderRetry] REGENERATE 2/2",
    ]
    assert "11 chars of text and no tool call (truncated)" in said[1]


async def test_three_faults_end_the_call_with_the_last_of_them(
    gateway: FakeGateway,
) -> None:
    busy = Script(*ENDS["429"])

    result = await recovered(gateway, Script(HALF, Reset()), Script(), busy, WHOLE)

    assert len(gateway.requests) == 3
    assert result.verdict.code == "http_429"
    assert result.decisions == [
        ("regenerate", ""),
        ("reissue", ""),
        ("none", "exhausted"),
    ]
    assert result.withdrawn == [(1, 1)]


async def test_the_text_of_the_last_attempt_is_not_withdrawn(
    gateway: FakeGateway,
) -> None:
    result = await recovered(gateway, Script(HALF, Reset()))

    assert result.withdrawn == [(1, 1), (1, 2)]
    assert [each.withdrawn_text for each in result.records] == ["Half an ans"] * 2 + [
        ""
    ]
    assert (result.ended.text, result.verdict.code) == ("Half an ans", "truncated")


@every_end
async def test_a_stream_cut_while_the_model_reasons_is_sent_again(
    gateway: FakeGateway, end: str
) -> None:
    thinking = Script(chunk(reasoning="Let me see"), *ENDS[end])

    result = await recovered(gateway, thinking, WHOLE)

    assert result.decisions == [("reissue", ""), ("none", "whole")]
    # The thoughts were shown: they are taken back, though no text was.
    assert result.withdrawn == [(1, 1)]
    assert not result.waits[0].withdrew
    assert result.records[0].withdrawn_text == ""
    assert (result.thought, result.ended.reasoning) == ("Let me see", "")


async def test_white_space_is_no_text_that_was_read(gateway: FakeGateway) -> None:
    result = await recovered(gateway, Script(chunk(content="\n "), Reset()), WHOLE)

    assert result.decisions[0] == ("reissue", "")
    assert result.withdrawn == [(1, 1)]
    assert result.ended.text == "All of it"


TOOL_CALLS = {
    "name": (NAME_ONLY,),
    "arguments": (ARGUMENTS_ONLY,),
    "whole": (CALL,),
    "after text": (HALF, NAME_ONLY),
    "after thoughts": (chunk(reasoning="hm"), NAME_ONLY),
    "before text": (NAME_ONLY, HALF),
    "legacy": (frame({"choices": [{"delta": {"function_call": {"name": "look"}}}]}),),
}


@pytest.mark.parametrize("end", ["end", "reset", "silence", "502", "429", "finish"])
async def test_a_fault_after_the_name_of_a_tool_is_never_tried_again(
    gateway: FakeGateway, end: str
) -> None:
    result = await recovered(gateway, Script(NAME_ONLY, *ENDS[end]), WHOLE)

    assert len(gateway.requests) == 1
    assert result.decisions == [("none", "tool_call")]
    assert result.ended.tool_calls == ()


@pytest.mark.parametrize("came", TOOL_CALLS)
async def test_one_fragment_of_a_tool_call_forbids_another_attempt(
    gateway: FakeGateway, came: str
) -> None:
    result = await recovered(gateway, Script(*TOOL_CALLS[came], Reset()), WHOLE)

    assert len(gateway.requests) == 1
    assert ToolCallBegan(1, 1) in result.events
    assert (result.withdrawn, result.waits) == ([], [])
    assert result.verdict.code == "truncated"


async def test_a_tool_call_that_comes_in_a_later_attempt_is_the_last_of_it(
    gateway: FakeGateway,
) -> None:
    cut = Script(chunk(content="Let me look"), NAME_ONLY, Reset())

    result = await recovered(gateway, Script(HALF, Reset()), cut, WHOLE)

    assert len(gateway.requests) == 2
    assert result.withdrawn == [(1, 1)]
    assert result.decisions[-1] == ("none", "tool_call")
    assert result.ended.text == "Let me look"


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("text", ["", "Half"])
async def test_a_verdict_stands(gateway: FakeGateway, verdict: str, text: str) -> None:
    failed = Script(chunk(content=text), VERDICTS[verdict], DONE)

    result = await recovered(gateway, failed, WHOLE)

    assert len(gateway.requests) == 1
    assert result.decisions == [("none", "not_transient")]
    assert (result.ended.text, result.shown) == (text, text)
    assert result.withdrawn == []


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_refused_request_is_left_to_the_sdk_and_its_tries_are_counted(
    gateway: FakeGateway, status: int
) -> None:
    refused = reply(status, {"error": "no"}, headers={"retry-after-ms": "1"})

    result = await recovered(gateway, refused)

    assert len(gateway.requests) == 3
    assert result.decisions == [("transport", "refused")]
    assert result.record.transport_retries == 2
    assert (result.waits, result.withdrawn) == ([], [])


async def test_the_sdk_tries_again_in_every_attempt_of_ours(
    gateway: FakeGateway,
) -> None:
    refused = reply(503, {"error": "no"}, headers={"retry-after-ms": "1"})

    result = await recovered(gateway, refused, Script(HALF, Reset()), refused, WHOLE)

    assert [each.transport_retries for each in result.records] == [1, 1]
    assert result.decisions == [("regenerate", ""), ("transport", "whole")]
    assert sum(1 + each.transport_retries for each in result.records) == len(
        gateway.requests
    )


OFF = replace(AGAIN, retries=0)
KEEPS = replace(AGAIN, keeps_cut=True)


@pytest.mark.parametrize(
    ("policy", "reason"), [(OFF, "switched_off"), (KEEPS, "cut_kept")]
)
async def test_a_cut_answer_stands_where_that_was_chosen(
    gateway: FakeGateway, policy: Policy, reason: str
) -> None:
    result = await answered(gateway, Script(HALF, Reset()), WHOLE, retry=policy)

    assert len(gateway.requests) == 1
    assert result.decisions == [("none", reason)]
    assert (result.shown, result.ended.text) == ("Half an ans", "Half an ans")
    assert result.withdrawn == []


async def test_an_agent_that_keeps_what_was_cut_asks_again_where_nothing_came(
    gateway: FakeGateway,
) -> None:
    result = await answered(gateway, Script(Reset()), WHOLE, retry=KEEPS)

    assert result.ended.text == "All of it"


async def test_every_attempt_sends_the_same_bytes(gateway: FakeGateway) -> None:
    await recovered(gateway, Script(HALF, Reset()), Script(), WHOLE)

    assert len(gateway.requests) == 3
    for one, other in pairwise(gateway.requests):
        assert other.body == one.body
        assert other.headers == one.headers
        assert "last-event-id" not in other.headers


LATE = replace(AGAIN, waits=(0.2,), window_seconds=0.15)


@pytest.mark.parametrize("came", [(), (HALF,)], ids=["nothing", "text"])
async def test_no_attempt_is_waited_for_beyond_the_window(
    gateway: FakeGateway, came: tuple[bytes, ...]
) -> None:
    result = await answered(gateway, Script(*came, Reset()), WHOLE, retry=LATE)

    assert len(gateway.requests) == 1
    assert result.decisions == [("none", "window")]
    assert (result.withdrawn, result.waits) == ([], [])


async def test_the_window_is_counted_from_the_first_attempt(
    gateway: FakeGateway,
) -> None:
    slow = replace(AGAIN, waits=(0.3,), window_seconds=0.5)

    result = await answered(gateway, Script(), retry=slow)

    assert result.decisions == [("reissue", ""), ("none", "window")]


@pytest.mark.parametrize("where", ["availability", "beside"])
async def test_a_wait_that_is_asked_for_is_kept_or_ends_the_call(
    gateway: FakeGateway, where: str
) -> None:
    def busy(seconds: float) -> Script:
        wait = {"retry_after": seconds}
        more = {"availability": wait} if where == "availability" else wait
        return Script(frame({"error": {"code": 429, "message": "no"} | more}))

    result = await recovered(gateway, busy(0.1), busy(3600), WHOLE)

    assert [wait.seconds for wait in result.waits] == [0.1]
    assert result.records[1].wait_ms >= 100
    assert result.decisions[-1] == ("none", "asked_to_wait")
    assert result.verdict.retry_after_seconds == 3600
