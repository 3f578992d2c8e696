"""What the tests of rounds share: asking, waiting, and a page in Python."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from html import unescape
from typing import Any, cast

from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import AnonymousUser, User
from websockets.asyncio.client import connect
from websockets.typing import Origin

from threads.models import Cell, LanguageModel, Round, Thread
from threads.rounds import engine, ledger
from threads.routing import sockets

PATIENCE_SECONDS = 20.0


async def ask(
    thread: Thread, model: LanguageModel | None, prompt: str = "Hello", **more: Any
) -> Round:
    """Open a round and start it."""
    round_ = await opened(thread, model, prompt, **more)
    await engine.start(round_.pk)
    return round_


async def opened(
    thread: Thread, model: LanguageModel | None, prompt: str = "Hello", **more: Any
) -> Round:
    """Open a round without starting it."""
    return await sync_to_async(open_now)(thread, model, prompt, **more)


def open_now(
    thread: Thread, model: LanguageModel | None, prompt: str = "Hello", **more: Any
) -> Round:
    """Open a round, from synchronous code."""
    requested = model.wire_id if model else "no/such-model"
    options: dict[str, Any] = {"model_requested": requested, "locale": "en"}
    options |= {"attended": True} | more
    return ledger.open_round(thread=thread, prompt=prompt, model=model, **options)


async def answered(
    thread: Thread, model: LanguageModel | None, prompt: str = "Hello", **more: Any
) -> Cell:
    """Ask, wait for the end, and return the answer's cell."""
    round_ = await ask(thread, model, prompt, **more)
    await engine.wait(round_.pk)
    return await over(round_)


async def cell_of(round_: Round) -> Cell:
    """The answer of a round as the database has it."""
    return await Cell.objects.select_related("round").aget(pk=round_.answer_cell_id)


async def over(round_: Round) -> Cell:
    """The answer of a round that nobody works on any more.

    Where one is left half-way, the failure says what became of it.
    """
    cell = await cell_of(round_)
    state, tasks = cell.round.state, {task.get_name() for task in asyncio.all_tasks()}
    assert cell.status != Cell.Status.STREAMING or state == Round.State.ASKING, (
        f"{cell.round} of worker {cell.round.worker!r}, claimed {cell.round.claimed_at},"
        f" stopped {cell.round.stop_requested_at}, tasks {tasks}"
    )
    return cell


async def until(condition: Callable[[], Any]) -> Any:
    """Wait until a condition on memory holds, and return what it gave."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if found := condition():
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("waited in vain")


async def until_stored(condition: Callable[[], Any]) -> Any:
    """Wait until a condition on the database holds, and return what it gave."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if found := await sync_to_async(condition)():
            return found
        await asyncio.sleep(0.02)
    raise AssertionError("waited in vain")


@dataclass
class PageCell:
    """One cell as a page's script holds it; follows the rules of the frames."""

    generation: int = 0
    blocks: list[str] = field(default_factory=list)
    tail: str = ""
    kind: str = "p"
    language: str = ""
    open_html: str = ""
    offset: int = 0
    reasoning: str = ""
    reasoning_offset: int = 0
    status: str = "streaming"
    note: str = ""

    @property
    def place(self) -> list[int]:
        """What a hello says of this cell."""
        return [self.generation, len(self.blocks), self.offset, self.reasoning_offset]

    def apply(self, frame: dict[str, Any]) -> bool:
        """Apply one frame; False when it does not fit and a resync is needed."""
        if frame["g"] < self.generation:
            return True
        if frame["g"] > self.generation and "n" in frame:
            if frame.get("k") != 0:
                return False
            self.generation = frame["g"]
            self.reasoning, self.reasoning_offset = "", 0
            self.blocks, self.open_html = [], ""
        self.status = frame.get("s", self.status)
        self.note = frame.get("note", self.note)
        return self._apply_text(frame) and self._apply_reasoning(frame)

    def _apply_text(self, frame: dict[str, Any]) -> bool:
        if "b" in frame:
            if frame["k"] > len(self.blocks):
                return False
            self.blocks = self.blocks[: frame["k"]] + frame["b"]
            self.tail, self.kind = frame["t"], frame["d"]
            self.language = frame.get("l", "")
            self.open_html = frame.get("h", "")
            self.offset = frame["n"]
        elif "t" in frame:
            if frame["o"] != self.offset:
                return False
            self.tail += frame["t"]
            self.offset = frame["n"]
        return True

    def _apply_reasoning(self, frame: dict[str, Any]) -> bool:
        if "r" in frame:
            if frame["ro"] != self.reasoning_offset:
                return False
            self.reasoning += frame["r"]
            self.reasoning_offset = frame["rn"]
        return True


ARTICLE = re.compile(
    r'<article class="cell cell-answer" id="cell-(?P<cell>\d+)" .*?'
    r'data-position="(?P<position>\d+)" data-generation="(?P<generation>\d+)" '
    r'data-offset="(?P<offset>\d+)" data-reasoning-offset="(?P<reasoning>\d+)" '
    r'data-status="(?P<status>\w+)".*?'
    r'<div class="reasoning-text" dir="auto">(?P<thoughts>.*?)</div>.*?'
    r'<div class="answer-text" dir="auto">(?P<body>.*?)</div>\s*<p class="note\b',
    re.DOTALL,
)
TAIL = re.compile(
    r'<div class="open">(?P<open>.*?)</div><div class="tail" data-kind="(?P<kind>\w+)"'
    r"[^>]*>(?P<tail>.*)</div>$",
    re.DOTALL,
)


TOOLS = re.compile(r'(<section class="tools" id="[\w-]+">).*?(?=</section>)', re.DOTALL)


def without_tools(html: str) -> str:
    """Empty the places of tools: they are filled for each viewer."""
    return TOOLS.sub(r"\1", html)


def answers_in(html: str) -> dict[int, tuple[int, PageCell]]:
    """Read the answers out of a page's HTML: position and cell by number."""
    found = {}
    for article in ARTICLE.finditer(html):
        body = without_tools(article["body"])
        tail = TAIL.search(body)
        if tail is not None:
            body = body[: tail.start()]
        blocks = body.split('<div class="block">')[1:]
        cell = PageCell(
            generation=int(article["generation"]),
            blocks=[block.removesuffix("</div>").rstrip("\n") for block in blocks],
            tail=unescape(re.sub("<[^>]*>", "", tail["tail"])) if tail else "",
            kind=tail["kind"] if tail else "p",
            open_html=tail["open"] if tail else "",
            offset=int(article["offset"]),
            reasoning=unescape(article["thoughts"]),
            reasoning_offset=int(article["reasoning"]),
            status=article["status"],
        )
        found[int(article["cell"])] = (int(article["position"]), cell)
    return found


class Page:
    """A page of one person, on a socket of the real consumer."""

    def __init__(
        self,
        user: User | AnonymousUser,
        thread: Thread,
        *,
        language: str = "en",
        acks: bool = False,
    ) -> None:
        self.socket = WebsocketCommunicator(
            sockets, f"/ws/threads/{thread.pk}/?lang={language}"
        )
        scope = cast("dict[str, Any]", self.socket.scope)
        scope["user"] = user
        self._begin(acks=acks)

    def _begin(self, *, acks: bool) -> None:
        self.acks = acks
        self.cells: dict[int, PageCell] = {}
        self.position = -1
        self.html: list[str] = []
        self.tools: list[str] = []
        self.frames: list[dict[str, Any]] = []
        self.errors: list[str] = []
        self.texts: list[str] = []

    async def open(self, *cells: int) -> "Page":
        """Connect and greet; `cells` are shown as streaming, and empty."""
        self.cells |= {cell: PageCell() for cell in cells if cell not in self.cells}
        await self.connect()
        await self.greet()
        return self

    async def connect(self) -> None:
        """Open the socket."""
        connected, _ = await self.socket.connect()
        assert connected

    async def receive(self) -> str:
        """Wait for one message."""
        return str(await self.socket.receive_from(timeout=PATIENCE_SECONDS))

    async def greet(self) -> None:
        """Say what this page shows."""
        streaming = {
            str(cell_id): cell.place
            for cell_id, cell in self.cells.items()
            if cell.status == "streaming"
        }
        await self.say(
            {
                "type": "hello",
                "position": self.position,
                "cells": streaming,
                "acks": self.acks,
            }
        )

    async def say(self, message: object) -> None:
        """Send one message."""
        await self.socket.send_to(text_data=json.dumps(message))

    async def read(self) -> str:
        """Take one message and apply it."""
        text = await self.receive()
        self.texts.append(text)
        if not text.startswith("{"):
            self.html.append(text)
            for cell_id, (position, answer) in answers_in(text).items():
                self.cells[cell_id] = answer
                self.position = max(self.position, position)
            return text
        frame = json.loads(text)
        if "error" in frame:
            self.errors.append(frame["error"])
        elif "tools" in frame:
            self.tools.append(frame["tools"])
        elif "a" in frame:
            await self.say({"type": "ack", "a": frame["a"]})
        else:
            self.frames.append(frame)
            cell = self.cells.setdefault(frame["c"], PageCell())
            if not cell.apply(frame):
                await self.say({"type": "resync", "cell": frame["c"]})
        return text

    async def read_until(self, condition: Callable[[], Any]) -> None:
        """Read until the page shows something."""
        while not condition():
            await self.read()

    async def read_to_the_end(self, cell_id: int) -> PageCell:
        """Read until a cell is over."""
        await self.read_until(
            lambda: cell_id in self.cells and self.cells[cell_id].status != "streaming"
        )
        return self.cells[cell_id]

    async def close(self) -> None:
        """Close the socket."""
        await self.socket.disconnect()


class SitePage(Page):
    """The same page, on a socket of a real server."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self.url = url
        self.headers = headers
        self._begin(acks=False)

    async def connect(self) -> None:
        """Open the socket."""
        self.wire = await connect(
            self.url,
            additional_headers={"Cookie": self.headers["Cookie"]},
            origin=Origin(self.headers["Origin"]),
            proxy=None,
            max_size=None,
        )

    async def receive(self) -> str:
        """Wait for one message."""
        return str(await asyncio.wait_for(self.wire.recv(), PATIENCE_SECONDS))

    async def say(self, message: object) -> None:
        """Send one message."""
        await self.wire.send(json.dumps(message))

    async def close(self) -> None:
        """Close the socket."""
        await self.wire.close()
