"""What a stream's events prove, whatever order they come in."""

import pytest

from tests.cases import cases
from threads.core.events import (
    Envelope,
    ErrorReport,
    Finish,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageReport,
    carries_output,
)
from threads.core.evidence import Evidence, StreamEnd
from threads.core.faults import Arrival, Ending, classify

TEXT = TextDelta("Half")
CALL = ToolCallDelta(0, "call_a", "look", "{}")
STOP = Finish("stop")
BOOM = ErrorReport({"error": {"code": 502, "message": "boom"}})
USAGE = UsageReport(3, 5)


def evidence_of(*chunks: list[StreamEvent], done: bool = False) -> Evidence:
    evidence = Evidence()
    for chunk in chunks:
        evidence.feed_chunk(chunk)
    evidence.done = done
    return evidence


def ending_of(
    *chunks: list[StreamEvent], done: bool = False, arrival: Arrival = Arrival.ENDED
) -> Ending:
    facts = evidence_of(*chunks, done=done).facts(StreamEnd(arrival))
    return classify(facts).ending


@cases(
    ("chunks", "done", "ending"),
    [
        ([[TEXT], [STOP]], True, Ending.COMPLETED),
        ([[TEXT], [STOP]], False, Ending.COMPLETED),
        ([[TEXT, STOP]], False, Ending.COMPLETED),
        ([[TEXT]], True, Ending.COMPLETED),
        ([[CALL], [STOP]], False, Ending.COMPLETED),
        ([[TEXT], [STOP], [STOP]], True, Ending.COMPLETED),
        ([[TEXT], [STOP], [Finish("error")]], True, Ending.COMPLETED),
        ([[TEXT], [STOP], [Finish("length")]], True, Ending.COMPLETED),
        ([[TEXT], [Finish("length")], [STOP]], True, Ending.LENGTH),
        ([[TEXT], [Finish("error")], [STOP]], True, Ending.FAULTED),
        ([[STOP], [TEXT]], True, Ending.COMPLETED),
        ([[TEXT], [STOP], [BOOM]], False, Ending.COMPLETED),
        ([[TEXT], [BOOM], [STOP]], True, Ending.FAULTED),
        ([[TEXT, STOP, BOOM]], True, Ending.FAULTED),
        ([[TEXT, BOOM, STOP]], True, Ending.FAULTED),
        ([[TEXT, Finish("error"), BOOM]], True, Ending.FAULTED),
        ([[TEXT], [BOOM]], True, Ending.FAULTED),
        ([[BOOM]], True, Ending.FAULTED),
        ([[TEXT]], False, Ending.TRUNCATED),
        ([[CALL]], False, Ending.TRUNCATED),
        ([], False, Ending.TRUNCATED),
        ([], True, Ending.EMPTY),
        ([[STOP]], True, Ending.EMPTY),
        ([[TextDelta(" \n")], [STOP]], True, Ending.EMPTY),
        ([[ReasoningDelta("hm")], [STOP]], True, Ending.EMPTY),
        ([[USAGE], [STOP]], True, Ending.EMPTY),
        ([[ReasoningDelta("hm")], [Finish("length")]], True, Ending.EMPTY),
    ],
)
def test_what_came_first_decides(
    chunks: list[list[StreamEvent]], done: bool, ending: Ending
) -> None:
    assert ending_of(*chunks, done=done) is ending


@pytest.mark.parametrize(
    "arrival", [Arrival.BROKEN, Arrival.SILENT_MID, Arrival.UNREADABLE]
)
def test_a_reset_or_silence_after_the_finish_reason_changes_nothing(
    arrival: Arrival,
) -> None:
    assert ending_of([TEXT], [STOP], arrival=arrival) is Ending.COMPLETED


def test_the_first_error_stands() -> None:
    later = ErrorReport({"error": {"code": 401, "message": "later"}})

    facts = evidence_of([BOOM], [later]).facts(StreamEnd(Arrival.BROKEN))

    assert facts.arrival is Arrival.STREAMED_ERROR
    assert facts.body == BOOM.body


def test_an_error_keeps_the_status_that_came_beside_it() -> None:
    report = ErrorReport({"error": "slow"}, 429)

    facts = evidence_of([report]).facts(StreamEnd(Arrival.ENDED, words="ignored"))

    assert (facts.http_status, facts.words) == (429, "")


def test_without_an_error_the_transports_own_facts_are_handed_on() -> None:
    end = StreamEnd(
        Arrival.STATUS, http_status=500, body="x", words="y", headers={"a": "b"}
    )

    facts = Evidence().facts(end, secrets=("key",))

    assert (facts.http_status, facts.body, facts.words) == (500, "x", "y")
    assert (facts.headers, facts.secrets) == ({"a": "b"}, ("key",))


def test_the_native_finish_reason_is_kept_with_its_finish_reason() -> None:
    finish = Finish("error", "MALFORMED_FUNCTION_CALL")

    facts = evidence_of([finish]).facts(StreamEnd(Arrival.ENDED))

    assert facts.finish_reason == "error"
    assert facts.native_finish_reason == "MALFORMED_FUNCTION_CALL"


@pytest.mark.parametrize(
    ("chunks", "done", "settled"),
    [
        ([[TEXT]], False, False),
        ([[TEXT], [STOP]], False, True),
        ([[TEXT], [Finish("error")]], False, True),
        ([[TEXT]], True, True),
        ([[BOOM]], False, False),
    ],
)
def test_a_stream_is_settled_once_its_end_was_said(
    chunks: list[list[StreamEvent]], done: bool, settled: bool
) -> None:
    assert evidence_of(*chunks, done=done).is_settled is settled


def test_chunks_before_the_first_output_are_counted_as_silent() -> None:
    evidence = evidence_of(
        [Envelope("m")], [ReasoningDelta("hm")], [TEXT], [Envelope("m")], [STOP]
    )

    assert (evidence.chunks, evidence.silent_updates) == (5, 2)
    assert evidence.has_output
    assert evidence.has_reasoning
    assert evidence.has_text
    assert not evidence.has_tool_calls


@pytest.mark.parametrize(
    ("event", "output"),
    [
        (TEXT, True),
        (TextDelta(""), False),
        (CALL, True),
        (USAGE, True),
        (ReasoningDelta("hm"), False),
        (STOP, False),
        (BOOM, False),
        (Envelope("m"), False),
    ],
)
def test_reasoning_is_progress_but_no_output(event: StreamEvent, output: bool) -> None:
    assert carries_output(event) is output
