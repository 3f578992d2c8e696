"""How long a gateway asks us to wait: read where it is said, never guessed."""

from tests.cases import cases
from threads.core.faults import Arrival, Facts, classify
from threads.core.waits import LONGEST_WAIT_SECONDS, of_headers

NOW = "Wed, 21 Oct 2026 07:28:00 GMT"


def waited(body: object = None, **facts: object) -> float | None:
    headers = facts.get("headers", {})
    assert isinstance(headers, dict)
    return classify(
        Facts(Arrival.STATUS, http_status=429, body=body, headers=headers)
    ).retry_after_seconds


@cases(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 7.5 "}, 7.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "7139"}, 7139.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"x-nr-allowance-reset": "3600"}, 3600.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:40 GMT", "date": NOW}, 40.0),
        ({"retry-after": "Wed, 21 Oct 2026 09:28:40 +0200", "date": NOW}, 40.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:40 -0000", "date": NOW}, 40.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:20:00 GMT", "date": NOW}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:40 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2096 07:28:40 GMT", "date": NOW}, None),
        ({"retry-after": "Wed, 99 Oct 2026 07:28:40 GMT", "date": NOW}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": str(int(LONGEST_WAIT_SECONDS) + 1)}, None),
        ({"x-ratelimit-reset": "1789084800000"}, None),
        ({"x-ratelimit-reset-requests": "1s"}, None),
        ({}, None),
    ],
)
def test_a_wait_in_the_headers_of_a_refusal_is_in_the_verdict(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert of_headers(headers) == seconds
    assert waited(headers=headers) == seconds


@cases(
    ("body", "seconds"),
    [
        ({"error": {"retry_after": 7}}, 7.0),
        ({"error": {"retry_after": "7"}}, 7.0),
        ({"error": {"retry_after_seconds": 1.5}}, 1.5),
        ({"error": {"resets_in_seconds": 7139}}, 7139.0),
        ({"error": {"availability": {"retry_after": 40}}}, 40.0),
        ({"error": {"metadata": {"headers": {"Retry-After": "30"}}}}, 30.0),
        ({"error": {"metadata": {"headers": {"X-RateLimit-Reset": "17"}}}}, None),
        ({"error": {"details": [{}, {"retryDelay": "38s"}]}}, 38.0),
        ({"error": {"details": [{"retryDelay": "38.5s"}]}}, 38.5),
        ({"error": {"details": ["38s"], "metadata": {"headers": ["x"]}}}, None),
        ({"error": {"retry_after": True}}, None),
        ({"error": {"retry_after": "soon"}}, None),
        ({"error": {"retry_after": -1}}, None),
        ({"error": {"retry_after": float("nan")}}, None),
        ({"error": {"retry_after": float("inf")}}, None),
        ({"error": {"retry_after": 10**400}}, None),
    ],
)
def test_a_wait_in_the_body_is_in_the_verdict(
    body: object, seconds: float | None
) -> None:
    assert waited(body) == seconds


def test_what_the_body_says_is_heard_before_the_header() -> None:
    assert waited({"error": {"retry_after": 9}}, headers={"retry-after": "2"}) == 9.0


def test_a_streamed_error_takes_no_wait_from_the_headers_of_its_stream() -> None:
    facts = Facts(
        Arrival.STREAMED_ERROR,
        body={"error": {"code": 429}},
        headers={"retry-after": "9"},
    )

    assert classify(facts).retry_after_seconds is None
