"""Whether an attempt is followed by another one: facts and policy in, a decision out.

Only a call is ever tried again, never a round (requirement D1). What was refused
belongs to the SDK's own tries (C6, X7); what is no passing condition stays as it
is (D3, D20); and after one fragment of a tool call nothing is sent again (D8).
"""

from dataclasses import dataclass
from enum import StrEnum

from threads.core.endings import WHOLE, Ending, Verdict

JITTER = 0.1
"""Waits differ by up to this share of themselves, so that rounds do not return
together (requirement D21)."""


class Action(StrEnum):
    """What follows an attempt: nothing, the same request, or that and a withdrawal."""

    NONE = "none"
    REISSUE = "reissue"
    REGENERATE = "regenerate"


class Reason(StrEnum):
    """Why an attempt is not followed by another one (requirement D16)."""

    WHOLE = "whole"
    STOPPED = "stopped"
    REFUSED = "refused"
    NOT_TRANSIENT = "not_transient"
    TOOL_CALL = "tool_call"
    SWITCHED_OFF = "switched_off"
    EXHAUSTED = "exhausted"
    CUT_KEPT = "cut_kept"
    WINDOW = "window"
    ASKED_TO_WAIT = "asked_to_wait"


@dataclass(frozen=True, slots=True)
class Policy:
    """How often and how long a call may be tried again; times in seconds (D2).

    No attempt starts later than `window_seconds` after the first one began, its
    wait included. `keeps_cut` lets an answer that was cut stand (X1); a buffered
    call shows nothing before it is whole, so that there is nothing to withdraw (D19).
    """

    retries: int
    waits: tuple[float, ...]
    window_seconds: float
    keeps_cut: bool = False
    is_buffered: bool = False


ONCE = Policy(retries=0, waits=(0.0,), window_seconds=0.0)
"""No call is tried again."""


@dataclass(frozen=True, slots=True)
class Attempted:
    """The facts of one attempt; `number` counts from 1 within its call.

    `is_withdrawable` says that everything which came can be unsaid (D7),
    `has_text` that some of it can be read. `elapsed_seconds` is measured from the
    start of the call's first attempt.
    """

    number: int
    verdict: Verdict
    is_withdrawable: bool
    has_text: bool
    elapsed_seconds: float


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows; `reason` is None exactly when something does."""

    action: Action
    reason: Reason | None = None
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RetryWait:
    """Attempt `attempt` of call `call` begins in so many seconds; `total` are allowed.

    `fault` says how the one before it ended, `withdrew` that its text was taken back.
    """

    call: int
    attempt: int
    total: int
    seconds: float
    fault: Verdict
    withdrew: bool


def decide(attempted: Attempted, policy: Policy, *, roll: float = 0.0) -> Decision:
    """Decide what follows an attempt; `roll` in [-1, 1] sets the jitter.

    A wait that the gateway asked for is kept to where the window allows it, and
    is otherwise the end: to come sooner would be refused again (D22).
    """
    reason = _obstacle(attempted, policy)
    if reason is not None:
        return Decision(Action.NONE, reason)
    step = policy.waits[min(attempted.number, len(policy.waits)) - 1]
    wait = step * (1 + JITTER * roll)
    asked = attempted.verdict.retry_after_seconds
    if asked is not None:
        wait = max(wait, asked)
    if attempted.elapsed_seconds + wait > policy.window_seconds:
        is_asked = asked is not None and wait == asked
        return Decision(
            Action.NONE, Reason.ASKED_TO_WAIT if is_asked else Reason.WINDOW
        )
    shown = attempted.has_text and not policy.is_buffered
    return Decision(Action.REGENERATE if shown else Action.REISSUE, None, wait)


def _obstacle(attempted: Attempted, policy: Policy) -> Reason | None:
    """Say what forbids another attempt, apart from time."""
    verdict = attempted.verdict
    if verdict.ending in WHOLE:
        return Reason.WHOLE
    if not verdict.transient:
        return Reason.NOT_TRANSIENT
    if verdict.ending is Ending.REFUSED:
        return Reason.REFUSED
    if not attempted.is_withdrawable:
        return Reason.TOOL_CALL
    if policy.retries == 0:
        return Reason.SWITCHED_OFF
    if attempted.number > policy.retries:
        return Reason.EXHAUSTED
    if policy.keeps_cut and attempted.has_text and not policy.is_buffered:
        return Reason.CUT_KEPT
    return None
