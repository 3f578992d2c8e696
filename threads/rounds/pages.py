"""What a socket's page lacks, read from the database and rendered.

Synchronous, and all in one go: a socket asks for everything at once. The caller
has activated the viewer's language.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Min, Q
from django.utils.functional import SimpleLazyObject
from django.utils.translation import get_language

from threads.choices import offered_choices
from threads.core.snapshot import Position
from threads.models import Cell, JournalEntry, Round, Thread
from threads.rendering import (
    CellView,
    Shared,
    cell_html,
    composer_state_html,
    foot_html,
    thread_row_html,
    view_of,
)
from threads.rounds.hub import live_state, live_view
from threads.rounds.published import Shown
from threads.sentences import edited_words

# Of a thread that grew by more while nobody looked, a reload shows the rest.
MOST_CELLS = 200


@dataclass(slots=True)
class Lack:
    """What one page lacks, as ids.

    `begun` cells are new to the page, or new versions of what it shows; `placed`
    ones take the place of what it shows. `whole` cells are sent again whole;
    `doubtful` ones only if they are over. `ended` ones get their foot, and if they
    stand elsewhere than the page says, their whole text. A page that says which
    cells it `shows` lacks the current ones in their places.
    """

    begun: set[int] = field(default_factory=set)
    placed: set[int] = field(default_factory=set)
    shows: frozenset[int] = frozenset()
    whole: set[int] = field(default_factory=set)
    doubtful: set[int] = field(default_factory=set)
    ended: dict[int, Position | None] = field(default_factory=dict)
    rows: set[int] = field(default_factory=set)
    newer: bool = False
    composer: bool = False

    def __bool__(self) -> bool:
        return bool(
            self.begun
            or self.placed
            or self.whole
            or self.doubtful
            or self.ended
            or self.rows
            or self.newer
            or self.composer
        )


@dataclass(slots=True)
class Reading:
    """The messages that fill a lack, and what the page shows after them."""

    position: int
    messages: list[str] = field(default_factory=list)
    shown: dict[int, Shown] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)


def read(thread_id: int, owner_id: int, *, position: int, lack: Lack) -> Reading | None:
    """Fill a lack of the page that shows cells up to `position`.

    None when the thread is not this person's, or has been deleted.
    """
    thread = Thread.objects.filter(
        pk=thread_id, owner_id=owner_id, deleted_at=None
    ).first()
    if thread is None:
        return None
    reading = Reading(position)
    _read_new(thread, lack, reading)
    wanted = lack.whole | lack.doubtful | set(lack.ended)
    known = list(_cells(thread, wanted))
    shared = _shared(known)
    for cell in known:
        _read_known(cell, lack, reading, shared)
    if lack.composer:
        active = Round.objects.filter(thread=thread, state__in=Round.ACTIVE).first()
        reading.messages.append(composer_state_html(thread, active, swap="outerHTML"))
    rows = Thread.objects.filter(pk__in=lack.rows, owner_id=owner_id, deleted_at=None)
    reading.messages += [
        thread_row_html(row, swap="outerHTML", is_current=row.pk == thread_id)
        for row in rows
    ]
    return reading


def _shared(cells: list[Cell]) -> Shared:
    """What rendering these cells takes; an answer being written needs only some."""
    return Shared(
        cells,
        models=SimpleLazyObject(lambda: offered_choices()),
        edited=SimpleLazyObject(lambda: edited_words(get_language() or "en")),
    )


def _cells(thread: Thread, ids: Iterable[int]) -> Iterable[Cell]:
    return (
        Cell.objects.filter(thread=thread, pk__in=ids)
        .select_related("question", "round__model", "round__route")
        .order_by("position")
    )


def _read_new(thread: Thread, lack: Lack, reading: Reading) -> None:
    """Add cells that the page has no place for yet, and those that take a place.

    The page puts each by its position: at the end, or where another one stood.
    """
    known = Q(position__lte=reading.position)
    versions = Q(pk__in=lack.placed) | Q(pk__in=lack.begun, version__gt=1)
    wanted = known & (versions | _missed(thread, lack))
    if lack.newer or lack.begun:
        wanted |= ~known
    cells = list(
        Cell.objects.filter(wanted, thread=thread)
        .select_related("question", "round__model", "round__route")
        .shown()[:MOST_CELLS]
    )
    if cells:
        shared = _shared(cells)
        html = "".join(_whole(cell, reading, shared) for cell in cells)
        reading.messages.append(f'<div hx-swap-oob="beforeend:#cells">{html}</div>')
        reading.position = max(reading.position, cells[-1].position)


def _missed(thread: Thread, lack: Lack) -> Q:
    """What took the place of a cell that the page shows, while its socket was shut."""
    if not lack.shows:
        return Q(pk=None)
    shown = Cell.objects.filter(thread=thread, pk__in=lack.shows)
    first = shown.aggregate(first=Min("position"))["first"]
    return Q(position__gte=first or 0) & ~Q(pk__in=lack.shows)


def _read_known(cell: Cell, lack: Lack, reading: Reading, shared: Shared) -> None:
    is_over = cell.status != Cell.Status.STREAMING
    if is_over:
        reading.over.add(cell.pk)
    if not cell.is_current:
        return
    if cell.pk in lack.whole or (cell.pk in lack.doubtful and is_over):
        reading.messages.append(_whole(cell, reading, shared, swap="outerHTML"))
        return
    if cell.pk not in lack.ended or not is_over:
        return
    stands = Position(cell.text_generation, len(cell.text))
    if lack.ended[cell.pk] != stands:
        reading.messages.append(_whole(cell, reading, shared, swap="outerHTML"))
    else:
        reading.messages.append(foot_html(cell, swap="outerHTML", shared=shared))
    reading.messages.append(
        json.dumps({"c": cell.pk, "g": cell.text_generation, "s": cell.status})
    )


def _whole(cell: Cell, reading: Reading, shared: Shared, *, swap: str = "") -> str:
    """Render a cell whole, and remember what the page shows of it then."""
    view = None
    if cell.status == Cell.Status.STREAMING:
        state = live_state(cell.pk)
        if state is not None:
            view = live_view(cell.pk, state) or state.view()
            reading.shown[cell.pk] = state.shown
        else:
            view = view_of(cell, JournalEntry.objects.filter(cell=cell))
            reading.shown[cell.pk] = place_of(view)
    return cell_html(cell, view or view_of(cell), swap=swap, shared=shared)


def place_of(view: CellView) -> Shown:
    """Return where a page stands that shows a view read from the journal."""
    return Shown(
        generation=view.generation,
        blocks=len(view.blocks),
        offset=view.offset,
        reasoning=view.reasoning_offset,
    )
