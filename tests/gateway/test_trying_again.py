"""A call that is tried again: sent again, or regenerated with its text withdrawn."""

import logging
from itertools import pairwise

import pytest

from tests.fakegateway import DONE, FakeGateway, Reset, Script, chunk
from tests.gateway.calling import Called
from tests.gateway.cuts import CUT, HALF, SILENT, WHOLE, ending, every_end, recovered
from threads.core.events import (
    AttemptStarted,
    Envelope,
    TextDelta,
    Withdrawn,
)
from threads.core.faults import Ending
from threads.core.retry import RetryWait


def outcomes(called: Called) -> list[str]:
    return [each.outcome for each in called.records]


@every_end
async def test_a_call_that_produced_nothing_is_sent_again_and_nothing_withdrawn(
    gateway: FakeGateway, end: str
) -> None:
    result = await recovered(gateway, ending(end), WHOLE)

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
    result = await recovered(gateway, ending(end, HALF), WHOLE)

    first, second = result.records
    fault = result.waits[0].fault
    assert result.events == [
        AttemptStarted(1, 1),
        Envelope("fake-model"),
        TextDelta("Half an ans"),
        Withdrawn(1, 1),
        RetryWait(1, 2, 3, result.waits[0].seconds, fault, withdrew=True),
        first,
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
    result = await recovered(gateway, SILENT, CUT, WHOLE)

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
    busy = ending("429")

    result = await recovered(gateway, CUT, SILENT, busy, WHOLE)

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
    result = await recovered(gateway, CUT)

    assert result.withdrawn == [(1, 1), (1, 2)]
    assert [each.withdrawn_text for each in result.records] == ["Half an ans"] * 2 + [
        ""
    ]
    assert (result.ended.text, result.verdict.code) == ("Half an ans", "truncated")


@every_end
async def test_a_stream_cut_while_the_model_reasons_is_sent_again(
    gateway: FakeGateway, end: str
) -> None:
    thinking = ending(end, chunk(reasoning="Let me see"))

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


async def test_every_attempt_sends_the_same_bytes(gateway: FakeGateway) -> None:
    await recovered(gateway, CUT, SILENT, WHOLE)

    assert len(gateway.requests) == 3
    for one, other in pairwise(gateway.requests):
        assert other.body == one.body
        assert other.headers == one.headers
        assert "last-event-id" not in other.headers


USAGE = chunk(usage={"prompt_tokens": 7, "completion_tokens": 3})


def tokens(called: Called) -> list[tuple[str, int | None, int | None]]:
    return [
        (each.usage_source, each.input_tokens, each.output_tokens)
        for each in called.records
    ]


async def test_a_cut_attempt_keeps_its_own_usage(gateway: FakeGateway) -> None:
    more = chunk(usage={"prompt_tokens": 7, "completion_tokens": 5})
    counted = Script(USAGE, HALF, more, Reset())
    answer = Script(chunk(content="All"), chunk(finish="stop"), USAGE, DONE)

    result = await recovered(gateway, counted, answer)

    assert tokens(result) == [("provider", 7, 5), ("provider", 7, 3)]
    assert result.ended.usage.output_tokens == 3


async def test_what_was_cut_before_it_was_counted_is_estimated_and_said_to_be(
    gateway: FakeGateway,
) -> None:
    thinking = Script(chunk(reasoning="Let me see"), Reset())

    result = await recovered(gateway, CUT, thinking, WHOLE)

    sources = [source for source, _, _ in tokens(result)]
    assert sources == ["estimated", "estimated", "unknown"]
    assert [made for _, _, made in tokens(result)] == [3, 3, None]
    given = {given for _, given, _ in tokens(result)[:2]}
    assert len(given) == 1
    assert min(each or 0 for each in given) > 0


async def test_of_an_attempt_in_which_nothing_came_nothing_is_estimated(
    gateway: FakeGateway,
) -> None:
    result = await recovered(gateway, SILENT, Script(chunk(), Reset()), WHOLE)

    assert tokens(result) == [("unknown", None, None)] * 3


async def test_usage_alone_is_nothing_that_was_read(gateway: FakeGateway) -> None:
    result = await recovered(gateway, Script(USAGE, Reset()), WHOLE)

    assert result.decisions[0] == ("reissue", "")
    assert result.withdrawn == []
    assert tokens(result)[0] == ("provider", 7, 3)
