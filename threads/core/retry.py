"""Whether an attempt is followed by another one: facts and policy in, a decision out.

Only a call is ever tried again, never a round (requirement D1). What was refused
belongs to the SDK's own tries (C6, X7); what is no passing condition stays as it
is (D3, D20); and after one fragment of a tool call nothing is sent again (D8).

The call of a route has further models. One that does not answer hands the call on
to the next, and only before any text of it came (D17): what was shown is answered
anew by the model that wrote it, or by none.
"""

from dataclasses import dataclass
from enum import StrEnum

from threads.core.endings import WHOLE, Condition, Ending, Verdict

JITTER = 0.1
"""Waits differ by up to this share of themselves, so that rounds do not return
together (requirement D21)."""


REFUSING = frozenset({Ending.REFUSED, Ending.FAULTED})
"""Endings of a call that was not taken, be that said in a status or in the stream."""

OF_THE_MODEL = frozenset(
    {
        Condition.PROVIDER,
        Condition.ACCOUNT_KEY,
        Condition.OUR_CONFIG,
        Condition.NETWORK,
    }
)
"""Whose conditions another model, with its own gateway and key, need not share. What
is wrong with the request, or unknown, goes with the request."""


class Action(StrEnum):
    """What follows an attempt: nothing, the same request, that and a withdrawal, or
    the same of a route's next model."""

    NONE = "none"
    REISSUE = "reissue"
    REGENERATE = "regenerate"
    FALLBACK = "fallback"


class Reason(StrEnum):
    """Why a model is not asked once more (requirement D16)."""

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

    A route's next model is asked after so many `tries` of the one before; where
    `advances_on_refusal`, also when that one refused. `retries` bounds what is asked
    of the same model again, over all of them together.
    """

    retries: int
    waits: tuple[float, ...]
    window_seconds: float
    keeps_cut: bool = False
    is_buffered: bool = False
    tries: int = 1
    advances_on_refusal: bool = False


ONCE = Policy(retries=0, waits=(0.0,), window_seconds=0.0)
"""No call is tried again."""


@dataclass(frozen=True, slots=True)
class Attempted:
    """The facts of one attempt; `number` counts from 1 within its call.

    `is_withdrawable` says that everything which came can be unsaid (D7),
    `has_text` that some of it can be read. `elapsed_seconds` is measured from the
    start of the call's first attempt. Of a route, `has_next` says that it has a model
    after this one, `had_text` that text of an earlier attempt could be read, and
    `others` how many attempts asked the models before this one.
    """

    number: int
    verdict: Verdict
    is_withdrawable: bool
    has_text: bool
    elapsed_seconds: float
    has_next: bool = False
    had_text: bool = False
    others: int = 0

    @property
    def tried(self) -> int:
        """How often this model has been asked in this call."""
        return self.number - self.others


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows; `reason` is None exactly when the same model is asked again."""

    action: Action
    reason: Reason | None = None
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RetryWait:
    """Attempt `attempt` of call `call` begins in so many seconds; `total` are allowed.

    `fault` says how the one before it ended, `withdrew` that its text was taken back.
    `model` is the wire id of the model that is asked then, if it is another one.
    """

    call: int
    attempt: int
    total: int
    seconds: float
    fault: Verdict
    withdrew: bool
    model: str = ""


def decide(attempted: Attempted, policy: Policy, *, roll: float = 0.0) -> Decision:
    """Decide what follows an attempt; `roll` in [-1, 1] sets the jitter.

    A wait that the gateway asked for is kept to where the window allows it, and
    is otherwise the end: to come sooner would be refused again (D22). Another model
    is asked at once.
    """
    wait = _wait(attempted, policy, roll)
    reason = _obstacle(attempted, policy) or _lateness(attempted, policy, wait)
    is_done_with = reason is not None or attempted.tried >= policy.tries
    if is_done_with and _may_advance(attempted, policy):
        return Decision(Action.FALLBACK, reason or Reason.EXHAUSTED)
    if reason is not None:
        return Decision(Action.NONE, reason)
    shown = attempted.has_text and not policy.is_buffered
    return Decision(Action.REGENERATE if shown else Action.REISSUE, None, wait)


def _wait(attempted: Attempted, policy: Policy, roll: float) -> float:
    """Return how long to wait before the same model is asked again."""
    step = policy.waits[min(attempted.tried, len(policy.waits)) - 1]
    wait = step * (1 + JITTER * roll)
    return max(wait, attempted.verdict.retry_after_seconds or 0.0)


def _lateness(attempted: Attempted, policy: Policy, wait: float) -> Reason | None:
    """Say why a wait does not fit into the window, if it does not."""
    if attempted.elapsed_seconds + wait <= policy.window_seconds:
        return None
    is_asked = wait == attempted.verdict.retry_after_seconds
    return Reason.ASKED_TO_WAIT if is_asked else Reason.WINDOW


def _may_advance(attempted: Attempted, policy: Policy) -> bool:
    """Tell whether a route's next model may be asked what this one did not answer.

    Only where nothing of an answer came, so that no reader sees two models' words
    in one (D4, D17), nor a tool that both have asked for (D8).
    """
    verdict = attempted.verdict
    if attempted.has_text or attempted.had_text or not attempted.is_withdrawable:
        return False
    if not attempted.has_next or verdict.ending in WHOLE:
        return False
    if attempted.elapsed_seconds > policy.window_seconds:
        return False
    if verdict.transient and verdict.ending is not Ending.REFUSED:
        return True
    is_its_own = verdict.ending in REFUSING and verdict.condition in OF_THE_MODEL
    return is_its_own and policy.advances_on_refusal


def _obstacle(attempted: Attempted, policy: Policy) -> Reason | None:
    """Say what forbids to ask the same model again, apart from time."""
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
