"""Reading a cell out of its journal, by the rule of `threads.core.snapshot`."""

from dataclasses import dataclass

from django.db import transaction

from threads.core.snapshot import generations_of, last_read
from threads.models import Cell, JournalEntry


@dataclass(frozen=True, slots=True)
class Folded:
    """What a cell holds once its journal is folded."""

    generation: int
    text: str
    reasoning: str


def fold(cell: Cell) -> Folded:
    """Fold the journal of a cell; without entries the cell's own text stands."""
    entries = JournalEntry.objects.filter(cell=cell)
    stands = last_read(generations_of(entries, cell.folded))
    stored = Cell.objects.values_list("text_generation", flat=True).get(pk=cell.pk)
    return Folded(max(stands.number, stored), stands.text, stands.reasoning)


def take_up(cell: Cell) -> Folded:
    """Fold what an earlier worker wrote of a cell, so that another goes on from it.

    What pages show is what stands: a draft that was withdrawn does not come back,
    since what came in its place may be no text but a tool call.
    """
    entries = list(JournalEntry.objects.filter(cell=cell))
    newest = generations_of(entries, cell.folded)[-1]
    number = max(newest.number, cell.text_generation)
    folded = Folded(number, newest.text, newest.reasoning)
    if entries:
        with transaction.atomic():
            Cell.objects.filter(pk=cell.pk).update(
                text=folded.text,
                reasoning=folded.reasoning,
                text_generation=folded.generation,
            )
            JournalEntry.objects.filter(cell=cell).delete()
    return folded
