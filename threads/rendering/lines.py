"""Where one top-level Markdown block ends and the next begins, line by line.

Owns the block structure of CommonMark (with tables) as far as it decides where a
block may be cut out of a growing text. Never looks at a line twice and renders
nothing.

How it works: a `Scanner` is told complete lines and keeps the state of the block
that is open. Quotes and list items hold a scanner of their own for what is inside,
because a line without a marker still belongs to them while a paragraph is open
there. Of the last, unfinished line a scanner can be asked what is certain whatever
follows; `None` stands for "not yet certain".

Where it departs from CommonMark it keeps two neighbouring blocks together or
apart; no text is ever lost, and a whole text is cut exactly as a streamed one.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

# Deeper nesting is read as text, as markdown-it does (its maxNesting is 20).
DEEPEST = 20


class LineKind(Enum):
    """What a line would be at the start of a block."""

    BLANK = auto()
    TEXT = auto()
    INDENTED = auto()
    HEADING = auto()
    RULE = auto()
    FENCE = auto()
    QUOTE = auto()
    ITEM = auto()


class BlockKind(Enum):
    """What is open."""

    NONE = auto()
    PARAGRAPH = auto()
    FENCE = auto()
    INDENTED = auto()
    QUOTE = auto()
    LIST = auto()
    TABLE = auto()


class Relation(Enum):
    """How a line stands to the open block."""

    CONTINUES = auto()
    BEGINS = auto()
    ENDS = auto()


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its indentation; `kind` is None while that is uncertain.

    For a list item `marker` is the character that tells lists apart, `content`
    the column, counted from the marker, at which its text begins. For a fence
    `marker` is the run that opens it.
    """

    text: str
    indent: int
    kind: LineKind | None
    marker: str = ""
    content: int = 0
    interrupts: bool = True


HEADING = re.compile(r"#{1,6}(?:[ \t]|$)")
RULE = re.compile(r"(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
ITEM = re.compile(r"([-*+]|\d{1,9}([.)]))(?:([ \t]+)(.*))?$", re.DOTALL)
UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*$")
DELIMITER = re.compile(r"[ \t]*:?-+:?[ \t]*$")
# An unfinished line of this form can still become something else.
UNCERTAIN = re.compile(
    r"#{1,6}$|`{1,2}$|`{3,}[^`]*$|~{1,2}$|~{3,}|([-*_])(?:\1|[ \t])*$|\+[ \t]*$|=+[ \t]*$"
    r"|\d{1,9}(?:[.)][ \t]*)?$|[|:][|:\- \t]*$"
)


def read(raw: str, *, complete: bool) -> Line:
    """Take a line's indentation off and tell what it is."""
    text = raw.lstrip(" \t")
    indent = len(raw[: len(raw) - len(text)].expandtabs(4))
    text = text.rstrip(" \t\n") if complete else text
    if not text:
        return Line(text, indent, LineKind.BLANK if complete else None)
    if indent >= 4:
        return Line(text, indent, LineKind.INDENTED)
    if not complete and UNCERTAIN.match(text):
        return Line(text, indent, None)
    return recognise(text, indent)


def recognise(text: str, indent: int) -> Line:
    """Tell what a line is that is indented by less than a code block."""
    if text[0] == ">":
        return Line(text, indent, LineKind.QUOTE)
    if HEADING.match(text):
        return Line(text, indent, LineKind.HEADING)
    if RULE.match(text):
        return Line(text, indent, LineKind.RULE)
    if fence := FENCE.match(text):
        return Line(text, indent, LineKind.FENCE, marker=fence[1] or fence[2])
    if item := ITEM.match(text):
        mark, delimiter, gap, content = item.groups()
        width = len((gap or " ").expandtabs(4))
        return Line(
            text,
            indent,
            LineKind.ITEM,
            marker=delimiter or mark,
            content=len(mark) + (width if width <= 4 else 1),
            interrupts=bool(content) and (not delimiter or int(mark[:-1]) == 1),
        )
    return Line(text, indent, LineKind.TEXT)


def cells_of(row: str) -> list[str]:
    """Split a table row; the outer bars are optional."""
    return re.split(r"(?<!\\)\|", row.strip().removeprefix("|").removesuffix("|"))


def stays(belongs: bool) -> Relation:
    """Word a line's belonging to the open block as a relation."""
    return Relation.CONTINUES if belongs else Relation.BEGINS


class Scanner:
    """The block that is open at one level, and what is open inside it."""

    def __init__(self, depth: int = 0) -> None:
        self.kind = BlockKind.NONE
        self.fence = ""
        self._depth = depth
        self._marker = ""
        self._content = 0
        self._inner: Scanner | None = None
        self._previous = ""

    @property
    def paragraph_open(self) -> bool:
        """Tell whether a line without markers would carry on a paragraph."""
        if self.kind in {BlockKind.QUOTE, BlockKind.LIST}:
            return self._inner is not None and self._inner.paragraph_open
        return self.kind is BlockKind.PARAGRAPH

    def close(self) -> None:
        """Forget the open block."""
        self.kind = BlockKind.NONE
        self._inner = None

    def foresee(self, unfinished: str) -> tuple[Relation | None, LineKind | None]:
        """Tell what an unfinished line will do whatever follows, and what it is."""
        if self.kind is BlockKind.FENCE:
            run = unfinished.strip(" \t")
            may_close = not run or not run.strip(self.fence[0])
            return (None if may_close else Relation.CONTINUES), None
        line = read(unfinished, complete=False)
        if line.text and self._is_inside(line):
            return Relation.CONTINUES, None
        if line.kind is None:
            return None, None
        return self._relate(line), line.kind

    def take(self, raw: str) -> Relation:
        """Take a complete line; say how it stood to the block open until then."""
        line = read(raw, complete=True)
        if self._depth >= DEEPEST and line.kind in {LineKind.QUOTE, LineKind.ITEM}:
            line = Line(line.text, line.indent, LineKind.TEXT)
        relation = self._relate(line)
        match relation:
            case Relation.BEGINS:
                self._begin(line)
            case Relation.CONTINUES:
                self._continue(line)
            case Relation.ENDS:
                self.close()
        return relation

    def _is_inside(self, line: Line) -> bool:
        """Tell whether indentation alone keeps a line in the current list item."""
        return self.kind is BlockKind.LIST and line.indent >= self._content

    def _relate(self, line: Line) -> Relation:
        blank = line.kind is LineKind.BLANK
        match self.kind:
            case BlockKind.NONE:
                return Relation.ENDS if blank else Relation.BEGINS
            case BlockKind.FENCE:
                return self._relate_to_fence(line)
            case BlockKind.PARAGRAPH:
                return self._relate_to_paragraph(line)
            case BlockKind.INDENTED:
                return stays(blank or line.kind is LineKind.INDENTED)
            case BlockKind.LIST:
                return stays(blank or self._stays_in_list(line))
            case BlockKind.TABLE:
                return Relation.ENDS if blank else stays(line.kind is LineKind.TEXT)
            case BlockKind.QUOTE:
                quoted = line.kind is LineKind.QUOTE
                return Relation.ENDS if blank else stays(quoted or self._is_lazy(line))

    def _is_lazy(self, line: Line) -> bool:
        return self.paragraph_open and line.kind in {LineKind.TEXT, LineKind.INDENTED}

    def _stays_in_list(self, line: Line) -> bool:
        if self._is_inside(line):
            return True
        if line.kind is LineKind.ITEM:
            return line.marker == self._marker
        return self._is_lazy(line)

    def _relate_to_fence(self, line: Line) -> Relation:
        run = self.fence
        closes = (
            line.indent < 4
            and len(line.text) >= len(run)
            and not line.text.strip(run[0])
        )
        return Relation.ENDS if closes else Relation.CONTINUES

    def _relate_to_paragraph(self, line: Line) -> Relation:
        if line.indent < 4 and UNDERLINE.match(line.text):
            return Relation.ENDS
        match line.kind:
            case LineKind.BLANK:
                return Relation.ENDS
            case LineKind.TEXT | LineKind.INDENTED:
                return Relation.CONTINUES
            case LineKind.ITEM if not line.interrupts:
                return Relation.CONTINUES
            case _:
                return Relation.BEGINS

    def _begin(self, line: Line) -> None:
        self._inner = None
        match line.kind:
            case LineKind.FENCE:
                self.kind, self.fence = BlockKind.FENCE, line.marker
            case LineKind.INDENTED:
                self.kind = BlockKind.INDENTED
            case LineKind.QUOTE:
                self.kind = BlockKind.QUOTE
                self._inner = Scanner(self._depth + 1)
                self._inner.take(unquoted(line.text))
            case LineKind.ITEM:
                self.kind, self._marker = BlockKind.LIST, line.marker
                self._begin_item(line)
            case LineKind.TEXT:
                self.kind, self._previous = BlockKind.PARAGRAPH, line.text
            case _:
                self.kind = BlockKind.NONE

    def _begin_item(self, line: Line) -> None:
        self._content = line.indent + line.content
        self._inner = Scanner(self._depth + 1)
        self._inner.take(line.text[line.content :])

    def _continue(self, line: Line) -> None:
        match self.kind:
            case BlockKind.PARAGRAPH:
                if self._is_table(line.text):
                    self.kind = BlockKind.TABLE
                self._previous = line.text
            case BlockKind.QUOTE if self._inner and line.kind is LineKind.QUOTE:
                self._inner.take(unquoted(line.text))
            case BlockKind.LIST if self._inner:
                if line.kind is LineKind.BLANK:
                    self._inner.take("")
                elif self._is_inside(line):
                    self._inner.take(" " * (line.indent - self._content) + line.text)
                elif line.kind is LineKind.ITEM:
                    self._begin_item(line)
            case _:
                pass

    def _is_table(self, row: str) -> bool:
        if "|" not in self._previous or row.strip("|:- \t"):
            return False
        delimiters = cells_of(row)
        return len(delimiters) == len(cells_of(self._previous)) and all(
            DELIMITER.match(cell) for cell in delimiters
        )


def unquoted(text: str) -> str:
    """Take the marker of a quotation off a line."""
    return text[1:].removeprefix(" ")
