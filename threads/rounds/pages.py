"""What a socket's page lacks, read from the database and rendered.

Synchronous, and all in one go: a socket asks for everything at once. The caller
has activated the viewer's language.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from django.db.models import Min, Q
from django.utils.functional import SimpleLazyObject
from django.utils.translation import get_language

from threads.choices import offered_choices
from threads.core.snapshot import Position
from threads.models import Cell, Round, Thread
from threads.rendering import (
    CellView,
    Shared,
    cell_html,
    composer_state_html,
    foot_html,
    thread_row_html,
    tools_html,
    view_of,
)
from threads.rounds.hub import live_state, live_view
from threads.rounds.notes import Note, asking
from threads.rounds.published import Shown
from threads.sentences import edited_words

# Of a thread that grew by more while nobody looked, a reload shows the rest.
MOST_CELLS = 200

NOTHING = view_of(Cell())

EVERY_CALL = 0
"""Stands for all calls; they are numbered from 1."""


@dataclass(slots=True)
class Lack:
    """What one page lacks, as ids.

    `begun` cells are new to the page, or new versions of what it shows; `placed`
    ones take the place of what it shows. `whole` cells are sent again whole;
    `doubtful` ones only if they stand elsewhere than the page says. `ended` ones get their foot, and if they
    stand elsewhere than the page says, their whole text. A page that says which
    cells it `shows` lacks the current ones in their places. Of the cells in `tools`
    it lacks the tools of some calls, or of all.
    """

    begun: set[int] = field(default_factory=set)
    placed: set[int] = field(default_factory=set)
    shows: frozenset[int] = frozenset()
    whole: set[int] = field(default_factory=set)
    doubtful: dict[int, Shown] = field(default_factory=dict)
    ended: dict[int, Position | None] = field(default_factory=dict)
    tools: dict[int, set[int]] = field(default_factory=dict)
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
            or self.tools
            or self.rows
            or self.newer
            or self.composer
        )

    def lacks_tools(self, cell_id: int, *calls: int) -> None:
        """Note that it lacks the tools of a call; without one, of every call."""
        self.tools.setdefault(cell_id, set()).update(calls or {EVERY_CALL})


@dataclass(slots=True)
class Reading:
    """The messages that fill a lack, and what the page shows after them.

    `notes` are those of cells that nobody writes, with the generation they are of.
    """

    position: int
    messages: list[str] = field(default_factory=list)
    shown: dict[int, Shown] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)
    notes: dict[int, tuple[int, Note]] = field(default_factory=dict)


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
    wanted = lack.whole | {*lack.doubtful, *lack.ended}
    known = list(_cells(thread, wanted | set(lack.tools)))
    shared = _shared(known)
    for cell in known:
        _read_tools(cell, lack, reading, shared)
        if cell.pk in wanted:
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
        .prefetch_related("round__route__steps__model")
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
        .prefetch_related("round__route__steps__model")
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
    if cell.pk in lack.whole or _is_elsewhere(cell, lack, shared):
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


def _is_elsewhere(cell: Cell, lack: Lack, shared: Shared) -> bool:
    """Tell whether a page shows an older state of a cell that nobody here writes."""
    page = lack.doubtful.get(cell.pk)
    if page is None or cell.status != Cell.Status.STREAMING:
        return page is not None
    return live_state(cell.pk) is None and place_of(stored_view(cell, shared)) != page


def _read_tools(cell: Cell, lack: Lack, reading: Reading, shared: Shared) -> None:
    """Add the tools of a cell: each call's go where its text has a place for them."""
    calls = {EVERY_CALL} if cell.pk in lack.ended else lack.tools.get(cell.pk)
    if calls is None or not cell.is_current:
        return
    for call in shared.tools.calls(cell.pk):
        if calls & {call, EVERY_CALL}:
            html = tools_html(cell, call, shared.tools)
            reading.messages.append(json.dumps({"c": cell.pk, "tools": html}))
    if cell.status == Cell.Status.STREAMING and is_asking(cell):
        reading.notes[cell.pk] = cell.text_generation, asking()


def _whole(cell: Cell, reading: Reading, shared: Shared, *, swap: str = "") -> str:
    """Render a cell whole, and remember what the page shows of it then."""
    view, state = None, live_state(cell.pk)
    if cell.status == Cell.Status.STREAMING and state is not None:
        view = live_view(cell.pk, state) or state.view()
        reading.shown[cell.pk] = state.shown
    else:
        view = stored_view(cell, shared)
        if cell.status == Cell.Status.STREAMING:
            reading.shown[cell.pk] = place_of(view)
    return cell_html(cell, view, swap=swap, shared=shared)


def stored_view(cell: Cell, shared: Shared) -> CellView:
    """Show a cell as the database has it."""
    if cell.role == Cell.Role.USER:
        # Shown as it was written: nothing of it is rendered.
        return NOTHING
    slots = shared.tools.slots(cell.pk)
    if cell.status != Cell.Status.STREAMING:
        return view_of(cell, slots=slots)
    view = view_of(cell, cell.journal.all(), slots)
    return replace(view, note=asking().text) if is_asking(cell) else view


def is_asking(cell: Cell) -> bool:
    """Tell whether the round that writes a cell waits for a person."""
    round_ = getattr(cell, "round", None)
    return round_ is not None and round_.state == Round.State.ASKING


def place_of(view: CellView) -> Shown:
    """Return where a page stands that shows a view read from the journal."""
    return Shown(
        generation=view.generation,
        blocks=len(view.blocks),
        offset=view.offset,
        reasoning=view.reasoning_offset,
    )
