"""One reducer: what is rebuilt from the journal is what is live (requirement E10)."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from threads.core.snapshot import Generation, generations_of, last_read
from threads.models import Cell, JournalEntry
from threads.rendering import Slot, tools_slot
from threads.rendering.cells import CellView, view_of
from threads.rounds.journal import Row, Writer
from threads.rounds.live import LiveCell

PIECES = st.sampled_from(["ha ", "ha ha", " ", "\n\n", "```\n", "- a\n", "**b**", "😀"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["text", "reason"]), PIECES),
        st.tuples(
            st.sampled_from(["cut", "call", "tools", "flush", "publish"]), st.none()
        ),
    ),
    max_size=40,
)
CUT, CALL, FLUSH = ("cut", None), ("call", None), ("flush", None)
TOOLS = ("tools", None)


class Journalled:
    """A live cell, its writer, and the rows that were committed."""

    def __init__(self) -> None:
        self.live = LiveCell(1, 1, touch=lambda _: None)
        self.writer = Writer(1, self.live, on_stop=_nothing, on_lost=_nothing)
        self.rows: list[Row] = []
        self.turns: list[tuple[int, int]] = []
        self.call = self.attempt = 1
        self.live.begin_attempt(1, 1)

    def do(self, kind: str, piece: str | None) -> None:
        """Take one step, as a round takes it."""
        match kind:
            case "text" if piece:
                self.live.append(piece)
            case "reason" if piece:
                self.live.reason(piece)
            case "cut":
                self.cut()
            case "call" | "tools":
                if kind == "tools":
                    self.turns.append((self.call, self.live.length))
                    self.live.place_tools(self.call)
                self.call, self.attempt = self.call + 1, 1
                self.live.begin_attempt(self.call, 1)
            case "publish":
                self.live.publish()
            case _:
                self.flush()

    def cut(self) -> None:
        """Withdraw the attempt and begin the next one."""
        self.writer.collect()
        before, mark = self.live.text, self.live.mark
        if self.live.withdraw(self.call, self.attempt):
            self.writer.collect()
        assert self.live.text == before[: mark.length]
        self.attempt += 1
        self.live.begin_attempt(self.call, self.attempt)

    @property
    def slots(self) -> list[Slot]:
        """Where tools stand, as the rows of the turns say."""
        return [tools_slot(1, call, length) for call, length in self.turns]

    def flush(self) -> list[Generation]:
        """Commit what was gathered, and rebuild the cell from all that was."""
        page = self.writer.page()
        self.rows += page.rows
        self.writer.written(page)
        rebuilt, live = generations_of(self.rows), self.live
        assert (rebuilt[-1].text, rebuilt[-1].reasoning) == (live.text, live.reasoning)
        assert rebuilt[-1].number == page.generation == live.generation
        assert [each.number for each in rebuilt] == list(range(live.generation + 1))
        return rebuilt


def _nothing() -> None:
    pass


def stored(rows: list[Row]) -> list[JournalEntry]:
    """The rows as a page reads them."""
    return [
        JournalEntry(
            cell_id=1,
            part=row.part,
            generation=row.generation,
            offset=row.offset,
            text=row.text,
        )
        for row in rows
    ]


def read(view: CellView) -> tuple[object, ...]:
    """What of a view is read, and from where it goes on."""
    return (
        view.generation,
        view.offset,
        view.blocks,
        view.open_html + view.tail,
        view.reasoning,
        view.reasoning_offset,
    )


@settings(max_examples=200, deadline=None)
@example([("text", "ha ha"), CUT, CUT, CUT])
@example([("text", "ha "), FLUSH, CUT, ("text", "ha ha"), CUT])
@example([("text", "ha ha"), CALL, ("text", "ha "), FLUSH, CUT, ("text", " "), CUT])
@example([("reason", "ha "), CUT, ("reason", " "), CUT])
@example([("text", "ha "), ("reason", "ha "), CALL, ("reason", " "), CUT])
@example([("text", "- a\n"), TOOLS, TOOLS, ("text", "\n\n"), ("text", "**b**"), CUT])
@example([("text", "```\n"), TOOLS, ("text", "ha ha"), CUT, ("text", "- a\n")])
@given(STEPS)
def test_the_live_cell_and_the_rebuilt_one_agree_and_end_alike(
    steps: list[tuple[str, Any]],
) -> None:
    cell = Journalled()
    for kind, piece in steps:
        cell.do(kind, piece)

    rebuilt = cell.flush()
    cell.live.publish()
    streaming = Cell(pk=1, status=Cell.Status.STREAMING)
    shown = read(view_of(streaming, stored(cell.rows), cell.slots))
    assert shown == read(cell.live.published.view())

    stands = last_read(rebuilt)
    cell.writer.collect()
    cell.live.settle()
    assert (stands.text, stands.reasoning) == (cell.live.text, cell.live.reasoning)
    assert stands.number == cell.live.generation
    cell.live.finish()
    over = Cell(pk=1, status=Cell.Status.DONE, text=stands.text)
    assert view_of(over, slots=cell.slots).blocks == cell.live.published.view().blocks
    # What was written of the end is read as it is, whoever reads it.
    assert last_read(cell.flush()) == cell.flush()[-1]


@settings(max_examples=100, deadline=None)
@example([("text", "ha "), CUT, ("text", " "), CUT, CUT])
@given(STEPS)
def test_no_text_that_was_read_is_lost_but_to_a_later_one(
    steps: list[tuple[str, Any]],
) -> None:
    cell, last = Journalled(), ""
    for kind, piece in steps:
        cell.do(kind, piece)
        if kind == "text" and cell.live.text[cell.live.mark.length :].strip():
            last = cell.live.text

    cell.live.settle()

    assert cell.live.text.startswith(last)
