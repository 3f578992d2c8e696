"""One socket: shows one thread to its owner and follows it live.

How it works. Whatever arrives (a notice, a page's hello, a tick of the hub) only
notes what the page lacks and wakes the sender. The sender, one task, reads,
renders and sends it. So everything goes out in one order, and a slow page gets
less often what it lacks instead of a queue.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from html import escape
from time import monotonic
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.utils import translation

from threads.models import Thread
from threads.perloop import start_task
from threads.rounds import pages
from threads.rounds.broadcast import thread_group, user_group
from threads.rounds.engine import engine
from threads.rounds.hello import Ack, Hello, MalformedError, Resync, parse
from threads.rounds.hub import Watcher, hub
from threads.rounds.notes import Note, note
from threads.rounds.published import Shown

logger = logging.getLogger(__name__)

SIGNED_OUT, NOT_FOUND, FAILED, TOO_FAST = 4401, 4404, 1011, 1008
RESYNC_SECONDS = 0.5
# A page that says it acknowledges is sent this much ahead of what it has read.
# Daphne's own send never waits: without this a page that stops reading would
# fill the server's memory until its ping fails.
ACK_EVERY = 65_536
MOST_AHEAD = 262_144
LARGEST_ID = 2**63 - 1
# A page says hello, acknowledges, and now and then asks again. What talks faster
# than this is no page, and every message costs all sockets a moment.
MOST_MESSAGES_A_SECOND = 30

NOWHERE = Shown(generation=-1)
"""A page that is to be told everything."""


class ThreadConsumer(AsyncWebsocketConsumer):
    """The socket of one page that shows one thread."""

    watcher: Watcher | None = None
    sender: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Accept the owner; anybody else is told why not by the close code."""
        await self.accept()
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            await self.close(SIGNED_OUT)
            return
        self.user_id: int = user.pk
        self.thread_id: int = self.scope["url_route"]["kwargs"]["thread_id"]
        if self.thread_id > LARGEST_ID or not await self._is_owner():
            await self.close(NOT_FOUND)
            return
        self.position: int | None = None
        self.lack = pages.Lack()
        self.resyncs: set[int] = set()
        self.resynced_at = 0.0
        self.notes: dict[int, Note] = {}
        self.acks = False
        self.messages, self.counted_since = 0, monotonic()
        self.sent = self.acked = self.marked = 0
        self.watcher = hub().watch(self.thread_id)
        await self.channel_layer.group_add(
            thread_group(self.thread_id), self.channel_name
        )
        await self.channel_layer.group_add(user_group(self.user_id), self.channel_name)
        self.sender = start_task(self._send_for_ever(), name=f"socket-{self.thread_id}")
        engine().keep_house()

    async def disconnect(self, code: int) -> None:
        """Let go of everything this socket holds."""
        if self.sender is not None:
            self.sender.cancel()
        if self.watcher is None:
            return
        hub().leave(self.watcher)
        for group in (thread_group(self.thread_id), user_group(self.user_id)):
            await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """Take a page's message; a malformed one is answered and forgotten."""
        watcher = self.watcher
        if watcher is None:
            return
        if self._is_too_fast():
            await self.close(TOO_FAST)
            return
        try:
            message = parse(text_data)
        except MalformedError as error:
            await self.send(json.dumps({"error": str(error)}))
            return
        match message:
            case Hello():
                self._greet(watcher, message)
            case Resync(cell=cell_id):
                self.resyncs.add(cell_id)
            case Ack(serial=serial):
                self.acked = max(self.acked, min(serial, self.marked))
        watcher.wake.set()

    def _greet(self, watcher: Watcher, hello: Hello) -> None:
        self.position, self.acks = hello.position, hello.acks
        self.lack = pages.Lack(
            newer=True, composer=True, rows={self.thread_id}, shows=hello.shows
        )
        self.notes.clear()
        watcher.shown.clear()
        for cell_id, (generation, blocks, offset, reasoning) in hello.cells.items():
            live = watcher.cells.get(cell_id)
            if live is None or live.is_over:
                watcher.shown[cell_id] = Shown(
                    generation, blocks=blocks, offset=offset, reasoning=reasoning
                )
                self.lack.doubtful[cell_id] = watcher.shown[cell_id]
            else:
                watcher.shown[cell_id] = live.place(
                    generation, blocks, offset, reasoning
                )
            self.lack.lacks_tools(cell_id)

    # Notices from the channel layer.

    async def round_started(self, notice: dict[str, Any]) -> None:
        """Two new cells stand in the thread."""
        self.lack.begun.update(notice["cells"])
        self._note_lack()

    async def round_ended(self, notice: dict[str, Any]) -> None:
        """An answer is over."""
        self.lack.ended[notice["cells"][-1]] = None
        self._note_lack()

    async def tools_changed(self, notice: dict[str, Any]) -> None:
        """A tool is in another state."""
        self.lack.lacks_tools(notice["cell"], notice["call"])
        if self.watcher is not None:
            self.watcher.wake.set()

    async def tools_wait(self, notice: dict[str, Any]) -> None:
        """An answer waits for a person to decide on its tools."""
        self.lack.lacks_tools(notice["cell"])
        self._note_lack()

    async def cells_changed(self, notice: dict[str, Any]) -> None:
        """Other versions take their places."""
        self.lack.placed.update(notice["cells"])
        self._note_lack()

    async def thread_changed(self, notice: dict[str, Any]) -> None:
        """A row of the list of threads reads differently."""
        self.lack.rows.add(notice["thread"])
        if self.watcher is not None:
            self.watcher.wake.set()

    def _note_lack(self) -> None:
        self.lack.composer = True
        if self.watcher is not None:
            self.watcher.wake.set()

    # The sender.

    async def _send_for_ever(self) -> None:
        translation.activate(_language(self.scope))
        try:
            while self.watcher is not None:
                await self.watcher.wake.wait()
                self.watcher.wake.clear()
                # Until its hello nothing is known of the page.
                if self.position is not None and not self._is_too_far_ahead():
                    await self._send_lack(self.watcher, self.position)
        except Exception:
            # The page opens a new socket, and with it a new chance.
            logger.exception("Socket of thread %s failed", self.thread_id)
            await self.close(FAILED)

    async def _send_lack(self, watcher: Watcher, position: int) -> None:
        self._take_up_resyncs(watcher)
        for frame in watcher.frames():
            await self._send(frame)
        await self._send_notes(watcher)
        if not self.lack:
            return
        if not await self._is_signed_in():
            await self.close(SIGNED_OUT)
            return
        lack, self.lack = self.lack, pages.Lack()
        for cell_id in lack.ended:
            live, page = watcher.cells.get(cell_id), watcher.shown.get(cell_id)
            if live is not None and page == live.published.shown:
                lack.ended[cell_id] = live.position
        reading = await database_sync_to_async(pages.read)(
            self.thread_id, self.user_id, position=position, lack=lack
        )
        if reading is None:
            await self.close(NOT_FOUND)
            return
        self.position = max(position, reading.position)
        for message in reading.messages:
            await self._send(message)
        for cell_id, (generation, words) in reading.notes.items():
            await self._send_note(cell_id, generation, words)
        watcher.shown |= reading.shown
        for cell_id in reading.over:
            watcher.forget(cell_id)
            self.notes.pop(cell_id, None)

    def _take_up_resyncs(self, watcher: Watcher) -> None:
        """Answer those who ask to be told everything, at a bounded pace."""
        if not self.resyncs:
            return
        wait = self.resynced_at + RESYNC_SECONDS - monotonic()
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, watcher.wake.set)
            return
        self.resynced_at = monotonic()
        for cell_id in self.resyncs:
            if cell_id in watcher.cells:
                watcher.shown[cell_id] = NOWHERE
                self.lack.lacks_tools(cell_id)
            else:
                self.lack.whole.add(cell_id)
        self.resyncs.clear()

    async def _send_notes(self, watcher: Watcher) -> None:
        for cell_id, live in list(watcher.cells.items()):
            if live.is_over:
                # Its round is over, or waits for a person: the database knows.
                continue
            words = note(live) if cell_id in watcher.shown else Note()
            await self._send_note(cell_id, live.published.shown.generation, words)

    async def _send_note(self, cell_id: int, generation: int, words: Note) -> None:
        if words == self.notes.get(cell_id, Note()):
            return
        self.notes[cell_id] = words
        frame = {"c": cell_id, "g": generation, "note": escape(words.text)}
        if words.again:
            frame["again"] = words.again
        await self._send(json.dumps(frame, ensure_ascii=False))

    async def _send(self, message: str) -> None:
        await self.send(message)
        self.sent += len(message)
        if self.acks and self.sent - self.marked > ACK_EVERY:
            self.marked = self.sent
            await self.send(json.dumps({"a": self.marked}))

    def _is_too_fast(self) -> bool:
        now = monotonic()
        if now - self.counted_since > 1:
            self.messages, self.counted_since = 0, now
        self.messages += 1
        return self.messages > MOST_MESSAGES_A_SECOND

    def _is_too_far_ahead(self) -> bool:
        return self.acks and self.sent - self.acked > MOST_AHEAD

    async def _is_signed_in(self) -> bool:
        """Tell whether the session that opened the socket still stands."""
        session = self.scope.get("session")
        key = getattr(session, "session_key", None)
        if session is None or key is None:
            return True
        return bool(await database_sync_to_async(session.exists)(key))

    async def _is_owner(self) -> bool:
        threads = Thread.objects.filter(
            pk=self.thread_id, owner_id=self.user_id, deleted_at=None
        )
        return bool(await database_sync_to_async(threads.exists)())


class NowhereConsumer(AsyncWebsocketConsumer):
    """The socket of an address that leads nowhere."""

    async def connect(self) -> None:
        """Say so, and close."""
        await self.accept()
        await self.close(NOT_FOUND)


def _language(scope: Mapping[str, Any]) -> str:
    """Return the language that the page says it is in, if we speak it."""
    asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("lang", [""])
    try:
        return translation.get_supported_language_variant(asked[0][:35])
    except LookupError:
        return settings.LANGUAGE_CODE
