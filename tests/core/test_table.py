"""The table is whole: its rows agree with each other and each can be reached."""

import re

from tests.cases import cases
from tests.core.dialects import ROWS
from threads.core.faults import (
    Arrival,
    Condition,
    Ending,
    Facts,
    KeyEffect,
    classify,
)
from threads.core.table import (
    BLOCKING_FINISH_REASONS,
    CODES,
    ERRORS,
    FINISH_REASONS,
    UNKNOWN_CODES,
    Error,
    by_status,
)

ROWS_OF_OTHERS = {
    "missing_key",
    *(f"context_too_long.{what}" for what in ("message", "results", "site")),
}
"""Rows of what is found before anything is sent."""

ENDS = [
    Facts(Arrival.ENDED),
    Facts(Arrival.UNDECODABLE),
    Facts(Arrival.SILENT_START),
    Facts(Arrival.SILENT_START, keepalives=1),
    Facts(Arrival.SILENT_MID),
    Facts(Arrival.SILENT_MID, keepalives=1),
    Facts(Arrival.UNREADABLE),
    Facts(Arrival.NOT_A_STREAM),
    Facts(Arrival.STREAMED_ERROR),
    Facts(Arrival.UNREACHABLE),
    Facts(Arrival.UNREACHABLE, words="name or service not known"),
    Facts(Arrival.ENDED, done=True),
    Facts(Arrival.ENDED, finish_reason="length"),
    Facts(Arrival.ENDED, finish_reason="length", has_text=True),
    Facts(Arrival.ENDED, finish_reason="content_filter", has_text=True),
    Facts(Arrival.ENDED, finish_reason="error"),
    Facts(Arrival.ENDED, finish_reason="safety"),
    Facts(Arrival.ENDED, finish_reason="whatever"),
    Facts(Arrival.STREAMED_ERROR, body={"error": "Connection error."}),
    Facts(
        Arrival.STATUS,
        http_status=401,
        headers={"x-nr-auth-reason": "auth_backend_unavailable"},
    ),
]

each_error = cases("error", ERRORS.values(), ids=ERRORS)


def test_every_row_can_be_reached() -> None:
    refusals = [
        Facts(Arrival.STATUS, http_status=row.status, body={"error": row.error})
        for row in ROWS
    ]

    verdicts = [classify(facts) for facts in refusals + ENDS]

    reached = {(v.code, v.condition, v.key_effect, v.sentence_key) for v in verdicts}
    assert reached == {
        (row.code, row.condition, row.key_effect, row.sentence_key)
        for row in ERRORS.values()
        if row.name not in ROWS_OF_OTHERS
    }


@each_error
def test_only_a_condition_of_others_passes_by_waiting(error: Error) -> None:
    """One exception: a limit of our own key per minute passes, too."""
    if error.transient and error.key_effect is not KeyEffect.THROTTLED:
        assert error.condition in (Condition.PROVIDER, Condition.NETWORK)


@each_error
def test_a_key_is_only_affected_where_the_account_is_at_fault(error: Error) -> None:
    if error.key_effect is not KeyEffect.NONE:
        assert error.condition is Condition.ACCOUNT_KEY


def test_rows_of_one_code_differ_in_their_case_and_end_alike() -> None:
    for code in CODES:
        rows = [error for error in ERRORS.values() if error.code == code]

        assert len({row.case for row in rows}) == len(rows)
        assert code in ERRORS
        assert len({(row.ending, row.transient) for row in rows}) == 1


def test_what_is_unknown_never_passes_by_waiting() -> None:
    assert UNKNOWN_CODES < CODES
    for code in UNKNOWN_CODES:
        assert ERRORS[code].condition is Condition.UNKNOWN
        assert not ERRORS[code].transient


@each_error
def test_every_row_has_a_sentence_and_its_own_code(error: Error) -> None:
    assert re.fullmatch(r"[a-z]+\.[a-z_]+", error.sentence_key)
    assert re.fullmatch(r"[a-z0-9_]+", error.code)
    assert error.ending is not Ending.COMPLETED


def test_errors_that_share_a_sentence_agree_on_whether_to_send_again() -> None:
    seen: dict[str, bool] = {}

    for error in ERRORS.values():
        assert seen.setdefault(error.sentence_key, error.transient) is error.transient


def test_every_refusing_status_has_a_meaning() -> None:
    for status in (*range(100, 600), 600, 999):
        verdict = classify(Facts(Arrival.STATUS, http_status=status))

        row = by_status(status)
        assert verdict.code == (row.code if row else "http_other")
        assert verdict.transient is (status in (408, 429) or 500 <= status < 600)
        assert verdict.ending is Ending.REFUSED


@cases("status", [408, 429, 500, 502, 503, 504, 520, 529, 599])
@cases("words", ["request blocked", "guardrail: PII", "flagged by moderation"])
def test_words_of_a_block_never_make_one_of_a_busy_gateway(
    status: int, words: str
) -> None:
    error = {"code": status, "message": words}

    for facts in (
        Facts(Arrival.STATUS, http_status=status, body={"error": error}),
        Facts(Arrival.STREAMED_ERROR, body={"error": error}),
    ):
        assert classify(facts).condition is Condition.PROVIDER
        assert classify(facts).transient


@cases("status", [400, 401, 402, 403, 404, 409, 413, 422])
@cases("name", ["rate_limit_exceeded", "overloaded", "timeout"])
def test_a_name_that_says_try_again_is_not_believed_beside_a_refusal(
    status: int, name: str
) -> None:
    facts = Facts(Arrival.STATUS, http_status=status, body={"error": {"code": name}})

    assert not classify(facts).transient


def test_no_finish_reason_is_both_an_end_and_a_block() -> None:
    assert not BLOCKING_FINISH_REASONS & set(FINISH_REASONS)
