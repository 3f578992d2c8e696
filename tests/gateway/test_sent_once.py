"""Calls that are sent once: a tool was asked for, a verdict stands, it was so chosen."""

from dataclasses import replace

import pytest

from tests.fakegateway import (
    DONE,
    FakeGateway,
    Head,
    Reset,
    Script,
    chunk,
    frame,
    reply,
)
from tests.gateway.calling import AGAIN
from tests.gateway.cuts import (
    ARGUMENTS_ONLY,
    CALL,
    CUT,
    HALF,
    NAME_ONLY,
    SILENT,
    WHOLE,
    ending,
    recovered,
)
from threads.core.events import ToolCallBegan
from threads.core.retry import Policy

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
    result = await recovered(gateway, ending(end, NAME_ONLY), WHOLE)

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

    result = await recovered(gateway, CUT, cut, WHOLE)

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

    result = await recovered(gateway, refused, CUT, refused, WHOLE)

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
    result = await recovered(gateway, CUT, WHOLE, retry=policy)

    assert len(gateway.requests) == 1
    assert result.decisions == [("none", reason)]
    assert (result.shown, result.ended.text) == ("Half an ans", "Half an ans")
    assert result.withdrawn == []


async def test_an_agent_that_keeps_what_was_cut_asks_again_where_nothing_came(
    gateway: FakeGateway,
) -> None:
    result = await recovered(gateway, SILENT, WHOLE, retry=KEEPS)

    assert result.ended.text == "All of it"


LATE = replace(AGAIN, waits=(0.2,), window_seconds=0.15)


@pytest.mark.parametrize("came", [(), (HALF,)], ids=["nothing", "text"])
async def test_no_attempt_is_waited_for_beyond_the_window(
    gateway: FakeGateway, came: tuple[bytes, ...]
) -> None:
    result = await recovered(gateway, Script(Head(), *came, Reset()), WHOLE, retry=LATE)

    assert len(gateway.requests) == 1
    assert result.decisions == [("none", "window")]
    assert (result.withdrawn, result.waits) == ([], [])


@pytest.mark.parametrize("where", ["availability", "beside"])
async def test_a_wait_that_is_asked_for_is_kept_or_ends_the_call(
    gateway: FakeGateway, where: str
) -> None:
    def busy(seconds: float) -> Script:
        wait = {"retry_after": seconds}
        more = {"availability": wait} if where == "availability" else wait
        return Script(frame({"error": {"code": 429, "message": "no"} | more}))

    policy = replace(AGAIN, window_seconds=2)
    result = await recovered(gateway, busy(0.1), busy(2.5), WHOLE, retry=policy)

    assert [wait.seconds for wait in result.waits] == [0.1]
    assert result.records[1].wait_ms >= 100
    assert result.decisions[-1] == ("none", "asked_to_wait")
    assert result.verdict.retry_after_seconds == 2.5
