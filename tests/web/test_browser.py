"""The page's script in a real browser: frames, sending, reading, accessibility."""

import json
import re

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.conftest import model_now
from tests.web.conftest import assert_accessible
from threads.models import Cell, LanguageModel, Round, Thread
from threads.rendering import cell_html, view_of
from threads.rendering.cells import streaming_view

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def answering(thread: Thread) -> Cell:
    """An answer under way that nobody writes: the test plays the socket."""
    question = Cell.objects.create(thread=thread, position=0, role="user", text="Q")
    answer = Cell.objects.create(
        thread=thread,
        position=1,
        role="assistant",
        question=question,
        status="streaming",
    )
    Round.objects.create(
        thread=thread,
        user_cell=question,
        answer_cell=answer,
        model_requested="m",
        locale="en",
    )
    return answer


class Wire:
    """The server's end of a page's socket."""

    def __init__(self, page: Page, cell: Cell) -> None:
        self.cell = cell
        self.routes: list[WebSocketRoute] = []
        self.heard: list[dict[str, object]] = []
        page.route_web_socket(re.compile("/ws/threads/"), self._accept)

    def _accept(self, route: WebSocketRoute) -> None:
        self.routes.append(route)
        route.on_message(lambda said: self.heard.append(json.loads(said)))

    def say(self, **frame: object) -> None:
        self.routes[-1].send(json.dumps({"c": self.cell.pk, **frame}))

    def put(self, text: str, *, generation: int = 0) -> None:
        """Send the whole cell, as the answer to a form has it too."""
        copy = cell_html(self.cell, streaming_view(generation, text, ""))
        self.routes[-1].send(f'<div hx-swap-oob="beforeend:#cells">{copy}</div>')


@pytest.fixture
def wire(page: Page, answering: Cell) -> Wire:
    wire = Wire(page, answering)
    page.goto(f"/threads/{answering.thread_id}/")
    page.wait_for_function("() => document.querySelector('.tail')")
    while not wire.heard:
        page.wait_for_timeout(20)
    return wire


def test_a_page_says_where_it_stands_whenever_its_socket_opens(
    page: Page, wire: Wire
) -> None:
    cell = str(wire.cell.pk)
    assert wire.heard == [
        {
            "type": "hello",
            "acks": True,
            "position": 1,
            "cells": {cell: [0, 0, 0, 0]},
            "shows": [wire.cell.question_id, wire.cell.pk],
        }
    ]

    wire.say(g=0, n=9, k=0, b=["<p>One</p>"], d="p", t="Two")
    expect(page.locator(".tail")).to_have_text("Two")
    wire.routes[-1].close(code=1001)
    while len(wire.heard) < 2:
        page.wait_for_timeout(20)

    assert wire.heard[-1]["cells"] == {cell: [0, 1, 9, 0]}


def test_text_that_grows_is_formatted_and_never_read_as_html(
    page: Page, wire: Wire
) -> None:
    wire.say(g=0, o=0, n=9, t="A **bol")
    wire.say(g=0, o=9, n=40, t="d** word, <img src=x onerror=y> and [a](http://b")

    tail = page.locator(".tail")
    expect(tail.locator("strong")).to_have_text("bold")
    expect(tail.locator(".link")).to_have_text("a")
    expect(tail).to_contain_text("<img src=x onerror=y>")
    assert tail.locator("a, img").count() == 0


def test_a_frame_out_of_order_is_asked_for_again_and_not_shown(
    page: Page, wire: Wire
) -> None:
    wire.say(g=0, o=0, n=5, t="Hello")
    wire.say(g=0, o=7, n=9, t="WRONG")
    wire.say(g=0, n=9, k=3, b=["<p>WRONG</p>"], d="p", t="")
    while len(wire.heard) < 3:
        page.wait_for_timeout(20)

    resync = {"type": "resync", "cell": wire.cell.pk}
    assert wire.heard[1:] == [resync, resync]
    expect(page.locator(".answer-text")).to_have_text("Hello")


def test_a_withdrawal_empties_the_answer_and_says_so(page: Page, wire: Wire) -> None:
    words = "The answer was cut. Starting again…"
    wire.say(g=0, n=20, k=0, b=["<p>Closed</p>"], d="p", t="open", r="hm", ro=0, rn=2)
    expect(page.locator(".block")).to_have_text("Closed")

    wire.say(g=1, n=0, k=0, b=[], d="p", t="", w="1.1")
    wire.say(g=0, o=20, n=24, t="LATE")
    expect(page.locator(".answer-text")).to_have_text("")
    expect(page.locator(".note")).to_have_text(words)
    wire.say(g=1, o=0, n=3, t="New")
    expect(page.locator(".answer-text")).to_have_text("New")
    expect(page.locator(".note")).to_be_hidden()
    expect(page.locator("#status")).to_have_text(words)


def test_only_a_text_that_was_read_is_said_to_be_withdrawn(
    page: Page, wire: Wire
) -> None:
    before = page.locator("#status").inner_text()
    wire.say(g=0, n=2, k=0, b=[], d="p", t="\n ", r="hm", ro=0, rn=2)
    expect(page.locator(".reasoning")).to_be_visible()
    wire.say(g=1, n=0, k=0, b=[], d="p", t="", w="1.1")
    expect(page.locator(".reasoning")).to_be_hidden()
    wire.say(g=1, o=0, n=9, t="Once read")
    wire.say(g=2, n=4, k=0, b=[], d="p", t="Once")
    expect(page.locator(".answer-text")).to_have_text("Once")
    expect(page.locator(".note")).to_be_hidden()
    expect(page.locator("#status")).to_have_text(before)


def test_cells_that_come_twice_are_shown_once(page: Page, wire: Wire) -> None:
    twice = (
        '<div hx-swap-oob="beforeend:#cells">'
        f'<article class="cell" id="cell-{wire.cell.pk}">AGAIN</article>'
        '<article class="cell cell-user" id="cell-999" data-position="2">New</article>'
        "</div>"
    )

    for _ in range(2):
        wire.routes[-1].send(twice)

    expect(page.locator("#cell-999")).to_have_count(1)
    expect(page.locator("#cells")).not_to_contain_text("AGAIN")


def test_of_two_copies_of_an_answer_the_one_with_more_text_is_shown(
    page: Page, wire: Wire
) -> None:
    # The server goes on from what it has sent, and says nothing more until then.
    for text in ("Sent already", "Sent"):
        wire.put(text)
    wire.say(g=0, o=12, n=16, t=" too")
    expect(page.locator(".answer-text")).to_have_text("Sent already too")
    assert len(wire.heard) == 1


def test_how_an_answer_ended_is_said_also_when_it_came_whole(
    page: Page, wire: Wire
) -> None:
    Cell.objects.filter(pk=wire.cell.pk).update(
        status="error", ending="truncated", code="truncated", sentence="It was cut."
    )
    wire.cell.refresh_from_db()

    wire.routes[-1].send(cell_html(wire.cell, view_of(wire.cell), swap="outerHTML"))

    expect(page.locator("#status")).to_have_text("The answer ended early. It was cut.")


def test_a_lost_connection_is_said_quietly(page: Page, wire: Wire) -> None:
    wire.routes[-1].close(code=4404)

    expect(page.locator("#connection")).to_contain_text("no longer connected")


def paragraphs(number: int) -> str:
    return "\n\n".join(f"Paragraph {each}" for each in range(1, number + 1))


def test_who_follows_an_answer_still_does_when_it_comes_whole_and_longer(
    page: Page, wire: Wire
) -> None:
    long = paragraphs(80)

    wire.put(long)

    expect(page.locator(".answer-text")).to_contain_text("Paragraph 80")
    page.wait_for_function("() => scrollY > 1000")
    wire.say(g=0, o=len(long), n=len(long) + 20, t="\n\nAnd one more after.")
    expect(page.get_by_text("And one more after.")).to_be_in_viewport()


def test_who_reads_an_answer_is_not_moved_when_it_comes_whole_and_longer(
    page: Page, wire: Wire
) -> None:
    wire.put(paragraphs(60))
    page.wait_for_function("() => scrollY > 1000")
    page.evaluate("scrollTo(0, 700)")
    page.wait_for_function("() => scrollY === 700")

    wire.put(paragraphs(90))

    expect(page.locator(".answer-text")).to_contain_text("Paragraph 90")
    expect(page.locator("#jump")).to_be_visible()
    assert page.evaluate("scrollY") == 700


def test_nothing_moves_when_a_shorter_answer_comes_whole_after_one_was_cut(
    page: Page, wire: Wire
) -> None:
    Cell.objects.filter(role="user").update(text="line\n" * 120)
    page.reload()
    while len(wire.heard) < 2:
        page.wait_for_timeout(20)
    text = page.locator(".answer-text")
    wire.say(g=0, n=100, k=0, b=[f"<p>{paragraphs(6)}</p>" * 6], d="p", t="The end")
    expect(text).to_contain_text("The end")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    before = text.bounding_box()
    assert before is not None

    wire.put("Short", generation=1)

    expect(text).to_have_text("Short")
    after = text.bounding_box()
    assert after is not None
    assert after["y"] == pytest.approx(before["y"], abs=1)


def test_the_reader_is_not_moved_while_they_read(page: Page, wire: Wire) -> None:
    long = "".join(f"<p>Paragraph {number}</p>" for number in range(80))
    wire.say(g=0, n=100, k=0, b=[long], d="p", t="The end")
    page.wait_for_function("() => scrollY > 500")

    page.evaluate("scrollTo(0, 100)")
    page.wait_for_function("() => scrollY === 100")
    wire.say(g=0, o=100, n=200, t=" and more" * 200)

    expect(page.locator("#jump")).to_be_visible()
    assert page.evaluate("scrollY") == 100
    page.locator("#jump").click()
    expect(page.locator("#jump")).to_be_hidden()


def test_a_message_is_answered_and_a_reload_shows_the_same(
    page: Page, practice_url: str
) -> None:
    model_now("practice/markdown", practice_url)
    page.goto("/")
    page.locator("#composer-text").fill("One")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("Two")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/threads/\d+/"))
    expect(page.locator(".message")).to_have_text("One\nTwo")
    expect(page.locator('.foot[data-status="done"]')).to_be_attached()

    page.locator("#composer-text").fill("Again")
    page.locator(".send").click()
    expect(page.locator('.foot[data-status="done"]')).to_have_count(2, timeout=15_000)

    expect(page.locator("#composer-text")).to_have_value("")
    expect(page.locator("#status")).to_have_text("The answer is complete.")
    shown = page.locator("#cells").inner_text()
    page.reload()
    assert page.locator("#cells").inner_text() == shown


def test_a_draft_survives_a_reload(page: Page, thread: Thread) -> None:
    page.goto(f"/threads/{thread.pk}/")
    page.locator("#composer-text").fill("Not yet sent")

    page.reload()

    expect(page.locator("#composer-text")).to_have_value("Not yet sent")


def test_a_message_survives_a_session_that_ended(page: Page, thread: Thread) -> None:
    page.goto(f"/threads/{thread.pk}/")
    page.context.clear_cookies(name="sessionid")
    page.locator("#composer-text").fill("Do not lose me")
    page.keyboard.press("Enter")

    expect(page.locator("#composer-error")).to_contain_text("was not sent")
    expect(page.locator("#composer-text")).to_have_value("Do not lose me")


def test_a_message_waits_while_the_model_answers(page: Page, wire: Wire) -> None:
    page.locator("#composer-text").fill("Next")
    page.keyboard.press("Enter")

    expect(page.locator("#composer-error")).to_contain_text("still answering")
    expect(page.locator("#composer-text")).to_have_value("Next")


def test_the_drawer_opens_by_keyboard_and_gives_the_focus_back(
    page: Page, thread: Thread
) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"/threads/{thread.pk}/")
    opener = page.locator(".drawer-button")
    expect(page.locator("#threads")).to_be_hidden()

    opener.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".drawer-close")).to_be_focused()
    page.keyboard.press("Escape")

    expect(page.locator("#threads")).to_be_hidden()
    expect(opener).to_be_focused()


@pytest.mark.parametrize(("scheme", "width"), [("dark", 360), ("light", 1440)])
def test_pages_are_accessible_and_fit(
    page: Page, answering: Cell, steady: LanguageModel, scheme: str, width: int
) -> None:
    Cell.objects.filter(pk=answering.pk).update(
        status="error",
        ending="truncated",
        code="truncated",
        text="# T\n\n- a\n\n```py\nx = 1  # c\n```\n\n|a|b|\n|-|-|\n|1|2|\n\n> q [l](http://b)",
        reasoning="Hm.",
        sentence="It was cut.",
        provider_reason="overloaded",
        request_id="req_" + "8f" * 30,
    )
    Round.objects.update(
        state="error", ending="truncated", code="x", ended_at="2026-01-01T00:00Z"
    )
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 800})

    for path in ("/", f"/threads/{answering.thread_id}/", "/search/?q=Q"):
        page.goto(path)
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
