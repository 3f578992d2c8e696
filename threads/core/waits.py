"""How long a gateway asks us to wait, in seconds: bounded, and never a guess."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_WAIT_SECONDS = 31 * 86_400.0
"""A wait beyond this is no wait that a gateway means (C6)."""

FIELDS = ("retry_after", "retry_after_seconds", "resets_in_seconds", "retryDelay")
"""Fields of an error body; the last one is Google's, as "38s"."""

SECONDS_TEXT = re.compile(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*s?\s*")


def seconds(value: object) -> float | None:
    """Read a wait from a number or from digits; None where it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        found = SECONDS_TEXT.fullmatch(value)
        value = float(found.group(1)) if found else None
    if isinstance(value, int | float) and 0 <= value <= LONGEST_WAIT_SECONDS:
        return float(value)
    return None


def of_body(value: Mapping[str, object]) -> float | None:
    """Read the wait that one object of an error body names."""
    waits = (seconds(value.get(field)) for field in FIELDS)
    found = next((wait for wait in waits if wait is not None), None)
    headers = value.get("headers")
    if found is None and isinstance(headers, Mapping):
        named = {str(name).lower(): str(text) for name, text in headers.items()}
        return of_headers(named)
    return found


def of_headers(headers: Mapping[str, str]) -> float | None:
    """Read the wait that a response's headers name; names are in lower case.

    `x-ratelimit-reset…` is left alone: some gateways write a moment there and
    some a span, of requests or of tokens, in four notations.
    """
    milliseconds = seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    for name in ("retry-after", "x-nr-allowance-reset"):
        if (wait := seconds(headers.get(name))) is not None:
            return wait
    return _until(headers.get("retry-after", ""), headers.get("date", ""))


def _until(moment: str, now: str) -> float | None:
    """Measure from the response's own date: the gateway's clock may be wrong."""
    at, since = _moment(moment), _moment(now)
    if at is None or since is None:
        return None
    return seconds(max(0.0, (at - since).total_seconds()))


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
