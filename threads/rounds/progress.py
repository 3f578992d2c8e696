"""The terms on which a round calls its model, and how far it has come."""

from dataclasses import dataclass, field
from time import monotonic

from threads.conf import Bounds
from threads.core.faults import Verdict
from threads.core.retry import Policy
from threads.gateway.calls import CallBounds
from threads.models import ToolTurn
from threads.rounds.brief import Brief

PRACTICE_SECONDS = 8.0
"""A practice model that falls silent does so on purpose: nobody should have to
wait minutes to see what a stall looks like (design section 8)."""

PRACTICE_WAIT_SECONDS = 2.0
"""Nor to see it tried again."""


Thinking = tuple[float | None, float | None]
"""When the model began to reason and when its text came; monotonic."""


@dataclass(slots=True)
class Progress:
    """What the runner reads off when it has to end the round itself."""

    model_served: str = ""
    request_id: str = ""
    reasoning_began: float | None = None
    reasoning_ended: float | None = None
    has_answered: bool = False
    is_reasoning: bool = False
    # The tools that are running.
    tools: list[str] = field(default_factory=list)
    # How the last attempt ended, until another one gives an answer.
    fault: Verdict | None = None

    @property
    def thinking(self) -> Thinking:
        """When the model reasoned; the end is now where no text has come."""
        began, ended = self.reasoning_began, self.reasoning_ended
        return began, ended if began is None or ended is not None else monotonic()

    @thinking.setter
    def thinking(self, thinking: Thinking) -> None:
        self.reasoning_began, self.reasoning_ended = thinking

    def go_on(self, turn: ToolTurn) -> None:
        """Begin where an earlier worker of the round was at this turn."""
        self.model_served = turn.model_served
        if turn.reasoning_ms is not None:
            now = monotonic()
            self.thinking = (now - turn.reasoning_ms / 1000, now)

    @property
    def reasoning_ms(self) -> int | None:
        """How long the model reasoned, until text came; None if it did not."""
        began, ended = self.thinking
        return None if began is None or ended is None else int((ended - began) * 1000)


def retry_policy(brief: Brief, bounds: Bounds) -> Policy:
    """Return how the calls of a round are tried again: the settings, and the agent's
    own cut policy and its route's (requirements D2, X1, D17)."""
    most = PRACTICE_WAIT_SECONDS if brief.is_practice else float("inf")
    return Policy(
        retries=bounds.call_retries,
        waits=tuple(min(wait, most) for wait in bounds.retry_waits),
        window_seconds=bounds.retry_window_seconds,
        keeps_cut=brief.keeps_cut,
        is_buffered=brief.is_buffered,
        tries=brief.route.tries if brief.route else 1,
        advances_on_refusal=bool(brief.route and brief.route.advances_on_refusal),
    )


def call_bounds(brief: Brief, bounds: Bounds) -> CallBounds:
    """Return how long the gateway of a round may be silent (A8, A9)."""
    patience = PRACTICE_SECONDS if brief.is_practice else float("inf")
    return CallBounds(
        first_data_seconds=min(bounds.first_data_seconds, patience),
        idle_seconds=min(bounds.idle_seconds, patience),
    )
