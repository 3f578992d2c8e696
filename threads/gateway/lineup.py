"""Which model a call asks, and which ones it may ask after that."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from threads.core.retry import Action, Attempted
from threads.gateway.attempt import Attempt, CallRequest
from threads.gateway.guard import CallBounds


@dataclass(frozen=True, slots=True)
class Target:
    """One model of a call: what it is sent, and how long it may be silent."""

    request: CallRequest
    bounds: CallBounds


class Lineup:
    """The models of one call, in their order; `asked` have been left behind."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._targets = targets
        self._others = 0
        self._had_text = False
        self.asked = 0

    @property
    def target(self) -> Target:
        """The model whose turn it is."""
        return self._targets[self.asked]

    def facts(self, attempt: Attempt, elapsed_seconds: float) -> Attempted:
        """What the decision about another attempt is made from."""
        return replace(
            attempt.facts_for_retry(elapsed_seconds),
            has_next=self.asked + 1 < len(self._targets),
            had_text=self._had_text,
            others=self._others,
        )

    def follow(self, attempt: Attempt) -> None:
        """Go where the decision about this attempt leads."""
        self._had_text = self._had_text or attempt.evidence.has_text
        if attempt.decision.action is Action.FALLBACK:
            self.asked += 1
            self._others = attempt.number
