"""The live cells of this process, and the sockets that watch them.

One task publishes what is new, at most once a window; a socket's own task is
woken and asks each cell for the one frame it lacks. Tokens never pass through
the channel layer, and nothing is kept for a socket but where it stands.
"""

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field, replace
from time import monotonic

from threads.perloop import PerLoop, start_task
from threads.rendering import CellView
from threads.rounds.live import LiveCell
from threads.rounds.notes import note
from threads.rounds.published import UNKNOWN_TAIL, Activity, Published, Shown

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 0.08
WIDE_WINDOW_SECONDS = 0.25
# Above this many cells and sockets, or when the loop is this late, the window
# is wide: a page that moves four times a second still reads as live.
CROWD = 100
LATE_SECONDS = 0.04
QUIET_CHECK_SECONDS = 1.0

# Read by pages in other threads: one dictionary for the process, whose entries
# are replaced and never changed.
_live_cells: dict[int, LiveCell] = {}


@dataclass(eq=False)
class Watcher:
    """One socket that shows a thread: where its page stands, cell by cell."""

    thread_id: int
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    cells: dict[int, LiveCell] = field(default_factory=dict)
    shown: dict[int, Shown] = field(default_factory=dict)

    def frames(self) -> list[str]:
        """Return the frames that the page lacks now; it counts as having them."""
        frames = []
        for cell_id, live in self.cells.items():
            page = self.shown.get(cell_id)
            frame = None if page is None else live.frame_since(page)
            if frame is not None:
                frames.append(frame)
                self.shown[cell_id] = live.published.shown
        return frames

    def follow(self, live: LiveCell) -> None:
        """Follow a cell; what the page shows of it may come from an earlier writer."""
        self.cells[live.cell_id] = live
        page = self.shown.get(live.cell_id)
        if page is not None:
            self.shown[live.cell_id] = replace(page, revision=UNKNOWN_TAIL)

    def forget(self, cell_id: int) -> None:
        """Stop following a cell that is over."""
        self.cells.pop(cell_id, None)
        self.shown.pop(cell_id, None)


class Hub:
    """The live cells and the watchers of one event loop."""

    def __init__(self) -> None:
        self._cells: dict[int, LiveCell] = {}
        self._watchers: dict[int, set[Watcher]] = {}
        self._watching = 0
        self._dirty: list[LiveCell] = []
        self._something_new = asyncio.Event()
        self._ticker: asyncio.Task[None] | None = None
        self._window = WINDOW_SECONDS
        self._quiet_checked_at = 0.0

    def begin(self, cell_id: int, thread_id: int) -> LiveCell:
        """Make a cell live; its text is empty."""
        live = LiveCell(cell_id, thread_id, touch=self._touch)
        self._cells[cell_id] = _live_cells[cell_id] = live
        for watcher in self._watchers.get(thread_id, ()):
            watcher.follow(live)
        if self._ticker is None or self._ticker.done():
            self._ticker = start_task(self._tick(), name="hub")
        return live

    def end(self, live: LiveCell) -> None:
        """Publish the last of a cell and let it go; its watchers still drain it."""
        try:
            live.finish()
        except Exception:
            logger.exception("Cell %s cannot be shown", live.cell_id)
        self.wake(live.thread_id)
        self._cells.pop(live.cell_id, None)
        _live_cells.pop(live.cell_id, None)
        if not self._cells:
            self._something_new.set()

    def watch(self, thread_id: int) -> Watcher:
        """Begin to follow a thread."""
        watcher = Watcher(thread_id)
        watcher.cells = {
            cell_id: live
            for cell_id, live in self._cells.items()
            if live.thread_id == thread_id
        }
        self._watchers.setdefault(thread_id, set()).add(watcher)
        self._watching += 1
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """Follow no longer; harmless when repeated."""
        watchers = self._watchers.get(watcher.thread_id, set())
        if watcher in watchers:
            watchers.remove(watcher)
            self._watching -= 1
        if not watchers:
            self._watchers.pop(watcher.thread_id, None)

    def publish(self, live: LiveCell) -> None:
        """Publish one cell now: a withdrawal and an end do not wait for a tick."""
        live.publish()
        self.wake(live.thread_id)

    def wake(self, thread_id: int) -> None:
        """Let the sockets of a thread look at what is new."""
        for watcher in self._watchers.get(thread_id, ()):
            watcher.wake.set()

    def _touch(self, live: LiveCell) -> None:
        live.is_dirty = True
        self._dirty.append(live)
        self._something_new.set()
        shown = live.published.shown
        if (shown.offset == 0 and live.length) or (
            shown.reasoning == 0 and live.reasoning_length
        ):
            # What comes first is shown at once.
            asyncio.get_running_loop().call_soon(self._publish_dirty, live)

    def _publish_dirty(self, live: LiveCell) -> None:
        if not live.is_dirty or live.is_over:
            return
        try:
            self.publish(live)
        except Exception:
            # One text that cannot be rendered must not silence every other cell.
            logger.exception("Cell %s cannot be shown", live.cell_id)

    async def _tick(self) -> None:
        """Publish what is dirty, once a window, while anything is live."""
        while self._cells:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(QUIET_CHECK_SECONDS):
                    await self._something_new.wait()
            due = monotonic() + self._window
            self._something_new.clear()
            dirty, self._dirty = self._dirty, []
            for live in dirty:
                self._publish_dirty(live)
            self._wake_the_quiet()
            await asyncio.sleep(self._window)
            self._adapt(late=monotonic() - due)

    def _wake_the_quiet(self) -> None:
        """Let pages word how long their cell has been silent (requirement E12)."""
        now = monotonic()
        if now - self._quiet_checked_at < QUIET_CHECK_SECONDS:
            return
        self._quiet_checked_at = now
        for live in self._cells.values():
            if now - live.last_output_at > QUIET_CHECK_SECONDS:
                self.wake(live.thread_id)

    def _adapt(self, *, late: float) -> None:
        crowded = len(self._cells) + self._watching > CROWD
        if crowded or late > LATE_SECONDS:
            self._window = WIDE_WINDOW_SECONDS
        else:
            self._window = max(WINDOW_SECONDS, self._window * 0.9)


_hubs = PerLoop(Hub)


def hub() -> Hub:
    """Return the running loop's hub."""
    return _hubs.get()


def announce(live: LiveCell, activity: Activity) -> None:
    """Let pages say what a cell waits for from now on."""
    activity.since = monotonic()
    live.activity = activity
    hub().wake(live.thread_id)


def live_state(cell_id: int) -> Published | None:
    """Return the published state of a cell that is live in this process.

    May be called from any thread; what it returns never changes.
    """
    live = _live_cells.get(cell_id)
    return None if live is None else live.published


def live_view(cell_id: int, state: Published | None = None) -> CellView | None:
    """Return what a page shows of a cell that is live in this process.

    Its note is in the language that the caller has activated. `state` is shown in
    place of the one that is published now.
    """
    live = _live_cells.get(cell_id)
    if live is None:
        return None
    said = note(live)
    view = (state or live.published).view()
    return replace(view, note=said.text, again=said.again)
