"""Pages that watch a cell being written, and apply frames as the browser's script does."""

import asyncio
import json
import re
from html import unescape
from typing import Any

from threads.rounds.hub import Watcher, hub
from threads.rounds.published import Shown

TAG = re.compile(r"<[^>]*>")


def words(text: str) -> str:
    """Reduce a text to what is read of it, so that HTML and text compare."""
    return " ".join(text.split())


def words_of(blocks: list[str], open_html: str, tail: str) -> str:
    """The words of a page's cell."""
    html = " ".join((*blocks, open_html))
    return words(unescape(TAG.sub(" ", html)) + " " + tail)


class CellPage:
    """One cell on a page: the rule of static/threads/cells.js, and nothing more.

    A frame that does not fit would make a page ask again; here it fails the test.
    """

    def __init__(self, cell_id: int) -> None:
        self.cell_id = cell_id
        self.generation = self.offset = self.reasoning_offset = 0
        self.blocks: list[str] = []
        self.open_html = self.tail = self.reasoning = ""
        self.withdrawals: dict[int, str] = {}

    @property
    def words(self) -> str:
        return words_of(self.blocks, self.open_html, self.tail)

    def apply(self, frame: dict[str, Any]) -> None:
        """Apply a frame; it may shorten the text only by a newer generation."""
        assert frame["c"] == self.cell_id
        assert frame["g"] >= self.generation, f"an older generation came: {frame}"
        before, thoughts = self.words, self.reasoning
        is_newer = frame["g"] > self.generation
        if is_newer:
            assert frame.get("k") == 0, f"a new generation does not fit: {frame}"
            assert "b" in frame
            self.generation = frame["g"]
            self.reasoning, self.reasoning_offset = "", 0
        if "w" in frame:
            assert is_newer
            self.withdrawals[frame["g"]] = frame["w"]
        self._apply_text(frame)
        self._apply_reasoning(frame)
        if not is_newer:
            assert self.words.startswith(before), f"{self.words!r} after {before!r}"
            assert self.reasoning.startswith(thoughts)

    def _apply_text(self, frame: dict[str, Any]) -> None:
        if "b" in frame:
            assert frame["k"] <= len(self.blocks), f"blocks are missing: {frame}"
            self.blocks = self.blocks[: frame["k"]] + frame["b"]
            self.open_html, self.tail = frame.get("h", ""), frame["t"]
        elif "t" in frame:
            assert frame["o"] == self.offset, f"text is missing: {frame}"
            self.tail += frame["t"]
        self.offset = frame.get("n", self.offset)

    def _apply_reasoning(self, frame: dict[str, Any]) -> None:
        if "r" in frame:
            assert frame["ro"] == self.reasoning_offset, f"it is missing: {frame}"
            self.reasoning += frame["r"]
            self.reasoning_offset = frame["rn"]


class Watching:
    """A page that watches one cell from before its round, through the hub.

    An eager one takes every frame when it is woken, a lazy one when it looks.
    """

    def __init__(self, thread_id: int, cell_id: int) -> None:
        self.cell = CellPage(cell_id)
        self._watcher: Watcher = hub().watch(thread_id)
        self._watcher.shown[cell_id] = Shown()
        self._frames: list[str] = []
        self._task: asyncio.Task[None] | None = None

    def be_eager(self) -> None:
        """Take every frame from now on as soon as there is one."""
        self._task = asyncio.create_task(self._follow(), name="page")

    def look(self) -> CellPage:
        """Apply what has come, and return what is shown now."""
        if self._task is None:
            self._frames += self._watcher.frames()
        frames, self._frames = self._frames, []
        for frame in frames:
            self.cell.apply(json.loads(frame))
        return self.cell

    def leave(self) -> None:
        """Watch no longer."""
        hub().leave(self._watcher)
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        while True:
            await self._watcher.wake.wait()
            self._watcher.wake.clear()
            self._frames += self._watcher.frames()
