"""Words that must never reach a log, and the net that would catch them there.

A test that plays a prompt, an answer or a key uses these, or others like them:
`canary-` with something behind it. The net hangs under every logger for the whole
run (tests/conftest.py); one record with a canary in it fails the test that made it.
"""

import logging
import re

import pytest

PROMPT = "CANARY-PROMPT-4f1d what is this about"
ANSWER = "CANARY-ANSWER-4f1d"
THOUGHT = "CANARY-THOUGHT-4f1d"
REASON = "CANARY-REASON-4f1d"
ARGUMENT = "CANARY-ARGUMENT-4f1d"
RESULT = "CANARY-RESULT-4f1d"
KEY = "sk-CANARY-KEY-4f1d"
SHORT_KEY = "CANARY-k1"

CANARY = re.compile(r"canary-\w+", re.IGNORECASE)

OURS = ("threads", "chatsite")
APART = ("django.server",)
"""Loggers whose records never come to the root."""


class CanaryNet(logging.Handler):
    """Looks into every record, wherever in it the words stand."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.seen = 0
        self._caught: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Search one record."""
        self.seen += 1
        for found in CANARY.findall(words_of(record)):
            self._caught.append(f"{found} in {record.name}:{record.lineno}")

    def take(self) -> list[str]:
        """Return what was caught since the last time."""
        caught, self._caught = self._caught, []
        return caught


def raised(error: BaseException) -> BaseException:
    """Return the same exception, with the frames of having been raised."""

    def fail() -> None:
        raise error

    try:
        fail()
    except BaseException as caught:  # noqa: BLE001 - that is what this is for
        return caught
    raise AssertionError("unreachable")


def words_of(record: logging.LogRecord) -> str:
    """All that a handler could write of a record: message, arguments, traceback."""
    text = logging.Formatter("%(message)s").format(record)
    return f"{text}\n{vars(record)!r}"


def assert_silent(caplog: pytest.LogCaptureFixture) -> None:
    """Look at every part of every record, and at what would be written of it."""
    told = [*map(words_of, caplog.records), caplog.text]
    assert CANARY.findall("\n".join(told)) == []
