"""A Markdown text that grows, as blocks that are closed and one that is open.

Owns the promise of design section 6: the total cost is linear in the length of the
text. A closed block is rendered once. An open list, table or quotation is rendered
again each time its complete lines have grown by half, which sums to three
renderings. Of an open fence or paragraph only the new text is looked at.

Limits, against one rendering of the whole text: a link whose definition comes in
a later block stays as written, and a list that only a later item makes loose is
rendered tight until it is closed.
"""

from collections import ChainMap
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from threads.rendering.lines import BlockKind, LineKind, Relation, Scanner
from threads.rendering.markdown import (
    LONGEST_PARSED,
    language_of,
    render_block,
    render_code,
)

# What an unfinished line is, is looked for in so many of its characters.
HEAD_LENGTH = 200
FIRST_RENDERING = 24
GROWTH = 0.5
RENDERED_WHILE_OPEN = {
    BlockKind.LIST,
    BlockKind.TABLE,
    BlockKind.QUOTE,
    BlockKind.INDENTED,
}

BLANK = " \t\n"
"""All that Markdown calls blank; other white space may stand in the tail."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A block that is no text, and the characters of text that stand before it."""

    offset: int
    block: str


class MarkdownStream:
    """Feed it text; read what a page shows.

    `blocks` holds the HTML of the closed blocks and only grows; it is the same
    however the text was cut into pieces. Then come `open_html`, the rendered part
    of an open block, and `tail`, plain text of kind `tail_kind` ("p" paragraph,
    "h" heading with its marks, "code" without its fence, "raw" any other).

    While `revision` stays the same, `tail` only grows at its end and the rest does
    not change. `length` counts the characters fed. Characters that may still turn
    out to be marks are counted and held back from the tail.
    """

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.open_html = ""
        self.tail_kind = "p"
        self.tail_language = ""
        self.revision = 0
        self.length = 0
        self._references: dict[str, Any] = {}
        self._scanner = Scanner()
        self._rendered = ""  # the source of open_html
        self._opening = ""  # the line that opened a fence
        self._shown: list[str] = []  # complete lines after those
        self._shown_length = 0
        self._line: list[str] = []  # the unfinished line
        self._head = ""
        self._held = True
        self._carriage_return = False

    @property
    def tail(self) -> str:
        """The open block's text after `open_html`."""
        if len(self._shown) > 1:
            self._shown = ["".join(self._shown)]
        unfinished = "" if self._held else "".join(self._line)
        return "".join(self._shown) + unfinished

    def feed(self, text: str) -> None:
        """Append text. Cost is in proportion to it, over the whole stream."""
        self.length += len(text)
        *lines, unfinished = self._normalised(text).split("\n")
        for line in lines:
            self._line.append(line)
            self._take("".join(self._line) + "\n")
        if unfinished:
            self._line.append(unfinished)
            if len(self._head) < HEAD_LENGTH:
                self._head = (self._head + unfinished)[:HEAD_LENGTH]
                self._foresee()
        self._render_open()

    def close(self) -> None:
        """Close what is open: the text is whole."""
        if self._carriage_return:
            self._carriage_return = False
            self.feed("\n")
        if self._line:
            self._take("".join(self._line))
        self._close()

    def lay(self, text: str, slots: Iterable[Slot]) -> None:
        """Append text, and blocks of another's making in their places in it.

        A slot whose place is further on than the text stands at its end. What
        stands between two slots is rendered by itself: no block goes across one.
        """
        for slot in slots:
            here = max(0, slot.offset - self.length)
            self.feed(text[:here])
            text = text[here:]
            self._place(slot.block)
        self.feed(text)

    def _place(self, block: str) -> None:
        length = self.length
        self.close()
        # Closing may feed the end of a line; it is none of the text.
        self.length = length
        self.blocks.append(block)
        self.revision += 1

    def _normalised(self, text: str) -> str:
        """Make every line end a newline, also one that was cut in two."""
        if self._carriage_return:
            text = "\r" + text
        self._carriage_return = text.endswith("\r")
        if "\r" not in text:
            return text
        text = text.removesuffix("\r") if self._carriage_return else text
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def _take(self, line: str) -> None:
        self._line, self._head, self._held = [], "", True
        was = self._scanner.kind
        relation = self._scanner.take(line)
        if relation is Relation.BEGINS and was is not BlockKind.NONE:
            self._close(keep_scanner=True)
            was = BlockKind.NONE
        if self._scanner.kind is BlockKind.FENCE and was is BlockKind.NONE:
            self._opening = line
            self._present("code", language_of(line.strip().lstrip("`~")))
            return
        if was is BlockKind.FENCE and relation is Relation.ENDS:
            self._close()
            return
        self._shown.append(line)
        self._shown_length += len(line)
        if self._scanner.kind is BlockKind.NONE:
            self._close()
        elif self._scanner.kind is BlockKind.PARAGRAPH:
            self._present("p")
        elif self._scanner.kind is not BlockKind.FENCE:
            self._present("raw")

    def _foresee(self) -> None:
        """Decide on the unfinished line as early as that can be certain."""
        if not self._held:
            return
        relation, kind = self._scanner.foresee(self._head)
        if relation is None:
            return
        if relation is Relation.BEGINS:
            if self._scanner.kind is not BlockKind.NONE:
                self._close()
            plain = {LineKind.TEXT: "p", LineKind.HEADING: "h"}
            self._present(plain.get(kind, "raw") if kind else "raw")
        self._held = False

    def _present(self, kind: str, language: str = "") -> None:
        if (kind, language) != (self.tail_kind, self.tail_language):
            self.tail_kind, self.tail_language = kind, language
            self.revision += 1

    def _render_open(self) -> None:
        pending = self._shown_length
        rendered = len(self._rendered)
        if (
            self._scanner.kind not in RENDERED_WHILE_OPEN
            or pending < max(FIRST_RENDERING, GROWTH * rendered)
            or rendered + pending > LONGEST_PARSED
        ):
            return
        self._rendered += "".join(self._shown)
        self.open_html = render_block(self._rendered, self._provisional())
        self._shown, self._shown_length = [], 0
        self.revision += 1

    def _provisional(self) -> dict[str, Any]:
        """Lend the definitions so far: those of an open block may still change."""
        known: dict[str, Any] = self._references.get("references", {})
        borrowed = self._references.get("borrowed", 0)
        return {"references": ChainMap({}, known), "borrowed": borrowed}

    def _close(self, *, keep_scanner: bool = False) -> None:
        """Render the open block for good."""
        source = self._rendered + "".join(self._shown)
        if self._opening:
            html = render_code(source, self.tail_language)
        else:
            html = render_block(source, self._references) if source.strip() else ""
        if html:
            self.blocks.append(html)
        if self._opening or source.strip(BLANK):
            self.revision += 1
        self.open_html = self._rendered = self._opening = ""
        self._shown, self._shown_length = [], 0
        self.tail_kind, self.tail_language = "p", ""
        if not keep_scanner:
            self._scanner.close()


def closed_blocks(text: str, slots: tuple[Slot, ...] = ()) -> tuple[str, ...]:
    """Render a whole text, every block closed."""
    stream = MarkdownStream()
    stream.lay(text, slots)
    stream.close()
    return tuple(stream.blocks)


cached_blocks = lru_cache(maxsize=512)(closed_blocks)
LONGEST_CACHED = 20_000


def render_text(text: str, slots: tuple[Slot, ...] = ()) -> tuple[str, ...]:
    """Render a whole text; finished answers are read many times, so it remembers."""
    render = cached_blocks if len(text) <= LONGEST_CACHED else closed_blocks
    return render(text, slots)
