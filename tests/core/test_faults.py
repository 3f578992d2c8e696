"""The one classifier: facts of an attempt in, one verdict out."""

import pytest

from tests.cases import cases
from tests.core.arrivals import AFTER_DONE, TRANSPORT_ENDS
from threads.core.faults import (
    WHOLE,
    Arrival,
    Condition,
    Ending,
    Facts,
    classify,
)


@cases(
    ("arrival", "code", "ending", "condition", "transient"),
    [
        (
            Arrival.SILENT_START,
            "stalled_before_start",
            Ending.STALLED,
            Condition.PROVIDER,
            True,
        ),
        (
            Arrival.SILENT_MID,
            "stalled_mid_answer",
            Ending.STALLED,
            Condition.PROVIDER,
            True,
        ),
        (Arrival.ENDED, "truncated", Ending.TRUNCATED, Condition.NETWORK, True),
        (Arrival.BROKEN, "truncated", Ending.TRUNCATED, Condition.NETWORK, True),
        (
            Arrival.UNDECODABLE,
            "transport_decode",
            Ending.TRUNCATED,
            Condition.NETWORK,
            False,
        ),
        (
            Arrival.UNREADABLE,
            "stream_unreadable",
            Ending.FAULTED,
            Condition.PROVIDER,
            False,
        ),
        (
            Arrival.NOT_A_STREAM,
            "not_a_stream",
            Ending.FAULTED,
            Condition.OUR_CONFIG,
            False,
        ),
        (
            Arrival.UNREACHABLE,
            "connect_failed",
            Ending.REFUSED,
            Condition.NETWORK,
            True,
        ),
        (
            Arrival.STREAMED_ERROR,
            "stream_fault_unknown",
            Ending.FAULTED,
            Condition.UNKNOWN,
            False,
        ),
    ],
)
@cases("has_text", [True, False])
def test_an_end_without_proof_is_named_by_how_it_came(
    arrival: Arrival,
    code: str,
    ending: Ending,
    condition: Condition,
    transient: bool,
    has_text: bool,
) -> None:
    verdict = classify(Facts(arrival, has_text=has_text))

    assert (verdict.code, verdict.ending) == (code, ending)
    assert (verdict.condition, verdict.transient) == (condition, transient)


@cases("arrival", TRANSPORT_ENDS)
@cases(
    ("finish", "ending", "code"),
    [
        ("stop", Ending.COMPLETED, ""),
        ("STOP", Ending.COMPLETED, ""),
        ("tool_calls", Ending.COMPLETED, ""),
        ("function_call", Ending.COMPLETED, ""),
        ("end_turn", Ending.COMPLETED, ""),
        ("eos", Ending.COMPLETED, ""),
        ("stop_sequence", Ending.COMPLETED, ""),
        ("length", Ending.LENGTH, "output_limit"),
        ("MAX_TOKENS", Ending.LENGTH, "output_limit"),
        ("content_filter", Ending.CONTENT_FILTER, "content_filter"),
        ("content_filter: SAFETY", Ending.CONTENT_FILTER, "content_filter"),
    ],
)
def test_after_a_finish_reason_the_transport_may_do_what_it_likes(
    arrival: Arrival, finish: str, ending: Ending, code: str
) -> None:
    verdict = classify(Facts(arrival, finish_reason=finish, has_text=True))

    assert (verdict.ending, verdict.code) == (ending, code)
    assert verdict.ending in WHOLE
    assert not verdict.transient


@cases("arrival", AFTER_DONE)
@cases("output", ["has_text", "has_tool_calls"])
def test_done_alone_proves_completion(arrival: Arrival, output: str) -> None:
    facts = Facts(
        arrival,
        done=True,
        has_text=output == "has_text",
        has_tool_calls=output == "has_tool_calls",
    )

    assert classify(facts).ending is Ending.COMPLETED


@pytest.mark.parametrize(
    ("finish", "native", "code", "ending"),
    [
        ("stop", "", "empty_completion", Ending.EMPTY),
        ("", "", "empty_completion", Ending.EMPTY),
        ("length", "", "empty_at_limit", Ending.EMPTY),
        ("content_filter", "", "request_blocked", Ending.BLOCKED),
        ("stop", "network_error", "finish_error", Ending.FAULTED),
        ("stop", "ERROR", "finish_error", Ending.FAULTED),
    ],
)
def test_a_proven_end_without_output_is_no_answer(
    finish: str, native: str, code: str, ending: Ending
) -> None:
    verdict = classify(
        Facts(
            Arrival.ENDED, finish_reason=finish, native_finish_reason=native, done=True
        )
    )

    assert (verdict.code, verdict.ending) == (code, ending)


@cases(
    ("finish", "code", "condition", "transient"),
    [
        ("error", "finish_error", Condition.PROVIDER, True),
        ("ERROR", "finish_error", Condition.PROVIDER, True),
        ("model_overloaded", "finish_unknown", Condition.UNKNOWN, False),
        ("MALFORMED_FUNCTION_CALL", "finish_unknown", Condition.UNKNOWN, False),
        ("sensitive", "answer_blocked", Condition.REQUEST, False),
        ("SAFETY", "answer_blocked", Condition.REQUEST, False),
    ],
)
@cases("has_text", [True, False])
def test_a_bad_finish_reason_faults_with_or_without_text(
    finish: str, code: str, condition: Condition, transient: bool, has_text: bool
) -> None:
    facts = Facts(Arrival.ENDED, finish_reason=finish, done=True, has_text=has_text)

    verdict = classify(facts)

    assert verdict.ending is Ending.FAULTED
    assert (verdict.code, verdict.condition) == (code, condition)
    assert verdict.transient is transient


def test_a_bad_finish_reason_is_itself_the_reason() -> None:
    verdict = classify(
        Facts(
            Arrival.ENDED,
            finish_reason="error",
            native_finish_reason="MALFORMED_FUNCTION_CALL",
        )
    )

    assert verdict.provider_reason == "MALFORMED_FUNCTION_CALL error"


def test_an_error_object_beside_finish_error_gives_the_reason() -> None:
    body = {"error": {"message": "boom", "metadata": {"provider_name": "P"}}}

    verdict = classify(
        Facts(Arrival.STREAMED_ERROR, finish_reason="error", has_text=True, body=body)
    )

    assert verdict.code == "finish_error"
    assert (verdict.provider, verdict.provider_reason) == ("P", "boom")


@cases(
    ("words", "code"),
    [
        ("This model's maximum context length is 8192", "context_too_long"),
        ("Unsupported parameter: 'x'", "provider_config_error"),
        ("Missing Authentication header", "http_401"),
        ("exceeded your current quota", "quota_exhausted"),
        ("Request blocked by our guardrail", "request_blocked"),
        ("The model `x` does not exist", "model_not_found"),
        ("Connection error.", "provider_network_error"),
        ("read ECONNRESET", "provider_network_error"),
        ("socket hang up", "provider_network_error"),
        ("fetch failed", "provider_network_error"),
        ("certificate verify failed", "connect_config"),
        ("Too many requests", "http_429"),
        ("The engine is currently unavailable", "overloaded"),
        ("Upstream timed out", "http_408"),
        ("EngineCore died", "stream_fault_unknown"),
        ("port 4290 of 5029", "stream_fault_unknown"),
    ],
)
def test_words_alone_decide_only_what_they_establish(words: str, code: str) -> None:
    verdict = classify(Facts(Arrival.STREAMED_ERROR, body={"error": words}))

    assert verdict.code == code
    assert verdict.ending in (Ending.FAULTED, Ending.BLOCKED)
    assert verdict.provider_reason == words


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("ConnectError All connection attempts failed", "connect_failed"),
        ("APITimeoutError Request timed out. < ConnectTimeout", "connect_failed"),
        ("RemoteProtocolError illegal status line: 'blocked'", "connect_failed"),
        ("RemoteProtocolError illegal status line: '429 too many", "connect_failed"),
        ("ConnectError [Errno -2] Name or service not known", "connect_config"),
        ("ConnectError certificate verify failed", "connect_config"),
        ("UnsupportedProtocol Request URL is missing", "connect_config"),
        ("invalid url InvalidURL", "connect_config"),
    ],
)
def test_a_connection_that_never_was_is_the_network_or_the_address(
    words: str, code: str
) -> None:
    verdict = classify(Facts(Arrival.UNREACHABLE, words=words))

    assert (verdict.code, verdict.ending) == (code, Ending.REFUSED)
    assert verdict.provider_reason == ""


def test_a_json_error_in_place_of_a_stream_is_read_like_a_refusal() -> None:
    body = {"error": {"code": 429, "message": "slow"}}

    assert classify(Facts(Arrival.NOT_A_STREAM, body=body)).code == "http_429"
    assert classify(Facts(Arrival.NOT_A_STREAM, body="<p>hi")).code == "not_a_stream"


def test_the_status_is_handed_to_the_sentence_and_the_key_to_nobody() -> None:
    body = {"error": {"message": "key hunter22 is bad", "retry_after": 9}}

    verdict = classify(
        Facts(Arrival.STATUS, http_status=401, body=body, secrets=("hunter22",))
    )

    assert verdict.params == {"status": "401"}
    assert verdict.retry_after_seconds == 9.0
    assert verdict.provider_reason == "key [key] is bad"


def test_a_route_that_is_missing_for_now_is_not_our_configuration() -> None:
    availability = {"code": "no_endpoints", "retryable": True}

    verdict = classify(
        Facts(
            Arrival.STATUS,
            http_status=404,
            body={"error": {"message": "none", "availability": availability}},
        )
    )

    assert (verdict.code, verdict.transient) == ("overloaded", True)
