"""The practice models whose requests are refused with an HTTP status, before any stream."""

import json

from threads.practice.asks import Ask
from threads.practice.scripts import UPSTREAM
from threads.practice.steps import Answer, Play
from threads.practice.wire import encode, error_body


def rate_limited(_: Ask) -> Play:
    body = error_body(
        "The practice model is rate-limited. Please wait a moment and try again.",
        kind="requests",
        code="rate_limit_exceeded",
    )
    return _refusal(429, body, {"retry-after": "1"})


def refused(_: Ask) -> Play:
    reason = {
        "error": {
            "message": "practice: this model takes no requests of this kind.",
            "type": "invalid_request_error",
        }
    }
    metadata = {"provider_name": UPSTREAM, "raw": json.dumps(reason)}
    error = {"message": "Provider returned error", "code": 400, "metadata": metadata}
    return _refusal(400, {"error": error})


def key_rejected(_: Ask) -> Play:
    body = error_body(
        "Incorrect API key provided. The practice model takes none.",
        code="invalid_api_key",
    )
    return _refusal(401, body)


def no_credit(_: Ask) -> Play:
    body = error_body(
        "Insufficient credits. The practice account is empty.",
        kind="insufficient_credits",
        code="insufficient_credits",
    )
    return _refusal(402, body)


def too_long(_: Ask) -> Play:
    body = error_body(
        "This model's maximum context length is 8 tokens. Please reduce the length of "
        "the messages.",
        code="context_length_exceeded",
        param="messages",
    )
    return _refusal(400, body)


def _refusal(
    status: int, body: dict[str, object], headers: dict[str, str] | None = None
) -> Answer:
    return Answer(status, encode(body).decode(), headers=headers or {})
