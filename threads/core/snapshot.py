"""How far a cell's text stands, and how its pieces become one text.

Inside a generation text only grows; a newer generation may shorten it
(requirements E1, E2), so the greater position is the newer state. Pages, sockets
and the terminal write all lay the journal's pieces together here.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Generation, and characters in it; of two, the greater is the newer."""

    generation: int = 0
    length: int = 0


def laid_end_to_end(pieces: Iterable[tuple[int, str]], before: str = "") -> str:
    """Join pieces of one generation, each with its offset, up to the first gap.

    They may come in any order. `before` is what is there already; a piece that
    begins inside what is there replaces the rest of it.
    """
    joined, length = [before], len(before)
    for offset, text in sorted(pieces, key=lambda piece: piece[0]):
        if offset > length:
            break
        if offset < length:
            joined = ["".join(joined)[:offset]]
        joined.append(text)
        length = offset + len(text)
    return "".join(joined)
