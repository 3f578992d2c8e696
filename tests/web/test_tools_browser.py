"""Tools as a person sees them in a real browser: live, folded, and asking for a word."""

import re

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import (
    Browser,
    Locator,
    Page,
    WebSocketRoute,
    expect,
)

from tests.conftest import Site, model_now
from tests.web.asking import visit
from tests.web.conftest import assert_accessible, signed_in_context
from tests.web.test_withdrawal_browser import (
    LISTEN,
    assert_a_reload_shows_the_same,
    ended,
    said,
)
from tests.web.toolcells import waiting
from threads.models import LanguageModel, Thread, ToolRun

pytestmark = pytest.mark.django_db(transaction=True)


LONG_NAME = "a_server_of_letters__send_one_to_everybody"


def assert_not_cut(place: Locator) -> None:
    """Assert that all of a text is inside its place."""
    width, room = place.evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert width <= room
    assert place.evaluate("e => getComputedStyle(e).textOverflow") == "clip"


def ask(page: Page, thread: Thread, url: str, wire_id: str) -> None:
    model_now(wire_id, url)
    page.goto(f"/threads/{thread.pk}/")
    page.evaluate(LISTEN)
    page.locator("#composer-text").fill("What time is it, and what is 17 times 23?")
    page.keyboard.press("Enter")


def kinds(page: Page) -> list[str]:
    """What the blocks of the answer are, in their order: tools, or text."""
    found: list[str] = page.locator(".answer-text > .block").evaluate_all(
        "blocks => blocks.map((block) => block.querySelector('.tools') ? 'tools' : 'text')"
    )
    return found


def tool(page: Page, name: str) -> Locator:
    return page.locator(".tool").filter(has_text=name)


def test_two_tools_stand_between_the_texts_and_open_to_what_they_were_asked(
    page: Page, thread: Thread, practice_url: str
) -> None:
    ask(page, thread, practice_url, "practice/tools")

    ended(page, "done")
    kinds_then = kinds(page)
    assert kinds_then[:3] == ["text", "tools", "text"]
    assert kinds_then.count("tools") == 1
    for name in ("current_time", "calculator"):
        expect(tool(page, name).locator(".tool-state")).to_have_text("finished")
    heard = " ".join(said(page))
    assert "calculator: finished." in heard
    assert said(page)[-1] == "The answer is complete."

    line = tool(page, "calculator").locator("summary")
    expect(line).to_contain_text("17 * 23")
    line.focus()
    page.keyboard.press("Enter")
    more = tool(page, "calculator").locator(".tool-more")
    expect(more).to_contain_text('"expression": "17 * 23"')
    expect(more).to_contain_text("391")
    assert_accessible(page)
    page.keyboard.press("Enter")
    assert_a_reload_shows_the_same(page)
    assert kinds(page) == kinds_then


def test_after_a_fault_the_text_and_both_results_are_kept(
    page: Page, thread: Thread, practice_url: str
) -> None:
    ask(page, thread, practice_url, "practice/tool-then-fault")

    ended(page, "error")
    assert kinds(page)[:2] == ["text", "tools"]
    expect(page.locator('.tool[data-state="ok"]')).to_have_count(2)
    expect(page.get_by_role("button", name="Send again")).to_be_visible()
    assert_a_reload_shows_the_same(page)


def test_a_tool_waits_for_a_word_which_every_tab_sees(
    page: Page, thread: Thread, steady: LanguageModel
) -> None:
    cell, (run, mail) = waiting(thread, steady, name=LONG_NAME)
    page.set_viewport_size({"width": 360, "height": 740})
    visit(page, cell)
    assert_not_cut(page.locator(f"#tool-{run.pk} .tool-name"))
    page.evaluate(LISTEN)
    other = page.context.new_page()
    visit(other, cell)
    expect(page.locator(".note")).to_have_text("Waiting for your decision")
    expect(page.locator(".stop")).to_be_visible()
    row = page.locator(f"#thread-{thread.pk} .row-asking")
    expect(row).to_have_attribute("title", "waiting for your decision")
    assert_accessible(page)

    page.locator("#composer-text").fill("Well?")
    page.keyboard.press("Enter")
    in_the_way = page.locator("#composer-error")
    expect(in_the_way).to_contain_text("waits for your decision")
    card = page.locator(f"#tool-{run.pk}")
    area = card.get_by_label("Arguments")
    area.fill('{"word": ')
    card.get_by_role("button", name="Allow").click()
    expect(card.get_by_role("alert")).to_contain_text("line 1, column 10")
    expect(area).to_be_focused()
    expect(area).to_have_value('{"word": ')
    assert ToolRun.objects.get(pk=run.pk).state == "waiting"

    # What is being written in one card is not lost when another is decided on.
    theirs = other.locator(f"#tool-{run.pk}").get_by_label("Arguments")
    theirs.fill("half a th")
    page.locator(f"#tool-{mail.pk}").get_by_role("button", name="Do not run").click()
    for tab in (page, other):
        refused = tab.locator(f"#tool-{mail.pk} .tool-state")
        expect(refused).to_have_text("not run")
    expect(page.locator(f"#tool-{mail.pk} summary")).to_be_focused()
    expect(theirs).to_have_value("half a th")
    expect(area).to_have_value('{"word": ')

    area.fill('{"word": "b"}')
    card.get_by_role("button", name="Allow").click()
    for tab in (page, other):
        expect(tab.locator(".decide")).to_have_count(0)
    expect(in_the_way).to_be_empty()
    ToolRun.objects.get(pk=run.pk, arguments='{"word": "b"}')
    assert "mail: not run." in said(page)


def test_once_the_site_is_back_nobody_is_told_that_it_cannot_be_reached(
    browser: Browser, site: Site, alice: User, thread: Thread, steady: LanguageModel
) -> None:
    cell, (run, _) = waiting(thread, steady)
    idle = Thread.objects.create(owner=alice)
    context = signed_in_context(browser, site, alice)
    page, sockets = context.new_page(), list[WebSocketRoute]()

    def connect(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        socket.connect_to_server()

    page.route_web_socket(re.compile("/ws/threads/"), connect)
    for path in ("**/tools/*/", "**/send/"):
        page.route(path, lambda route: route.abort())

    visit(page, cell)
    said = page.locator(f"#tool-{run.pk}-said")
    page.locator(f"#tool-{run.pk}").get_by_role("button", name="Allow").click()
    expect(said).to_contain_text("could not be reached")
    sockets[-1].close(code=1012)
    expect(said).to_be_empty()

    before = len(sockets)
    page.goto(reverse("thread", args=[idle.pk]))
    for _ in range(500):
        if len(sockets) > before:
            break
        page.wait_for_timeout(20)
    said = page.locator("#composer-error")
    page.locator("#composer-text").fill("Well?")
    page.keyboard.press("Enter")
    expect(said).to_contain_text("could not be reached")
    sockets[-1].close(code=1012)
    expect(said).to_be_empty()
    context.close()


def test_a_tab_that_does_not_know_of_the_question_keeps_what_the_site_says(
    page: Page, thread: Thread, steady: LanguageModel
) -> None:
    page.route_web_socket(re.compile("/ws/threads/"), lambda _socket: None)
    page.goto(reverse("thread", args=[thread.pk]))
    waiting(thread, steady)

    page.locator("#composer-text").fill("Well?")
    page.keyboard.press("Enter")

    said = page.locator("#composer-error")
    expect(said).to_contain_text("waits for your decision")
    page.wait_for_load_state("networkidle")
    expect(said).to_contain_text("waits for your decision")
    expect(page.locator("#composer-text")).to_have_value("Well?")


def test_a_tool_is_decided_on_without_a_script(
    browser: Browser, site: Site, alice: User, thread: Thread, steady: LanguageModel
) -> None:
    cell, (run, _) = waiting(thread, steady)
    context = signed_in_context(browser, site, alice, scripts=False)
    page = context.new_page()
    visit(page, cell)
    card = page.locator(f"#tool-{run.pk}")

    card.get_by_label("Arguments").fill("[]")
    card.get_by_role("button", name="Allow").click()
    expect(card.get_by_role("alert")).to_contain_text("in braces")
    expect(card.get_by_label("Arguments")).to_have_value("[]")
    card.get_by_role("button", name="Do not run").click()

    expect(card.locator(".tool-state")).to_have_text("not run")
    assert page.url.endswith(f"#tool-{run.pk}")
    context.close()
