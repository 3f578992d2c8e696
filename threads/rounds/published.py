"""What the world sees of a cell that is being written: values, and no behaviour."""

from dataclasses import dataclass

from threads.rendering import CellView

UNKNOWN_TAIL = -1


@dataclass(frozen=True, slots=True)
class Shown:
    """How far one page shows a cell.

    `offset` and `reasoning` count characters, `blocks` the closed blocks and
    `tail` the characters of the open one. `revision` is the stream's: while it
    stays the same, text is only appended to the tail.
    """

    generation: int = 0
    revision: int = UNKNOWN_TAIL
    blocks: int = 0
    tail: int = 0
    offset: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Published:
    """One state of a cell as pages may show it.

    The lists are shared with the writer, who only appends to them; the counts
    say how much of them belongs to this state.
    """

    shown: Shown
    all_blocks: list[str]
    open_html: str
    tail: str
    tail_kind: str
    tail_language: str
    reasoning_parts: list[str]
    reasoning_count: int
    withdrawn: str

    def view(self) -> CellView:
        """Return what a page or a template shows of this state."""
        return CellView(
            generation=self.shown.generation,
            offset=self.shown.offset,
            blocks=tuple(self.all_blocks[: self.shown.blocks]),
            open_html=self.open_html,
            tail=self.tail,
            tail_kind=self.tail_kind,
            tail_language=self.tail_language,
            reasoning="".join(self.reasoning_parts[: self.reasoning_count]),
            reasoning_offset=self.shown.reasoning,
            revision=self.shown.revision,
        )


@dataclass(slots=True)
class Activity:
    """What the cell is waiting for; pages word it in their own language.

    `kind` is "model", "reissue", "regenerate" or "tool"; `since` and `until`, when
    a wait ends, are monotonic. `attempt` of `total` comes next, or is under way.
    """

    kind: str = "model"
    since: float = 0.0
    name: str = ""
    attempt: int = 1
    total: int = 1
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Mark:
    """Where an attempt began: the pieces, and the characters, before it."""

    call: int = 0
    attempt: int = 0
    parts: int = 0
    length: int = 0
    reasoning_parts: int = 0
    reasoning_length: int = 0

    @property
    def name(self) -> str:
        """The attempt as journal and frames name it."""
        return f"{self.call}.{self.attempt}"
