"""A cell that is being written: its text, and what each page still lacks of it.

How it works. Tokens are only appended to lists. At each tick of the hub
`publish` takes what is new, renders it, and puts an immutable `Published` in the
place of the last one; any thread may read that. Each page is described by a
`Shown`; `frame_since` builds the frame that brings such a page up to date. Pages
that are at the same point get the same string, and a page that lags gets one
frame for everything it missed, so nothing ever queues.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from time import monotonic

from threads.core.snapshot import Generation, Position, last_read
from threads.rendering import MarkdownStream, Slot, language_name, tools_slot
from threads.rounds.published import Activity, Mark, Published, Shown


class LiveCell:
    """One cell that a round in this process is writing.

    Belongs to one event loop; only `published` may be read from elsewhere.
    """

    def __init__(
        self, cell_id: int, thread_id: int, *, touch: Callable[["LiveCell"], None]
    ) -> None:
        self.cell_id = cell_id
        self.thread_id = thread_id
        self.generation = 0
        # The withdrawal that began this generation; what it left is before its mark.
        self.withdrawal: Mark | None = None
        self.mark = Mark()
        self.parts: list[str] = []
        self.length = 0
        self.reasoning_parts: list[str] = []
        self.reasoning_length = 0
        self.activity = Activity(since=monotonic())
        self.last_output_at = self.activity.since
        self.last_reasoning_at = 0.0
        self.is_dirty = False
        self.is_over = False
        # Where the tools of calls stand in the text, in their order.
        self.slots: list[Slot] = []
        self._touch = touch
        self._fed = self._laid = 0
        self._stream = MarkdownStream()
        self._frames: dict[Shown, str] = {}
        # Generations that may stand again.
        self._earlier: list[Generation] = []
        self.published = self._publication()

    @property
    def position(self) -> Position:
        """How far the text stands."""
        return Position(self.generation, self.length)

    @property
    def text(self) -> str:
        """The whole text; costs its length, so not for every token."""
        return "".join(self.parts)

    @property
    def reasoning(self) -> str:
        """The whole reasoning; costs its length."""
        return "".join(self.reasoning_parts)

    @property
    def as_generation(self) -> Generation:
        """The generation that is being written, as it stands."""
        mark = self.withdrawal
        return Generation(
            self.generation,
            self.text,
            self.reasoning,
            None if mark is None else mark.length,
            0 if mark is None else mark.reasoning_length,
        )

    def begin_attempt(self, call: int, attempt: int) -> None:
        """Note where this attempt's text and reasoning begin (requirement D10)."""
        self.mark = Mark(
            call,
            attempt,
            len(self.parts),
            self.length,
            len(self.reasoning_parts),
            self.reasoning_length,
        )

    def append(self, text: str) -> None:
        """Add a piece of the answer."""
        self.parts.append(text)
        self.length += len(text)
        if not self.is_dirty:
            self._touch(self)

    def reason(self, text: str) -> None:
        """Add a piece of the model's reasoning."""
        self.reasoning_parts.append(text)
        self.reasoning_length += len(text)
        self.last_reasoning_at = monotonic()
        if not self.is_dirty:
            self._touch(self)

    def place_tools(self, call: int) -> None:
        """Let the tools of this call stand here, at the end of the text, at once.

        What comes after them is a text of its own; no withdrawal takes them away.
        """
        slot = tools_slot(self.cell_id, call, self.length)
        if all(each.block != slot.block for each in self.slots):
            self.slots.append(slot)
        self.publish()
        self._touch(self)

    def withdraw(self, call: int, attempt: int) -> bool:
        """Take back what this attempt has shown, and nothing else (D10, E9).

        False when it has shown nothing, or is not the attempt under way.
        """
        mark = self.mark
        shown = (self.length, self.reasoning_length)
        if (mark.call, mark.attempt) != (call, attempt) or (
            shown == (mark.length, mark.reasoning_length)
        ):
            return False
        current = self.as_generation
        self._earlier = [*(self._earlier if current.is_bare else ()), current]
        # New lists: published states share the old ones.
        self.parts = self.parts[: mark.parts]
        self.length = mark.length
        self.reasoning_parts = self.reasoning_parts[: mark.reasoning_parts]
        self.reasoning_length = mark.reasoning_length
        self._begin_generation(mark)
        return True

    def let_stand(self) -> bool:
        """Let the text stand as it is, whatever was withdrawn before; tells whether
        a new generation says so.

        Something else came in the place of a draft, such as a tool call.
        """
        if not self.as_generation.is_bare:
            return False
        self.restate(self.text, self.reasoning)
        return True

    def settle(self, seen: Position | None = None) -> bool:
        """Let stand what was read last; tells whether a withdrawn text stands again.

        What a page had not yet shown when its Stop was pressed does not count:
        `seen` is how far that page had come. What was withdrawn and not replaced
        stands again, in a generation of its own (X2).
        """
        current = self.as_generation
        generations = [*self._earlier, current]
        if seen is not None:
            generations = _as_seen(generations, seen)
        stands = last_read(generations)
        if (stands.text, stands.reasoning) == (current.text, current.reasoning):
            return False
        self.restate(stands.text, stands.reasoning)
        return not current.text.startswith(stands.text)

    def restate(self, text: str, reasoning: str | None = None) -> None:
        """Begin a new generation with this text; nothing is waited for any more.

        It may be shorter; tools that stood further on stand at its end.
        """
        self.activity = Activity(since=monotonic())
        self.parts = [text] if text else []
        self.length = len(text)
        if reasoning is not None:
            self.reasoning_parts = [reasoning] if reasoning else []
            self.reasoning_length = len(reasoning)
        self.slots = [replace(s, offset=min(s.offset, len(text))) for s in self.slots]
        self._earlier = []
        self._begin_generation(None)

    def _begin_generation(self, withdrawal: Mark | None) -> None:
        self.generation += 1
        self.withdrawal = withdrawal
        self._fed = self._laid = 0
        self._stream = MarkdownStream()
        self._touch(self)

    def finish(self) -> None:
        """Publish for the last time: the text is whole, its last block closed."""
        self._feed()
        self._stream.close()
        self.is_over = True
        self.publish()

    def publish(self) -> None:
        """Render what is new and let every page see it."""
        self.is_dirty = False
        self._feed()
        self.published = self._publication()
        self._frames = {}

    def _feed(self) -> None:
        if self._fed < len(self.parts) or self._laid < len(self.slots):
            text = "".join(self.parts[self._fed :])
            self._stream.lay(text, self.slots[self._laid :])
            self._fed, self._laid = len(self.parts), len(self.slots)
            self.last_output_at = monotonic()

    def _publication(self) -> Published:
        stream = self._stream
        tail = stream.tail
        return Published(
            shown=Shown(
                generation=self.generation,
                revision=stream.revision,
                blocks=len(stream.blocks),
                tail=len(tail),
                offset=self.length,
                reasoning=self.reasoning_length,
            ),
            all_blocks=stream.blocks,
            open_html=stream.open_html,
            tail=tail,
            tail_kind=stream.tail_kind,
            tail_language=language_name(stream.tail_language),
            reasoning_parts=self.reasoning_parts,
            reasoning_count=len(self.reasoning_parts),
            withdrawn="" if self.withdrawal is None else self.withdrawal.name,
        )

    def place(self, generation: int, blocks: int, offset: int, reasoning: int) -> Shown:
        """Return where a page stands that says this of itself.

        What it says is believed as far as it is possible; the tail of a page that
        is not exactly at the published state is sent anew.
        """
        now = self.published.shown
        said = (generation, blocks, offset, reasoning)
        if said == (now.generation, now.blocks, now.offset, now.reasoning):
            return now
        return Shown(
            generation=generation,
            blocks=max(0, min(blocks, now.blocks)),
            offset=offset,
            reasoning=max(0, min(reasoning, now.reasoning)),
        )

    def frame_since(self, page: Shown) -> str | None:
        """Return the frame that brings this page to the published state, if any."""
        if page == self.published.shown:
            return None
        frame = self._frames.get(page)
        if frame is None:
            frame = self._frames[page] = self._build(page)
        return frame

    def _build(self, page: Shown) -> str:
        state, now = self.published, self.published.shown
        frame: dict[str, object] = {"c": self.cell_id, "g": now.generation}
        if page.generation != now.generation:
            # A newer generation replaces everything, the reasoning as well.
            page = Shown(generation=now.generation)
            if state.withdrawn:
                frame["w"] = state.withdrawn
        if page.revision != now.revision:
            frame |= {
                "n": now.offset,
                "k": page.blocks,
                "b": state.all_blocks[page.blocks : now.blocks],
                "d": state.tail_kind,
                "t": state.tail,
            }
            if state.tail_language:
                frame["l"] = state.tail_language
            if state.open_html:
                frame["h"] = state.open_html
        elif page.offset != now.offset:
            frame |= {"o": page.offset, "n": now.offset, "t": state.tail[page.tail :]}
        if page.reasoning < now.reasoning:
            frame |= {
                "r": self._reasoning_since(page.reasoning),
                "ro": page.reasoning,
                "rn": now.reasoning,
            }
        return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))

    def _reasoning_since(self, offset: int) -> str:
        """The published reasoning from this character on, read from its end."""
        state = self.published
        missing, pieces = state.shown.reasoning - offset, list[str]()
        for piece in reversed(state.reasoning_parts[: state.reasoning_count]):
            if missing <= 0:
                break
            pieces.append(piece[-missing:])
            missing -= len(piece)
        return "".join(reversed(pieces))


def _as_seen(generations: list[Generation], seen: Position) -> list[Generation]:
    """Leave out what a page had not shown; what a withdrawal kept, it had."""
    known = [each for each in generations if each.number <= seen.generation]
    if not known or known[-1].number != seen.generation:
        return generations
    newest = known[-1]
    text = newest.text[: max(seen.length, newest.kept or 0)]
    return [*known[:-1], replace(newest, text=text)]
