"""Every dialect of refusal means the same, thrown at us or streamed to us."""

from tests.cases import cases
from tests.core.dialects import ROWS
from tests.core.row import Row
from threads.core.faults import (
    Arrival,
    Condition,
    Ending,
    Facts,
    KeyEffect,
    Verdict,
    classify,
)
from threads.core.table import ERRORS, UNKNOWN_CODES


def thrown(row: Row) -> Verdict:
    return classify(
        Facts(Arrival.STATUS, http_status=row.status, body={"error": row.error})
    )


def streamed(row: Row) -> Verdict:
    error = {"code": row.status, **row.error}
    return classify(Facts(Arrival.STREAMED_ERROR, body={"error": error}))


each_row = cases(
    "row", ROWS, ids=[f"{n}-{row.status}-{row.code}" for n, row in enumerate(ROWS)]
)


@each_row
def test_a_refusal_means_what_its_row_says(row: Row) -> None:
    verdict = thrown(row)

    assert verdict.code == row.code
    expected = ERRORS[f"{row.code}.{row.case}" if row.case else row.code]
    assert (verdict.condition, verdict.key_effect) == (
        expected.condition,
        expected.key_effect,
    )
    assert verdict.transient is expected.transient
    assert verdict.sentence_key == expected.sentence_key
    assert verdict.ending is (
        Ending.BLOCKED if row.code == "request_blocked" else Ending.REFUSED
    )


@each_row
def test_the_streamed_form_means_the_same(row: Row) -> None:
    one, other = thrown(row), streamed(row)

    assert (other.code, other.condition) == (one.code, one.condition)
    assert other.transient is one.transient
    assert other.key_effect is one.key_effect
    assert other.sentence_key == one.sentence_key
    assert other.ending in (Ending.FAULTED, Ending.BLOCKED)


@each_row
def test_only_the_account_has_a_key_and_only_others_pass_by_waiting(row: Row) -> None:
    for verdict in (thrown(row), streamed(row)):
        if verdict.key_effect is not KeyEffect.NONE:
            assert verdict.condition is Condition.ACCOUNT_KEY
        if verdict.transient and verdict.key_effect is not KeyEffect.THROTTLED:
            assert verdict.condition in (
                Condition.PROVIDER,
                Condition.NETWORK,
                Condition.UNKNOWN,
            )


@cases("retryable", [True, False])
@each_row
def test_a_gateway_that_calls_it_retryable_changes_no_verdict_on_us(
    row: Row, retryable: bool
) -> None:
    error = {**row.error, "availability": {"retryable": retryable}}

    verdict = classify(
        Facts(Arrival.STATUS, http_status=row.status, body={"error": error})
    )

    may_pass = verdict.condition in (Condition.PROVIDER, Condition.UNKNOWN)
    may_pass = may_pass or verdict.key_effect is KeyEffect.THROTTLED
    assert verdict.transient is (retryable and may_pass)
    assert verdict.code not in UNKNOWN_CODES or not verdict.transient


@cases(
    ("headers", "status", "row"),
    [
        ({"x-nr-guardrails": "blocked"}, 403, "request_blocked"),
        ({"x-nr-guardrails": "unavailable"}, 503, "overloaded"),
        ({"x-nr-limit-source": "budget"}, 402, "budget_exceeded"),
        ({"x-nr-auth-reason": "platform_maintenance"}, 401, "auth_backend_unavailable"),
        (
            {"x-nr-auth-reason": "auth_backend_unavailable"},
            401,
            "auth_backend_unavailable",
        ),
        ({"x-nr-auth-reason": "unknown_key"}, 401, "http_401"),
        ({"x-nr-auth-reason": "unauthorized"}, 401, "http_401"),
        ({"x-nr-auth-reason": "key_expired"}, 401, "http_401"),
        ({"x-nr-auth-reason": "account_hold"}, 401, "http_401"),
        ({"x-nr-auth-reason": "key_blocked"}, 403, "http_403.key"),
        ({"x-nr-auth-reason": "key_ip_not_allowed"}, 403, "http_403.key"),
        ({"x-nr-auth-reason": "key_model_not_allowed"}, 403, "http_403.account"),
        ({"x-nr-auth-reason": "organization_hold"}, 403, "http_403.account"),
        ({"x-nr-limit-source": "key"}, 429, "http_429.key"),
        ({"x-nr-limit-source": "team"}, 429, "http_429.key"),
        ({"x-nr-limit-source": "plan_window_h8"}, 429, "http_429.key"),
        ({"x-nr-limit-source": "capacity"}, 429, "http_429"),
        ({"x-nr-limit-source": "plan_window_day"}, 429, "quota_exhausted"),
        ({"x-nr-limit-source": "plan_window_week"}, 429, "quota_exhausted"),
        ({"x-nr-limit-source": "budget"}, 429, "budget_exceeded"),
        ({"x-nr-limit-source": "plan_allowance_exhausted"}, 402, "quota_exhausted"),
        ({"x-nr-limit-source": "plan_required"}, 402, "quota_exhausted"),
        ({"x-nr-limit-source": "key"}, 400, "http_400"),
        ({"x-nr-limit-source": "something new"}, 429, "http_429"),
        ({"x-nr-guardrails": "pass"}, 429, "http_429"),
        ({"x-nr-guardrails": "blocked"}, 429, "http_429"),
    ],
)
def test_a_gateways_own_header_names_the_cause(
    headers: dict[str, str], status: int, row: str
) -> None:
    facts = Facts(
        Arrival.STATUS, http_status=status, body={"error": "no"}, headers=headers
    )

    verdict = classify(facts)

    assert verdict.code == ERRORS[row].code
    assert verdict.key_effect is ERRORS[row].key_effect
