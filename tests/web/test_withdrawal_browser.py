"""What a person sees of a call that is tried again, in a real browser.

The gateway waits at every turn until the test has looked, so that each phase lasts
as long as it has to.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.conftest import Site, model_now, start_site
from tests.fakescript import DONE, chunk, frame, tool_call
from threads.models import Thread
from threads.practice.app import PracticeApp
from threads.practice.exchange import ABORT, Application
from threads.practice.server import PracticeServer

pytestmark = pytest.mark.django_db(transaction=True)

CUT = "The answer was cut. Starting again (2/3)…"
SUM = '{"expression": "1+1"}'
ASKED = chunk(finish="tool_calls")
WHOLE = (chunk(finish="stop"), DONE)


class Turns:
    """An application that waits for `go` before it ends a try, and before the next."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._turns = threading.Semaphore(0)
        self._tries = 0

    def go(self, turns: int = 1) -> None:
        """Let the gateway go on, as many times as it will wait."""
        self._turns.release(turns)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._tries:
            await self._wait()
        self._tries += 1
        is_over = False

        async def held(message: dict[str, Any]) -> None:
            nonlocal is_over
            is_body = message["type"] == "http.response.body"
            is_last = is_body and not message.get("more_body")
            if (is_last or message["type"] == ABORT) and not is_over:
                is_over = True
                await self._wait()
            await send(message)

        await self._app(scope, receive, held)

    async def _wait(self) -> None:
        while not self._turns.acquire(blocking=False):  # noqa: ASYNC110 - not its loop
            await asyncio.sleep(0.01)


def tries(*bodies: tuple[bytes, ...]) -> Application:
    """An application that answers each request with the next of these bodies."""
    left = list(bodies)

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        kind = [(b"content-type", b"text/event-stream")]
        start = {"type": "http.response.start", "status": 200, "headers": kind}
        await send(start)
        for body in left.pop(0):
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    return app


@pytest.fixture(scope="module")
def retrying(
    django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A site that tries every call three times, almost at once."""
    log = tmp_path_factory.mktemp("site") / "site.log"
    site = start_site(log, CHAT_CALL_RETRIES="2", CHAT_RETRY_WAITS="0.05,0.05")
    yield site
    site.process.terminate()
    site.process.wait(timeout=20)


@pytest.fixture
def site(transactional_db: None, retrying: Site) -> Site:
    """The site that the browser of this module's tests visits."""
    return retrying


Ask = Callable[..., Turns]


@pytest.fixture
def ask(page: Page, thread: Thread) -> Iterator[Ask]:
    """Send a message to a model that an application plays, in a page of Alice's."""
    with ExitStack() as stack:

        def send(app: Application, wire_id: str = "some/model") -> Turns:
            turns = Turns(app)
            server = stack.enter_context(PracticeServer(turns))
            model_now(wire_id, server.base_url)
            page.goto(f"/threads/{thread.pk}/")
            page.evaluate(LISTEN)
            page.locator("#composer-text").fill("Tell me everything.")
            page.keyboard.press("Enter")
            return turns

        yield send


LISTEN = """() => {
    window.said = [];
    const region = document.getElementById("status");
    new MutationObserver(() => region.textContent && said.push(region.textContent))
        .observe(region, { childList: true });
}"""


def said(page: Page) -> list[str]:
    """All that the page has said aloud since it was asked."""
    heard: list[str] = page.evaluate("said")
    return heard


def text(page: Page) -> Locator:
    return page.locator(".answer-text")


def note(page: Page) -> Locator:
    return page.locator(".note")


def ended(page: Page, status: str) -> None:
    foot = page.locator(f'.foot[data-status="{status}"]')
    expect(foot).to_be_attached(timeout=15_000)


def assert_a_reload_shows_the_same(page: Page) -> None:
    shown = page.locator("#cells").inner_text()
    page.reload()
    assert page.locator("#cells").inner_text() == shown


def test_an_answer_that_was_cut_goes_with_a_note_and_another_comes_in_its_place(
    page: Page, ask: Ask
) -> None:
    turns = ask(PracticeApp(pace=0.05), "practice/cut-once")
    expect(text(page)).to_contain_text("it is going to be")
    other = page.context.new_page()
    other.goto(page.url)
    expect(text(other)).to_contain_text("it is going to be")

    turns.go()
    for tab in (page, other):
        expect(note(tab)).to_have_text(CUT)
        expect(text(tab)).to_have_text("")
    other.reload()
    assert note(other).inner_text() == CUT
    assert text(other).inner_text() == ""

    turns.go(2)
    for tab in (page, other):
        ended(tab, "done")
        expect(note(tab)).to_be_hidden()
    assert text(page).inner_text().startswith("This is the second try")
    assert text(other).inner_text() == text(page).inner_text()
    assert said(page) == ["The model is answering.", CUT, "The answer is complete."]
    assert_a_reload_shows_the_same(page)


def test_a_reader_in_the_midst_of_a_text_sees_where_a_shorter_one_begins(
    page: Page, ask: Ask
) -> None:
    long = "\n\n".join(f"Paragraph {number}" for number in range(80))
    first = (chunk(content=f"{long}\n\n- one\n- tw"),)
    turns = ask(tries(first, (chunk(content="Short."), *WHOLE)))
    expect(text(page)).to_contain_text("Paragraph 79")
    page.wait_for_function("() => scrollY > 1000")
    page.evaluate("scrollTo(0, 700)")
    page.wait_for_function("() => scrollY === 700")
    expect(page.locator(".message")).not_to_be_in_viewport()

    turns.go()
    expect(note(page)).to_have_text(CUT)
    expect(page.locator(".message")).to_be_in_viewport()
    places = [box(page.locator(".message")), box(note(page))]

    turns.go()
    expect(text(page)).to_have_text("Short.")
    assert [box(page.locator(".message")), box(text(page))] == places
    turns.go()
    ended(page, "done")
    assert [box(page.locator(".message")), box(text(page))] == places
    expect(text(page)).to_have_text("Short.")
    assert_a_reload_shows_the_same(page)


def box(locator: Locator) -> float:
    """How far down in the window something begins, to the pixel."""
    found = locator.bounding_box()
    assert found is not None
    return round(found["y"])


@pytest.mark.parametrize(
    ("app", "wire_id", "kept"),
    [
        (PracticeApp(pace=0.05), "practice/cut-always", "keep what I wro"),
        (tries((chunk(content="Once read"),), (), ()), "some/model", "Once read"),
    ],
    ids=["each with a text", "a text and then nothing"],
)
def test_after_three_failures_the_last_text_that_was_read_stands(
    page: Page, ask: Ask, app: Application, wire_id: str, kept: str
) -> None:
    turns = ask(app, wire_id)
    expect(text(page)).to_contain_text(kept)

    turns.go(5)

    ended(page, "error")
    expect(text(page)).to_contain_text(kept)
    expect(note(page)).to_be_hidden()
    expect(page.locator(".sentence")).to_contain_text("before its answer was whole")
    sentence = page.locator(".sentence").inner_text()
    assert said(page)[-1] == f"The answer ended early. {sentence}"
    assert_a_reload_shows_the_same(page)


def test_tools_stay_and_what_is_open_stays_open_when_the_text_after_them_goes(
    page: Page, ask: Ask
) -> None:
    part = tool_call(0, call_id="c", name="calculator", arguments=SUM)
    asking = (chunk(content="Let me see."), chunk(tool_calls=[part]), ASKED, DONE)
    turns = ask(
        tries(asking, (chunk(content="They sa"),), (chunk(content="Two."), *WHOLE))
    )
    turns.go(2)
    expect(text(page)).to_contain_text("They sa")
    tool = page.locator(".tool")
    tool.locator("summary").click()

    turns.go()
    expect(note(page)).to_have_text(CUT)
    expect(text(page)).not_to_contain_text("They sa")
    expect(tool.locator(".tool-more")).to_be_visible()
    expect(tool.locator("summary")).to_be_focused()
    turns.go(2)

    ended(page, "done")
    expect(page.locator(".block")).to_have_count(3)
    expect(page.locator(".block").last).to_have_text("Two.")
    expect(tool.locator(".tool-more")).to_be_visible()
    tool.locator("summary").click()
    assert_a_reload_shows_the_same(page)


def test_a_long_wait_is_counted_down_in_silence_and_stop_ends_it_at_once(
    page: Page, ask: Ask
) -> None:
    busy = frame({"error": {"code": 503, "message": "busy", "retry_after": 30}})
    ask(tries((chunk(content="Half a sen"), busy)))

    expect(note(page)).to_have_text(re.compile(r"in 2[0-8] s \(2/3\)…$"))
    page.locator(".stop").click()

    ended(page, "stopped")
    expect(text(page)).to_have_text("Half a sen")
    expect(note(page)).to_be_hidden()
    heard = [re.sub(r"\d\d s", "… s", words) for words in said(page)]
    assert heard == [
        "The model is answering.",
        "The answer was cut. Starting again in … s (2/3)…",
        "Stopped.",
    ]
    assert_a_reload_shows_the_same(page)
