"""The one classifier: facts of an attempt in, one verdict out.

Everyone who asks what an ending means asks `classify`: guard, retry, ledger, key
health, sentence and page. The rows stand in `threads.core.table`; only the order
of evidence stands here:

1. a finish reason or `[DONE]` that came before any error proves completion;
2. names (codes and types) that the error itself carries, and headers;
3. wording, only where the status leaves the matter open;
4. the status;
5. nothing matched: unknown, never transient.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from threads.core import reasons
from threads.core.endings import WHOLE as WHOLE
from threads.core.endings import Condition, Ending, KeyEffect, Verdict
from threads.core.table import (
    BLOCKING_FINISH_REASONS,
    COMPLETED,
    ERRORS,
    FINISH_REASONS,
    Error,
    by_name,
    by_status,
    by_weak_name,
    by_wording,
    unreachable,
)

__all__ = [
    "WHOLE",
    "Arrival",
    "Condition",
    "Ending",
    "Facts",
    "KeyEffect",
    "Verdict",
    "classify",
]


class Arrival(StrEnum):
    """Where and how the end of a call reached us; a fact, not yet a meaning."""

    ENDED = "ended"
    BROKEN = "broken"
    UNDECODABLE = "undecodable"
    SILENT_START = "silent_start"
    SILENT_MID = "silent_mid"
    UNREADABLE = "unreadable"
    NOT_A_STREAM = "not_a_stream"
    STREAMED_ERROR = "streamed_error"
    STATUS = "status"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is known of how one attempt ended.

    `body` is the decoded error (of a refusal or a streamed report), `words` what
    the transport's exception chain said, `headers` the response's, lower case.
    """

    arrival: Arrival
    finish_reason: str = ""
    native_finish_reason: str = ""
    done: bool = False
    has_text: bool = False
    has_tool_calls: bool = False
    http_status: int | None = None
    body: object = None
    words: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()


TRANSPORT = {
    Arrival.ENDED: "truncated",
    Arrival.BROKEN: "truncated",
    Arrival.UNDECODABLE: "transport_decode",
    Arrival.SILENT_START: "stalled_before_start",
    Arrival.SILENT_MID: "stalled_mid_answer",
    Arrival.UNREADABLE: "stream_unreadable",
    Arrival.NOT_A_STREAM: "not_a_stream",
}


RETRYABLE = frozenset({Condition.PROVIDER, Condition.NETWORK, Condition.UNKNOWN})
"""Whose conditions may pass by waiting; nothing else is ever transient (B6)."""


def finish_of(reason: str) -> Ending | None:
    """Translate a wire finish reason; None where it is unknown (A3, X10)."""
    return FINISH_REASONS.get(reason.lower())


def classify(facts: Facts) -> Verdict:
    """Give the end of an attempt its one meaning.

    A finish reason or `[DONE]` proves completion, unless an error came first;
    what the transport does after that means nothing (X11).
    """
    finish = finish_of(facts.finish_reason)
    if facts.arrival not in (
        Arrival.STREAMED_ERROR,
        Arrival.STATUS,
        Arrival.UNREACHABLE,
    ):
        if facts.finish_reason and finish is None:
            return _bad_finish(facts)
        if finish is not None or facts.done:
            return _whole(facts, finish or Ending.COMPLETED)
    elif finish is not None and facts.arrival is Arrival.STREAMED_ERROR:
        return _whole(facts, finish)
    if (
        facts.arrival is Arrival.STREAMED_ERROR
        and facts.finish_reason.lower() == "error"
    ):
        return _error(facts, fallback=ERRORS["finish_error"])
    if facts.arrival is Arrival.UNREACHABLE:
        return _verdict(facts, unreachable(facts.words.lower()))
    if facts.arrival in (Arrival.STREAMED_ERROR, Arrival.STATUS):
        return _error(facts)
    if facts.arrival is Arrival.NOT_A_STREAM and reasons.says_error(facts.body):
        return _error(facts)
    return _verdict(facts, ERRORS[TRANSPORT[facts.arrival]])


def _whole(facts: Facts, ending: Ending) -> Verdict:
    if facts.has_text or facts.has_tool_calls:
        note = {
            Ending.LENGTH: "output_limit",
            Ending.CONTENT_FILTER: "content_filter",
        }.get(ending)
        return _verdict(facts, ERRORS[note]) if note else COMPLETED
    if facts.native_finish_reason.lower() in ("error", "network_error"):
        return _verdict(facts, ERRORS["finish_error"])
    if ending is Ending.CONTENT_FILTER:
        return _verdict(facts, ERRORS["request_blocked"])
    if ending is Ending.LENGTH:
        return _verdict(facts, ERRORS["empty_at_limit"])
    return _verdict(facts, ERRORS["empty_completion"])


def _bad_finish(facts: Facts) -> Verdict:
    if facts.finish_reason.lower() == "error":
        return _verdict(facts, ERRORS["finish_error"])
    if facts.finish_reason.lower() in BLOCKING_FINISH_REASONS:
        return _verdict(facts, ERRORS["answer_blocked"])
    return _verdict(facts, ERRORS["finish_unknown"])


def _error(facts: Facts, fallback: Error | None = None) -> Verdict:
    """Order of evidence: names, then wording where the status is open, then status."""
    reason = reasons.read(facts.body)
    status = facts.http_status or reason.status
    words = reason.words.lower()
    error = (
        by_name(reason, status, facts.headers, words)
        or by_wording(words, status, moderated=reason.moderated)
        or by_status(status)
        or by_weak_name(reason)
        or fallback
        or ERRORS["stream_fault_unknown"]
    )
    if error.code == "stream_fault_unknown" and status is not None:
        error = ERRORS["http_other"]
    if error.code == "model_not_found" and reason.retryable:
        # The route is missing for now only: availability, not our configuration.
        error = ERRORS["overloaded"]
    verdict = _verdict(facts, error, reason=reason, status=status)
    if reason.retryable is not None and error.condition in RETRYABLE:
        verdict = replace(verdict, transient=reason.retryable)
    return verdict


def _verdict(
    facts: Facts,
    error: Error,
    *,
    reason: reasons.Reason | None = None,
    status: int | None = None,
) -> Verdict:
    """Fill a row of the table with what this attempt said."""
    reason = reason or reasons.read(facts.body)
    ending = error.ending
    if ending is Ending.FAULTED and facts.arrival in (
        Arrival.STATUS,
        Arrival.UNREACHABLE,
    ):
        ending = Ending.REFUSED
    said = reason.words or (
        facts.finish_reason if error.code.startswith("finish_") else ""
    )
    if facts.native_finish_reason and error.code.startswith("finish_"):
        said = f"{facts.native_finish_reason} {said}".strip()
    params = {"status": str(status)} if status is not None else {}
    return Verdict(
        code=error.code,
        ending=ending,
        condition=error.condition,
        transient=error.transient,
        key_effect=error.key_effect,
        sentence_key=error.sentence_key,
        provider=reasons.redacted(reason.provider, facts.secrets),
        provider_reason=reasons.redacted(said, facts.secrets),
        retry_after_seconds=reason.retry_after_seconds,
        params=params,
    )
