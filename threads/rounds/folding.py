"""Reading a cell out of its journal.

Inside a generation the entries are laid end to end; the newest generation that
has entries counts. A withdrawal writes none until text follows it, so the text
that a person saw last is never lost to a trailing run of withdrawals (E8, X2).
"""

from dataclasses import dataclass

from threads.core.snapshot import laid_end_to_end
from threads.models import Cell, JournalEntry


@dataclass(frozen=True, slots=True)
class Folded:
    """What a cell holds once its journal is folded."""

    generation: int
    text: str
    reasoning: str


def fold(cell: Cell) -> Folded:
    """Fold the journal of a cell; without entries the cell's own text stands."""
    texts: dict[int, list[tuple[int, str]]] = {}
    thoughts: dict[int, list[tuple[int, str]]] = {}
    for entry in JournalEntry.objects.filter(cell=cell).order_by(
        "generation", "offset"
    ):
        part = texts if entry.part == JournalEntry.Part.TEXT else thoughts
        part.setdefault(entry.generation, []).append((entry.offset, entry.text))
    stored = Cell.objects.values_list("text_generation", flat=True).get(pk=cell.pk)
    newest = max(texts, default=stored)
    return Folded(
        # What was withdrawn and stands again is a newer generation than the
        # withdrawal: a page shows the empty one by now.
        generation=newest if newest >= stored else stored + 1,
        text=laid_end_to_end(texts[newest]) if texts else cell.text,
        reasoning=laid_end_to_end(thoughts[max(thoughts)])
        if thoughts
        else cell.reasoning,
    )
