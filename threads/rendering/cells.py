"""Cells, rows and the composer's button as HTML, from the page's own templates.

Page and socket render through here, so a reload shows what was streamed. The
caller activates the viewer's language first.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.template.loader import render_to_string

from threads.core.snapshot import generations_of
from threads.models import Cell, JournalEntry, Round, Thread
from threads.rendering.code import language_name
from threads.rendering.stream import MarkdownStream, Slot, render_text
from threads.rendering.tools import ToolsOf


@dataclass(frozen=True, slots=True)
class CellView:
    """What a page shows of a cell: closed blocks, then what is still growing.

    Offsets count the characters of text and reasoning that this view has taken
    in; `tail` may be shorter (see `MarkdownStream`, also for `revision`). `note`
    says what is waited for, `again` numbers the try that it tells of.
    """

    generation: int
    offset: int
    blocks: tuple[str, ...]
    open_html: str = ""
    tail: str = ""
    tail_kind: str = "p"
    tail_language: str = ""
    reasoning: str = ""
    reasoning_offset: int = 0
    revision: int = 0
    note: str = ""
    again: int = 0

    @property
    def pieces(self) -> Iterator[tuple[str, int]]:
        """The closed blocks, each with the call whose tools stand there, 0 for text."""
        return ((block, getattr(block, "call", 0)) for block in self.blocks)


def view_of(
    cell: Cell, entries: Iterable[JournalEntry] = (), slots: Iterable[Slot] = ()
) -> CellView:
    """Show a cell from its row and, while it is streaming, its journal.

    The newest generation counts: what was withdrawn is not shown. A missing entry
    ends the text: what comes after a gap is shown when the gap is filled. `slots`
    say where its tools stand.
    """
    if cell.status != Cell.Status.STREAMING:
        return CellView(
            generation=cell.text_generation,
            offset=len(cell.text),
            blocks=render_text(cell.text, tuple(slots)),
            reasoning=cell.reasoning,
            reasoning_offset=len(cell.reasoning),
        )
    newest = generations_of(entries, cell.folded)[-1]
    generation = max(newest.number, cell.text_generation)
    return streaming_view(generation, newest.text, newest.reasoning, slots)


def streaming_view(
    generation: int, text: str, reasoning: str, slots: Iterable[Slot] = ()
) -> CellView:
    """Show a text that goes on growing."""
    stream = MarkdownStream()
    stream.lay(text, slots)
    return CellView(
        generation=generation,
        offset=stream.length,
        blocks=tuple(stream.blocks),
        open_html=stream.open_html,
        tail=stream.tail,
        tail_kind=stream.tail_kind,
        tail_language=language_name(stream.tail_language),
        reasoning=reasoning,
        reasoning_offset=len(reasoning),
        revision=stream.revision,
    )


@dataclass(frozen=True, slots=True)
class Versions:
    """Which of several versions a cell is, and the ids of those beside it."""

    number: int
    count: int
    earlier: int | None
    later: int | None


def versions_of(cells: Sequence[Cell]) -> dict[int, Versions]:
    """Return the versions of cells of one thread, by cell; one query for all.

    A cell that has no other version is not among them. Answers are counted within
    their question, questions within their place.
    """
    if not cells:
        return {}
    thread = Cell.objects.filter(thread_id=cells[0].thread_id)
    changed = thread.filter(version__gt=1)
    if len(cells) == 1:
        changed = changed.filter(position=cells[0].position)
    families: dict[tuple[int, int | None], list[int]] = {}
    for pk, position, question_id in (
        thread.filter(position__in=changed.values("position"))
        .order_by("version")
        .values_list("pk", "position", "question_id")
    ):
        families.setdefault((position, question_id), []).append(pk)
    return {
        cell.pk: _among(cell.pk, family)
        for cell in cells
        if len(family := families.get((cell.position, cell.question_id), [])) > 1
    }


def _among(pk: int, family: list[int]) -> Versions:
    place = family.index(pk)
    return Versions(
        number=place + 1,
        count=len(family),
        earlier=family[place - 1] if place else None,
        later=family[place + 1] if place + 1 < len(family) else None,
    )


class Shared:
    """What cells of one thread are rendered with, read once for all of them.

    `more` are the offered `models` and the operator's `edited` words, as a page
    has them; without these each cell looks for its own.
    """

    def __init__(self, cells: Sequence[Cell], **more: object) -> None:
        self.versions = versions_of(cells)
        self.tools = ToolsOf(cells)
        self._more = more

    def context(self, cell: Cell) -> dict[str, object]:
        """What a cell's templates need, but for its view and its place."""
        return {
            **self._more,
            "cell": cell,
            "versions": self.versions.get(cell.pk),
            "tools": self.tools,
        }


def cell_html(
    cell: Cell, view: CellView, *, swap: str = "", shared: Shared | None = None
) -> str:
    """Render a whole cell; `swap` is its hx-swap-oob, for the socket."""
    context = (shared or Shared([cell])).context(cell)
    return render_to_string(
        "threads/_cell.html", context | {"view": view, "swap": swap}
    )


def tools_html(cell: Cell, call: int, tools: ToolsOf) -> str:
    """Render the tools of one call of a cell."""
    return render_to_string(
        "threads/_tools.html", {"cell": cell, "call": call, "tools": tools}
    )


def foot_html(cell: Cell, *, swap: str = "", shared: Shared | None = None) -> str:
    """Render what stands under an answer: how it ended, and the small actions."""
    context = (shared or Shared([cell])).context(cell)
    return render_to_string("threads/_foot.html", context | {"swap": swap})


def composer_state_html(
    thread: Thread | None, active_round: Round | None, *, swap: str = ""
) -> str:
    """Render the composer's button: Stop while a round is under way, else Send."""
    return render_to_string(
        "threads/_composer_state.html",
        {"thread": thread, "active_round": active_round, "swap": swap},
    )


def with_states(threads: QuerySet[Thread]) -> QuerySet[Thread]:
    """Annotate what a row tells: `is_running`, `is_asking`, and of its last answer the
    `last_status` and what its sentence is made of."""
    answers = Cell.objects.filter(
        thread=OuterRef("pk"), is_current=True, role=Cell.Role.ASSISTANT
    ).order_by("-position")
    active = Round.objects.filter(thread=OuterRef("pk"), state__in=Round.ACTIVE)
    return threads.annotate(
        is_running=Exists(active),
        is_asking=Exists(active.filter(state=Round.State.ASKING)),
        **{
            f"last_{name}": Subquery(answers.values(name)[:1])
            for name in ("status", "sentence_key", "sentence_params", "sentence")
        },
    )


def thread_row_html(thread: Thread, *, swap: str = "", is_current: bool = True) -> str:
    """Render a thread's row in the list, its state read anew from the database.

    `is_current` marks the row of the page it goes to; a thread's socket serves
    pages of that thread.
    """
    row = with_states(Thread.objects.filter(pk=thread.pk)).first() or thread
    return render_to_string(
        "threads/_thread_row.html",
        {"row": row, "current": row if is_current else None, "swap": swap},
    )
