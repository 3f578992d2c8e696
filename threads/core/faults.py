"""The one classifier: facts of an attempt in, one verdict out.

Everyone who asks what an ending means asks `classify`: guard, retry, ledger, key
health, sentence and page. The rows stand in `threads.core.table`, what leads to
them in `names` and `wordings`; only the order of evidence stands here:

1. a finish reason or `[DONE]` that came before any error proves completion;
2. names (codes and types) that the error itself carries, and headers;
3. wording, only where the status leaves the matter open;
4. the status;
5. nothing matched: unknown, never transient.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from threads.core import reasons, waits
from threads.core.endings import WHOLE as WHOLE
from threads.core.endings import Condition, Ending, KeyEffect, Verdict
from threads.core.names import by_name, by_weak_name
from threads.core.table import (
    BLOCKING_FINISH_REASONS,
    COMPLETED,
    ERRORS,
    FAILING_NATIVE_REASONS,
    FINAL_SENTENCE,
    FINISH_REASONS,
    PASSING_ROW,
    Error,
    by_status,
)
from threads.core.wordings import by_wording, narrowed, said_status, unreachable

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

    `body` is the decoded error (of a refusal or a streamed report, or one that
    stood beside a stream's events), `words` what the transport's exception chain
    or a stray line said, `headers` the response's, lower case. `keepalives` counts
    the comments and empty events since the last data (X13).
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
    keepalives: int = 0


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
"""Whose conditions may pass by waiting when a gateway says so (B6)."""


def finish_of(reason: str) -> Ending | None:
    """Translate a wire finish reason; None where it is unknown (A3, X10).

    Gemini adds which rule it was: `content_filter: SAFETY`.
    """
    head, _, _ = reason.lower().partition(":")
    return FINISH_REASONS.get(head.strip())


def classify(facts: Facts) -> Verdict:
    """Give the end of an attempt its one meaning.

    A finish reason or `[DONE]` proves completion, unless an error came first;
    what the transport does after that means nothing (X11).
    """
    finish = finish_of(facts.finish_reason)
    if facts.arrival is Arrival.UNREACHABLE:
        return _verdict(facts, unreachable(facts.words.lower()))
    if facts.arrival is Arrival.STATUS:
        return _error(facts)
    if facts.arrival is Arrival.STREAMED_ERROR:
        if finish is not None:
            return _whole(facts, finish)
        failed = facts.finish_reason.lower() == "error"
        return _error(facts, ERRORS["finish_error"] if failed else None)
    if facts.finish_reason and finish is None:
        return _bad_finish(facts)
    # Frames after [DONE] are not read: an unreadable one came before it.
    if finish is not None or (facts.done and facts.arrival is not Arrival.UNREADABLE):
        return _whole(facts, finish or Ending.COMPLETED)
    if _is_failed(facts):
        return _failed(facts)
    return _verdict(facts, _transport(facts))


def _is_failed(facts: Facts) -> bool:
    """An error stood beside the events, or in place of them."""
    return facts.http_status is not None or reasons.says_error(facts.body)


def _failed(facts: Facts) -> Verdict:
    body = facts.body
    choice = reasons.failed_choice(body) if isinstance(body, Mapping) else None
    if choice is None or not isinstance(body, Mapping) or body.get("error"):
        return _error(facts)
    inner = replace(facts, body={"error": choice.get("error")})
    return _error(inner, ERRORS["finish_error"])


def _transport(facts: Facts) -> Error:
    code = TRANSPORT[facts.arrival]
    kept_open = f"{code}.open"
    return ERRORS[kept_open if facts.keepalives > 0 and kept_open in ERRORS else code]


def _whole(facts: Facts, ending: Ending) -> Verdict:
    if facts.has_text or facts.has_tool_calls:
        note = {
            Ending.LENGTH: "output_limit",
            Ending.CONTENT_FILTER: "content_filter",
        }.get(ending)
        return _verdict(facts, ERRORS[note]) if note else COMPLETED
    if facts.native_finish_reason.lower() in FAILING_NATIVE_REASONS:
        return _verdict(facts, ERRORS["finish_error"])
    if facts.arrival is not Arrival.STREAMED_ERROR and _is_failed(facts):
        return _failed(facts)
    if ending is Ending.CONTENT_FILTER:
        return _verdict(facts, ERRORS["request_blocked"])
    if ending is Ending.LENGTH:
        return _verdict(facts, ERRORS["empty_at_limit"])
    return _verdict(facts, ERRORS["empty_completion"])


def _bad_finish(facts: Facts) -> Verdict:
    reason = facts.finish_reason.lower()
    if reason == "error":
        return _verdict(facts, ERRORS["finish_error"])
    blocked = reason in BLOCKING_FINISH_REASONS
    return _verdict(facts, ERRORS["answer_blocked" if blocked else "finish_unknown"])


def _error(facts: Facts, fallback: Error | None = None) -> Verdict:
    """Order of evidence: names, then wording where the status is open, then status."""
    reason = reasons.read(facts.body)
    words = reason.words.lower()
    weak = by_weak_name(reason)
    status = facts.http_status or reason.status
    error = by_name(reason, status, facts.headers)
    if status is None and error is None and weak is None:
        status = said_status(words)
    if error is None:
        error = by_wording(
            words, status, moderated=reason.moderated, is_named=weak is not None
        )
    error = error or _by_status(status, weak) or weak or fallback
    if error is None:
        error = ERRORS["stream_fault_unknown" if status is None else "http_other"]
    error = narrowed(error, words)
    if reason.retryable and error.condition in RETRYABLE | {Condition.OUR_CONFIG}:
        error = _passing(error)
    verdict = _verdict(facts, error, reason=reason, status=status)
    if reason.retryable is False and verdict.transient:
        verdict = replace(verdict, transient=False, sentence_key=FINAL_SENTENCE)
    return verdict


def _by_status(status: int | None, weak: Error | None) -> Error | None:
    """A weak name may say more of what a status means, never something else."""
    error = by_status(status)
    refines = error is not None and weak is not None and weak.code == error.code
    return weak if refines else error


def _passing(error: Error) -> Error:
    """A gateway says that waiting helps: then it is its own state, not ours.

    A route that is missing for now is no wrong setting; what is wrong with our
    settings, our request or our key passes by no waiting, whatever is said.
    """
    if error.transient or (
        error.condition is Condition.OUR_CONFIG and error.code != "model_not_found"
    ):
        return error
    return ERRORS[PASSING_ROW]


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
    wait = reason.retry_after_seconds
    if wait is None and facts.arrival in (Arrival.STATUS, Arrival.NOT_A_STREAM):
        wait = waits.of_headers(facts.headers)
    return Verdict(
        code=error.code,
        ending=ending,
        condition=error.condition,
        transient=error.transient,
        key_effect=error.key_effect,
        sentence_key=error.sentence_key,
        provider=reasons.redacted(reason.provider, facts.secrets),
        provider_reason=reasons.redacted(_said(facts, error, reason), facts.secrets),
        retry_after_seconds=wait,
        params={"status": str(status)} if status is not None else {},
    )


def _said(facts: Facts, error: Error, reason: reasons.Reason) -> str:
    """What the other side said: its words, or the finish reason that is one."""
    if error.code.startswith(("finish_", "answer_")):
        said = reason.words or facts.finish_reason
        return f"{facts.native_finish_reason} {said}".strip()
    if facts.arrival is Arrival.ENDED and not reason.words:
        # A line between the events; a torn event would repeat the answer.
        return "" if set('{}"') & set(facts.words) else reasons.read(facts.words).words
    return reason.words
