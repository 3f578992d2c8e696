"""Calls of several models: the next one is asked only where nothing has come."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

import pytest

from tests.fakegateway import FakeGateway, Head, Reset, Script, chunk, reply
from tests.gateway.calling import AGAIN, PATIENT, Called, request_to, until
from tests.gateway.cuts import (
    ARGUMENTS_ONLY,
    CUT,
    HALF,
    HURRIED,
    NAME_ONLY,
    SILENT,
    WHOLE,
    ending,
)
from threads.core.events import AttemptStarted, Withdrawn
from threads.core.faults import Ending
from threads.core.retry import ONCE, Policy, RetryWait
from threads.gateway.calls import CallEnded, CallObserver, Target, run_call

ROUTE = replace(AGAIN, advances_on_refusal=True)
TOOL: dict[str, object] = {"type": "function", "function": {"name": "look"}}
AT_ONCE = {"x-should-retry": "false"}

THEIRS = {
    "401": reply(401, {"error": {"code": "invalid_api_key"}}),
    "402": reply(402, {"error": {"message": "Insufficient credits"}}),
    "404": reply(404, {"error": {"code": "model_not_found"}}),
    "429": reply(429, {"error": {"message": "slow down"}}, headers=AT_ONCE),
    "503": reply(503, {"error": {"message": "busy"}}, headers=AT_ONCE),
}
"""Refusals that speak of a model, its provider or its account."""

OURS = {
    "400": reply(400, {"error": {"message": "bad request"}}),
    "too long": reply(400, {"error": {"code": "context_length_exceeded"}}),
    "blocked": reply(400, {"error": {"code": "content_filter"}}),
    "unknown": reply(418, {}),
}
"""Refusals that go with the request, whoever is asked; and one that says nothing."""


@pytest.fixture
async def second() -> AsyncIterator[FakeGateway]:
    async with FakeGateway() as gateway:
        yield gateway


async def routed(
    first: FakeGateway, second: FakeGateway, *, policy: Policy = ROUTE
) -> Called:
    """Ask the first gateway's model, and the second's where the route goes on."""
    request = request_to(first.base_url, key="sk-first", tools=[TOOL])
    after = replace(
        request_to(second.base_url, key="sk-second", tools=[TOOL]), model="another"
    )
    running = run_call(
        request, bounds=HURRIED, retry=policy, then=[Target(after, PATIENT)]
    )
    async with aclosing(running) as call:
        return Called([event async for event in call])


@pytest.mark.parametrize("end", ["end", "reset", "silence", "502", "finish"])
@pytest.mark.parametrize("came", ["", "thoughts"])
async def test_what_brought_nothing_is_asked_of_the_next_model_in_the_same_words(
    gateway: FakeGateway,
    second: FakeGateway,
    end: str,
    came: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway.play(ending(end, *([chunk(reasoning="hm")] if came else [])))
    second.play(WHOLE)

    with caplog.at_level(logging.WARNING, logger="threads"):
        result = await routed(gateway, second, policy=AGAIN)

    (sent,), (again,) = gateway.requests, second.requests
    assert again.json == sent.json | {"model": "another"}
    assert again.headers["authorization"] == "Bearer sk-second"
    assert result.decisions == [("fallback", "exhausted"), ("none", "whole")]
    assert [each.model_requested for each in result.records] == [
        "some-model",
        "another",
    ]
    assert [each.attempt for each in result.records] == [1, 2]
    assert (result.shown, result.verdict.ending) == ("All of it", Ending.COMPLETED)
    fault = result.waits[0].fault
    assert result.waits == [
        RetryWait(1, 2, 3, 0.0, fault, withdrew=False, model="another")
    ]
    assert [e for e in result.events if isinstance(e, AttemptStarted)] == [
        AttemptStarted(1, 1),
        AttemptStarted(1, 2, asked=1),
    ]
    assert result.withdrawn == ([(1, 1)] if came else [])
    assert "[ProviderRetry] FALLBACK some-model -> another" in caplog.text


@pytest.mark.parametrize("refusal", THEIRS)
async def test_a_refusal_of_one_model_is_no_refusal_of_the_next(
    gateway: FakeGateway, second: FakeGateway, refusal: str
) -> None:
    gateway.play(THEIRS[refusal])
    second.play(WHOLE)

    result = await routed(gateway, second)

    assert [decision for decision, _ in result.decisions] == ["fallback", "none"]
    assert result.records[0].ending == "refused"
    assert result.ended.text == "All of it"


@pytest.mark.parametrize("refusal", [*OURS, *THEIRS])
async def test_a_refusal_is_the_end_where_the_request_or_the_policy_says_so(
    gateway: FakeGateway, second: FakeGateway, refusal: str
) -> None:
    gateway.play((OURS | THEIRS)[refusal])

    result = await routed(gateway, second, policy=ROUTE if refusal in OURS else AGAIN)

    assert (len(gateway.requests), len(second.requests)) == (1, 0)
    assert result.decisions[0][0] == "none"


@pytest.mark.parametrize(
    "script",
    [
        Script(Head(), NAME_ONLY, Reset()),
        Script(Head(), ARGUMENTS_ONLY, Reset()),
        Script(Head(), HALF, NAME_ONLY, Reset()),
        Script(Head(), NAME_ONLY, *ending("502").steps),
    ],
    ids=["name", "arguments", "text and name", "fault"],
)
async def test_one_fragment_of_a_tool_call_ends_the_route(
    gateway: FakeGateway, second: FakeGateway, script: Script
) -> None:
    gateway.play(script)

    result = await routed(gateway, second)

    assert (len(gateway.requests), len(second.requests)) == (1, 0)
    assert result.decisions == [("none", "tool_call")]


async def test_after_one_character_of_text_only_its_own_model_is_asked(
    gateway: FakeGateway, second: FakeGateway
) -> None:
    one = Script(Head(), chunk(content="H"), Reset())
    gateway.play(one, SILENT, SILENT)

    result = await routed(gateway, second)

    assert (len(gateway.requests), len(second.requests)) == (3, 0)
    assert result.decisions == [
        ("regenerate", ""),
        ("reissue", ""),
        ("none", "exhausted"),
    ]
    assert result.withdrawn == [(1, 1)]


async def test_a_model_is_tried_as_often_as_the_route_says_and_all_stay_in_bounds(
    gateway: FakeGateway, second: FakeGateway
) -> None:
    gateway.play(SILENT, SILENT)
    second.play(SILENT, CUT, WHOLE)

    result = await routed(gateway, second, policy=replace(ROUTE, tries=2))

    assert (len(gateway.requests), len(second.requests)) == (2, 1)
    assert result.decisions == [
        ("reissue", ""),
        ("fallback", "exhausted"),
        ("none", "exhausted"),
    ]
    assert (result.verdict.code, result.ended.record.model_requested) == (
        "truncated",
        "another",
    )


async def test_where_nothing_is_tried_again_each_model_is_still_asked_once(
    gateway: FakeGateway, second: FakeGateway
) -> None:
    gateway.play(SILENT)
    second.play(SILENT)

    result = await routed(gateway, second, policy=replace(ONCE, window_seconds=60))

    assert result.decisions == [
        ("fallback", "switched_off"),
        ("none", "switched_off"),
    ]


async def test_a_stop_while_the_second_model_is_asked_ends_the_route_there(
    gateway: FakeGateway, second: FakeGateway
) -> None:
    gateway.play(SILENT)
    second.play(ending("silence"))
    observer = CallObserver()
    targets = [
        Target(request_to(each.base_url), PATIENT) for each in (gateway, second, second)
    ]

    async def consume() -> list[object]:
        running = run_call(
            targets[0].request,
            bounds=PATIENT,
            retry=ROUTE,
            observer=observer,
            then=targets[1:],
        )
        async with aclosing(running) as call:
            return [event async for event in call]

    consumer = asyncio.create_task(consume())
    await until(lambda: bool(second.requests))
    consumer.cancel()
    await asyncio.wait({consumer}, timeout=10)
    record = observer.record()

    assert consumer.cancelled()
    assert record is not None
    assert (record.attempt, record.retry_reason) == (2, "stopped")
    assert (len(gateway.requests), len(second.requests)) == (1, 1)


async def test_a_call_of_one_model_has_no_hidden_second_one(
    gateway: FakeGateway, second: FakeGateway
) -> None:
    gateway.play(THEIRS["503"])
    running = run_call(request_to(gateway.base_url), bounds=PATIENT, retry=ROUTE)

    async with aclosing(running) as call:
        events = [event async for event in call]

    assert isinstance(events[-1], CallEnded)
    assert not [e for e in events if isinstance(e, RetryWait | Withdrawn)]
    assert events[-1].record.retry_decision == "none"
