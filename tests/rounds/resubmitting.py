"""What the tests of asking again share: rounds ended without a model."""

from typing import Any

from threads.core.faults import Condition, Ending, Verdict
from threads.models import Cell, Round
from threads.rounds.ending import Outcome, finish_round
from threads.rounds.resubmit import resubmit

TRUNCATED = Verdict(
    code="truncated",
    ending=Ending.TRUNCATED,
    condition=Condition.NETWORK,
    transient=True,
    sentence_key="stream.truncated",
)
COMPLETED = Verdict("", Ending.COMPLETED, Condition.UNKNOWN)


def verdict_of(ending: str) -> Verdict:
    """A verdict that this request itself is at fault."""
    return Verdict(f"request_{ending}", Ending(ending), Condition.REQUEST)


def ended(round_: Round, verdict: Verdict = TRUNCATED, text: str = "") -> Cell:
    """End a round without a model; returns its answer as the database has it."""
    Round.objects.filter(pk=round_.pk).update(state=Round.State.RUNNING)
    finish_round(round_.pk, Outcome(verdict))
    Cell.objects.filter(pk=round_.answer_cell_id).update(text=text)
    return Cell.objects.get(pk=round_.answer_cell_id)


def again(answer: Cell, **more: Any) -> Round:
    options: dict[str, Any] = {"locale": "en", "attended": True, "by": None}
    return resubmit(answer, **options | more)
