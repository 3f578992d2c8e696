"""The journal: what was streamed, on its way into the database.

One task for all live cells of a loop. Every few hundred milliseconds it takes
what they have gathered and commits it in one transaction, together with the
rounds' heartbeats; so database work grows with time and not with tokens. In the
same breath it learns of a stop pressed in another process and of a round that
somebody else has ended.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from django.db import DatabaseError, IntegrityError, InterfaceError, transaction
from django.utils import timezone

from threads.core.snapshot import Part
from threads.models import Cell, JournalEntry, Round
from threads.perloop import PerLoop, start_task
from threads.rounds.database import in_database
from threads.rounds.live import LiveCell
from threads.rounds.worker import worker_id

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 0.3
# The marker of a stop pressed elsewhere is looked for even in silence.
LOOK_SECONDS = 1.0
HEARTBEAT_SECONDS = 5.0
# While the database does not take anything, it is asked less often.
BACKOFF_SECONDS = 2.0

TEXT, REASONING = Part.TEXT, Part.REASONING
WITHDRAWAL, RESTATED = Part.WITHDRAWAL, Part.RESTATED


@dataclass(frozen=True, slots=True)
class Row:
    """One entry to write; offsets count characters."""

    part: str
    generation: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """What one round has to write."""

    round_id: int
    cell_id: int
    generation: int
    rows: tuple[Row, ...]


@dataclass(slots=True)
class Tidings:
    """What a flush learned: rounds that are not ours any more, or were stopped."""

    lost: set[int] = field(default_factory=set)
    stopped: set[int] = field(default_factory=set)


class Writer:
    """One round's pen: remembers what of its cell is already written.

    What the cell holds when the pen is taken up counts as written.
    """

    def __init__(
        self,
        round_id: int,
        live: LiveCell,
        *,
        on_stop: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        self.round_id = round_id
        self.live = live
        self.on_stop = on_stop
        self.on_lost = on_lost
        self.is_lost = False
        self._rows: list[Row] = []
        self._generation = self._reasoning_generation = live.generation
        self._parts, self._offset = len(live.parts), live.length
        self._reasoning_parts = len(live.reasoning_parts)
        self._reasoning_offset = live.reasoning_length

    def collect(self) -> None:
        """Take over what the cell has gathered; call before a generation begins."""
        live = self.live
        if live.generation == self._generation:
            self._take_text("".join(live.parts[self._parts :]))
        elif live.withdrawal is not None:
            mark = live.withdrawal
            self._generation, self._offset = live.generation, mark.length
            thoughts = f" {mark.reasoning_length}" if mark.reasoning_length else ""
            name = mark.name + thoughts
            self._rows.append(Row(WITHDRAWAL, live.generation, mark.length, name))
            self._take_text("".join(live.parts[mark.parts :]))
        else:
            # A restated text is recorded whole, even where it is empty.
            self._generation, self._offset = live.generation, live.length
            self._parts = len(live.parts)
            self._rows.append(Row(RESTATED, live.generation, 0, live.text))
        if live.generation != self._reasoning_generation:
            # A generation is read by itself, so it repeats the reasoning.
            self._reasoning_generation = live.generation
            self._reasoning_parts = self._reasoning_offset = 0
        thoughts = "".join(live.reasoning_parts[self._reasoning_parts :])
        self._reasoning_parts = len(live.reasoning_parts)
        if thoughts:
            place = (self._reasoning_generation, self._reasoning_offset)
            self._rows.append(Row(REASONING, *place, thoughts))
            self._reasoning_offset += len(thoughts)

    def _take_text(self, text: str) -> None:
        self._parts = len(self.live.parts)
        if text:
            self._rows.append(Row(TEXT, self._generation, self._offset, text))
            self._offset += len(text)

    def page(self) -> Page:
        """Return what is to be written now."""
        self.collect()
        return Page(
            self.round_id, self.live.cell_id, self.live.generation, tuple(self._rows)
        )

    def written(self, page: Page) -> None:
        """Forget what has been committed."""
        del self._rows[: len(page.rows)]


def write_pages(pages: list[Page], *, beat: bool) -> Tidings:
    """Commit the pages of the rounds that this process still holds.

    A page that collides with another writer's makes its round lost; the others
    are written all the same.
    """
    tidings = Tidings()
    ids = sorted(page.round_id for page in pages)
    with transaction.atomic():
        held = Round.objects.filter(
            pk__in=ids, worker=worker_id(), state=Round.State.RUNNING
        )
        markers = dict(
            held.select_for_update()
            .order_by("pk")
            .values_list("pk", "stop_requested_at")
        )
        tidings.lost = set(ids) - set(markers)
        tidings.stopped = {pk for pk, stop in markers.items() if stop is not None}
        ours = [page for page in pages if page.round_id in markers]
        try:
            with transaction.atomic():
                _insert(ours)
        except IntegrityError:
            for page in ours:
                try:
                    with transaction.atomic():
                        _insert([page])
                except IntegrityError:
                    tidings.lost.add(page.round_id)
        if beat:
            held.update(heartbeat_at=timezone.now())
    return tidings


def _insert(pages: list[Page]) -> None:
    entries = [
        JournalEntry(
            cell_id=page.cell_id,
            part=row.part,
            generation=row.generation,
            offset=row.offset,
            text=row.text,
        )
        for page in pages
        for row in page.rows
    ]
    if entries:
        JournalEntry.objects.bulk_create(entries)
    for page in pages:
        if page.generation:
            Cell.objects.filter(
                pk=page.cell_id, text_generation__lt=page.generation
            ).update(text_generation=page.generation)


class Journal:
    """The flusher of one event loop."""

    def __init__(self) -> None:
        self._writers: dict[int, Writer] = {}
        self._flusher: asyncio.Task[None] | None = None
        self._flushes: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()
        self._beaten_at = 0.0
        self._looked_at = 0.0

    def open(self, writer: Writer) -> None:
        """Begin to write for a round that this process has claimed."""
        self._writers[writer.round_id] = writer
        if self._flusher is None or self._flusher.done():
            self._flusher = start_task(self._flush_for_ever(), name="journal")

    def close(self, writer: Writer) -> None:
        """Write for a round no longer; what it had not flushed is dropped."""
        self._writers.pop(writer.round_id, None)

    async def flush_now(self, writer: Writer) -> None:
        """Commit all that this round has gathered, and whatever else is waiting.

        A caller who is cancelled meanwhile does not cut the flush in two: what has
        been committed must be known to be.

        Raises:
            DatabaseError: it could not be written; it is kept and tried again.
        """
        flush = start_task(self._flush_for(writer), name="flush")
        self._flushes.add(flush)
        flush.add_done_callback(self._flushes.discard)
        await asyncio.shield(flush)

    async def _flush_for(self, writer: Writer) -> None:
        async with self._lock:
            if writer.page().rows and not writer.is_lost:
                await self._flush()

    async def _flush_for_ever(self) -> None:
        """Flush once an interval while any round is open."""
        pause = FLUSH_SECONDS
        while self._writers:
            await asyncio.sleep(pause)
            pause = FLUSH_SECONDS
            try:
                async with self._lock:
                    await self._flush()
            except (DatabaseError, InterfaceError) as error:
                # Kept and tried again; the round itself goes on.
                logger.warning("JOURNAL_NOT_WRITTEN %s", type(error).__name__)
                pause = BACKOFF_SECONDS

    async def _flush(self) -> None:
        now = monotonic()
        beat = now - self._beaten_at >= HEARTBEAT_SECONDS
        look = beat or now - self._looked_at >= LOOK_SECONDS
        writers = {w.round_id: w for w in self._writers.values() if not w.is_lost}
        pages = [writer.page() for writer in writers.values()]
        due = [page for page in pages if look or page.rows]
        if not due:
            return
        tidings = await in_database(write_pages, due, beat=beat)
        for page in due:
            writers[page.round_id].written(page)
        self._looked_at = now if look else self._looked_at
        self._beaten_at = now if beat else self._beaten_at
        _pass_on(tidings, writers)


def _pass_on(tidings: Tidings, writers: dict[int, Writer]) -> None:
    for round_id in tidings.lost:
        writers[round_id].is_lost = True
        writers[round_id].on_lost()
    for round_id in tidings.stopped:
        writers[round_id].on_stop()


_journals = PerLoop(Journal)


def journal() -> Journal:
    """Return the running loop's journal."""
    return _journals.get()
