"""The one rule for what may replace what in a cell that is being written.

Inside a generation text only grows; a newer generation may shorten; after the
end nothing changes (requirements E1, E2, E5). Journal, hub, consumer and page
all ask here.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """How far a cell's text stands: its generation, and characters in it."""

    generation: int = 0
    length: int = 0


def supersedes(new: Position, old: Position, *, ended: bool = False) -> bool:
    """Tell whether a push at `new` may change a cell shown at `old`.

    Equal positions do not supersede: nothing would change.
    """
    return not ended and new > old


def continues(start: Position, shown: Position) -> bool:
    """Tell whether text that begins at `start` may be appended to what is shown."""
    return start == shown
