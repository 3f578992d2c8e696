"""How far a cell's text stands, and how its pieces become one text.

Inside a generation text only grows; a newer generation may shorten it
(requirements E1, E2), so the greater position is the newer state. Live cells,
pages, sockets and the terminal write all follow what stands here: it is the one
place that knows what a withdrawal takes away and when it is not applied.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Generation, and characters in it; of two, the greater is the newer."""

    generation: int = 0
    length: int = 0


class Part(StrEnum):
    """What one entry of a journal holds."""

    TEXT = "text"
    REASONING = "reasoning"
    WITHDRAWAL = "withdrawal"
    RESTATED = "restated"


class Entry(Protocol):
    """One entry of a cell's journal; offsets count characters.

    A withdrawal begins a generation in which the first `offset` characters of the
    text before it stay; its own text names the attempt, as "call.attempt" (E9), and
    after a space the characters of reasoning that stay, if any do. A restated entry
    begins a generation with its own text, which may be empty.
    """

    @property
    def part(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation of a cell's text.

    `kept` and `kept_reasoning` count the characters that a withdrawal left; `kept`
    is None for a generation that none began.
    """

    number: int = 0
    text: str = ""
    reasoning: str = ""
    kept: int | None = None
    kept_reasoning: int = 0

    @property
    def is_bare(self) -> bool:
        """A withdrawal after which nothing came that could be read."""
        return self.kept is not None and not self.text[self.kept :].strip()


def last_read(generations: Sequence[Generation]) -> Generation:
    """Return what stands at the end, of generations in their order (E8, X2).

    A trailing run of withdrawals is not applied: the last text that was read
    stands again, in a generation newer than all. Where they took no text away, the
    last thoughts stand.
    """
    newest = generations[-1]
    stands = next((each for each in reversed(generations) if not each.is_bare), newest)
    if stands is newest:
        return newest
    if stands.text != newest.text:
        return Generation(newest.number + 1, stands.text, stands.reasoning)
    told = (g for g in reversed(generations) if len(g.reasoning) > g.kept_reasoning)
    reasoning = next(told, newest).reasoning
    if reasoning == newest.reasoning:
        return newest
    return Generation(newest.number + 1, stands.text, reasoning)


def generations_of(
    entries: Iterable[Entry], before: Generation | None = None
) -> list[Generation]:
    """Lay a journal's entries together: its generations in order, at least one.

    `before` is what was folded already. A generation is read by itself, apart
    from what a withdrawal left of the one before it.
    """
    by_number: dict[int, list[Entry]] = {}
    for entry in entries:
        by_number.setdefault(entry.generation, []).append(entry)
    found = [before or Generation()]
    for number in sorted(by_number):
        rows = by_number[number]
        if number == found[-1].number:
            latest = found.pop()
            text, reasoning = latest.text, latest.reasoning
            kept, thoughts = latest.kept, latest.kept_reasoning
        else:
            mark = next((row for row in rows if row.part == Part.WITHDRAWAL), None)
            kept = None if mark is None else mark.offset
            thoughts = 0 if mark is None else int(mark.text.partition(" ")[2] or 0)
            restated = (row.text for row in rows if row.part == Part.RESTATED)
            text, reasoning = next(restated, found[-1].text[: kept or 0]), ""
        found.append(
            Generation(
                number,
                laid_end_to_end(_pieces(rows, Part.TEXT), text),
                laid_end_to_end(_pieces(rows, Part.REASONING), reasoning),
                kept,
                thoughts,
            )
        )
    return found


def _pieces(rows: Iterable[Entry], part: Part) -> list[tuple[int, str]]:
    return [(row.offset, row.text) for row in rows if row.part == part]


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
