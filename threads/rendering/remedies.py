"""What a person can do about an answer that ended badly.

Only code and condition decide: what waiting can cure is sent again, what it cannot
is not offered as if it could (requirements J1, B6; design section 7).
"""

from enum import StrEnum

from threads.core.faults import Condition
from threads.models import Cell


class Remedy(StrEnum):
    """A button under the sentence."""

    AGAIN = "again"
    MODEL = "model"
    CHANGE = "change"


def remedies(cell: Cell) -> tuple[Remedy, ...]:
    """The remedies of a cell that ended with a condition; the first helps most."""
    if cell.status != Cell.Status.ERROR:
        return ()
    if cell.transient:
        return (Remedy.AGAIN, Remedy.MODEL)
    match cell.condition:
        case Condition.REQUEST:
            return (Remedy.CHANGE, Remedy.MODEL)
        case Condition.ACCOUNT_KEY | Condition.OUR_CONFIG:
            return (Remedy.MODEL,)
        case _:
            return (Remedy.AGAIN, Remedy.MODEL)
