"""What is heard first where several things speak of how a call ended."""

from dataclasses import replace

import pytest

from tests.core.arrivals import AFTER_DONE, TRANSPORT_ENDS
from threads.core.faults import Arrival, Ending, Facts, classify

SLOW = {"error": {"code": 429, "message": "slow"}}


@pytest.mark.parametrize("arrival", TRANSPORT_ENDS)
def test_an_error_beside_the_events_says_why_an_unproven_end_came(
    arrival: Arrival,
) -> None:
    facts = Facts(arrival, body=SLOW, has_text=True)

    verdict = classify(facts)

    assert (verdict.code, verdict.ending) == ("http_429", Ending.FAULTED)
    assert classify(replace(facts, body=None, http_status=429)).code == "http_429"


@pytest.mark.parametrize("arrival", AFTER_DONE)
def test_an_error_beside_the_events_changes_no_whole_answer(arrival: Arrival) -> None:
    facts = Facts(arrival, body=SLOW, http_status=500, has_text=True)

    assert classify(replace(facts, done=True)).ending is Ending.COMPLETED
    assert classify(replace(facts, finish_reason="stop")).ending is Ending.COMPLETED


def test_an_error_beside_the_events_says_why_nothing_was_written() -> None:
    facts = Facts(Arrival.ENDED, done=True, finish_reason="stop", body=SLOW)

    assert classify(facts).code == "http_429"
    assert classify(replace(facts, body={"note": "x"})).code == "empty_completion"


def test_an_unreadable_event_came_before_done_and_after_a_finish_reason() -> None:
    facts = Facts(Arrival.UNREADABLE, done=True, has_text=True)

    assert classify(facts).code == "stream_unreadable"
    assert classify(replace(facts, finish_reason="stop")).ending is Ending.COMPLETED


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("[403] Request blocked: PII detected", "request_blocked"),
        ("Error code: 429 - slow", "http_429"),
        ("status 503", "overloaded"),
        ("status_code=401", "http_401"),
        ("HTTP/1.1 502 Bad Gateway", "http_5xx"),
        ("502 Bad Gateway", "http_5xx"),
        ("http 402: pay", "quota_exhausted"),
        ("error 404", "model_not_found"),
        ("port 4290 of 5029", "stream_fault_unknown"),
        ("512 tokens", "stream_fault_unknown"),
        ("429 of them", "stream_fault_unknown"),
        ("error 4.29", "stream_fault_unknown"),
        ("code 4001", "stream_fault_unknown"),
        ("status 200", "stream_fault_unknown"),
    ],
)
def test_a_number_counts_where_words_present_it_as_a_status(
    words: str, code: str
) -> None:
    assert classify(Facts(Arrival.STREAMED_ERROR, body={"error": words})).code == code


@pytest.mark.parametrize(
    "words",
    ["Connection error.", "Too many requests", "overloaded", "timed out", "500"],
)
@pytest.mark.parametrize("name", ["invalid_request_error", "permission_denied"])
def test_words_make_nothing_transient_beside_a_name_that_we_know(
    words: str, name: str
) -> None:
    body = {"error": {"type": name, "message": words}}

    assert not classify(Facts(Arrival.STREAMED_ERROR, body=body)).transient


@pytest.mark.parametrize("status", [None, 400, 403, 404, 409, 418, 429, 500, 503])
def test_a_gateways_word_on_waiting_and_our_sentence_agree(status: int | None) -> None:
    error = {"message": "x", "availability": {"retryable": False}}

    verdict = classify(
        Facts(Arrival.STREAMED_ERROR, http_status=status, body={"error": error})
    )

    assert not verdict.transient
    if status in (429, 500, 503):
        assert verdict.sentence_key == "provider.refused"


@pytest.mark.parametrize("status", [None, 403, 404, 409, 418])
def test_a_gateway_that_says_it_passes_names_its_own_state(status: int | None) -> None:
    error = {"message": "x", "availability": {"retryable": True, "retry_after": 40}}

    verdict = classify(
        Facts(Arrival.STREAMED_ERROR, http_status=status, body={"error": error})
    )

    assert (verdict.code, verdict.transient) == ("overloaded", True)
    assert verdict.retry_after_seconds == 40.0


def test_a_line_between_the_events_is_a_reason_and_a_torn_event_is_none() -> None:
    said = classify(Facts(Arrival.ENDED, words="upstream gone"))
    page = classify(Facts(Arrival.ENDED, words="<h1>502 Bad Gateway</h1>"))
    torn = classify(Facts(Arrival.ENDED, words='my secret"}}'))
    chain = classify(Facts(Arrival.BROKEN, words="ReadError at 10.0.0.1"))

    assert said.provider_reason == "upstream gone"
    assert page.provider_reason == "502 Bad Gateway"
    assert torn.provider_reason == chain.provider_reason == ""
    assert {v.code for v in (said, page, torn, chain)} == {"truncated"}
