"""Sums of which some parts may be unknown."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar

Number = TypeVar("Number", int, Decimal)


@dataclass(frozen=True, slots=True)
class Total(Generic[Number]):
    """What is known of a sum: all of it, or no more than that it is not less (G3).

    `known` adds up the known parts; None where there is none.
    """

    known: Number | None
    is_whole: bool

    @property
    def exact(self) -> Number | None:
        """The sum; None where any part of it is unknown."""
        return self.known if self.is_whole else None


def total(parts: Iterable[Number | None]) -> Total[Number]:
    """Add up parts; of no parts at all nothing is known."""
    known: Number | None = None
    is_whole, is_empty = True, True
    for part in parts:
        is_empty = False
        if part is None:
            is_whole = False
        else:
            known = part if known is None else known + part
    return Total(known, is_whole and not is_empty)
