"""Asking again in several tabs, in long threads, without a script, for everybody."""

import re

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    WebSocketRoute,
    expect,
)

from tests.conftest import Site
from tests.rounds.helpers import open_now
from tests.rounds.resubmitting import COMPLETED, TRUNCATED, again, ended
from tests.web.asking import version, visit
from tests.web.conftest import assert_accessible, signed_in_context
from threads.models import Cell, LanguageModel, Round, Thread

pytestmark = pytest.mark.django_db(transaction=True)


def test_another_tab_follows_in_everything(
    context: BrowserContext, cut: Cell, models: dict[str, LanguageModel]
) -> None:
    one, two = context.new_page(), context.new_page()
    for page in (one, two):
        visit(page, cut)
        page.locator("#composer-state:not([data-running])").wait_for()
    kept = two.evaluate("scrollY")

    one.get_by_role("link", name="Choose another model").click()
    one.get_by_role("button", name="practice/slow").click()
    expect(two.locator(".cell-answer")).to_have_attribute("data-status", "streaming")
    expect(two.get_by_role("button", name="Send again")).to_be_hidden()
    expect(two.get_by_role("link", name="Change", exact=True)).to_be_hidden()
    two.locator(".stop").click()
    for page in (one, two):
        expect(page.locator(".ending-stopped")).to_be_visible()
        expect(version(page)).to_have_text("2/2")

    two.get_by_role("button", name="Earlier version").click()
    for page in (one, two):
        expect(version(page)).to_have_text("1/2")
        expect(page.locator(".answer-text")).to_have_text("Half a sen")
        expect(page.locator(".cell")).to_have_count(2)
    assert two.evaluate("scrollY") == kept


def test_a_tab_that_was_cut_off_catches_up_when_it_is_back(
    page: Page, cut: Cell
) -> None:
    routes: list[WebSocketRoute] = []

    def connect(route: WebSocketRoute) -> None:
        routes.append(route)
        route.connect_to_server()

    page.route_web_socket(re.compile("/ws/threads/"), connect)
    visit(page, cut)
    page.locator("#composer-state").wait_for()
    ended(again(cut), COMPLETED, "A whole one.")

    routes[-1].close(code=1012)

    expect(page.locator(".answer-text")).to_have_text("A whole one.")
    expect(version(page)).to_have_text("2/2")
    expect(page.locator(".cell")).to_have_count(2)


def test_what_another_tab_changed_does_not_lose_what_is_being_written(
    context: BrowserContext, blocked: Cell
) -> None:
    one, two = context.new_page(), context.new_page()
    for page in (one, two):
        visit(page, blocked)
        page.get_by_role("link", name="Change the message").click()
    two.locator("#change-text").fill("Mine")

    one.locator("#change-text").fill("Theirs")
    one.keyboard.press("Enter")

    expect(two.locator(".message")).to_have_text("Theirs")
    expect(two.locator("#change-text")).to_have_value("Mine")
    expect(one.locator(".message")).to_have_text("Theirs")


def test_nothing_moves_when_an_answer_is_replaced(
    page: Page, thread: Thread, models: dict[str, LanguageModel]
) -> None:
    long = "\n\n".join(f"Paragraph {number}" for number in range(60))
    for prompt in ("One", "Two"):
        ended(open_now(thread, models["steady"], prompt), COMPLETED, long)
    last = ended(open_now(thread, models["slow"], "Why?"), TRUNCATED, "Half a sen")
    longer = ended(again(last), COMPLETED, long)
    visit(page, longer)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    turn = page.get_by_role("button", name="Earlier version")
    expect(turn).to_be_in_viewport()

    # The top of the answer is out of sight: its foot stays where it is.
    foot = page.locator(".cell-answer:last-child .actions")
    before = foot.bounding_box()
    turn.click()
    expect(version(page)).to_have_text("1/2")
    after = foot.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["y"] - after["y"]) < 2

    # Now its top is in sight and stays, though the new answer is empty at first.
    top = page.locator(".cell-user:nth-last-child(2)")
    before = top.bounding_box()
    page.get_by_role("button", name="Send again").click()
    expect(page.locator(".cell-answer:last-child .tail")).not_to_be_empty()
    after = top.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["y"] - after["y"]) < 2
    page.locator(".stop").click()


def reload_to_the_end(page: Page) -> None:
    """Reload, as somebody without a script does, until the answer is there."""
    while page.locator('.cell-answer[data-status="streaming"]').count():
        page.reload()


def test_without_a_script_all_of_it_works_by_forms(
    browser: Browser,
    site: Site,
    alice: User,
    cut: Cell,
    models: dict[str, LanguageModel],
) -> None:
    context = signed_in_context(browser, site, alice, scripts=False)
    page = context.new_page()
    visit(page, cut)

    page.get_by_role("link", name="Choose another model").click()
    page.get_by_label("Model").select_option(label="practice/steady")
    page.get_by_role("button", name="Send again").click()
    page.wait_for_url(re.compile("#cell-"))
    assert page.url.endswith(f"#cell-{Round.objects.latest('pk').answer_cell_id}")
    reload_to_the_end(page)
    expect(version(page)).to_have_text("2/2")

    page.get_by_role("button", name="Earlier version").click()
    expect(page.locator(".answer-text")).to_have_text("Half a sen")
    page.get_by_role("link", name="Details").click()
    expect(page.locator(".details")).to_have_text("No request was sent.")
    page.get_by_role("link", name="Back to the thread").click()
    page.get_by_role("link", name="Change", exact=True).click()
    page.locator("#prompt").fill("Why not?")
    page.get_by_role("button", name="Save and send").click()
    expect(page.locator(".message")).to_have_text("Why not?")
    reload_to_the_end(page)
    page.get_by_role("button", name="Send again").click()
    expect(
        page.locator(f"#cell-{Round.objects.latest('pk').answer_cell_id}")
    ).to_be_attached()
    reload_to_the_end(page)
    expect(version(page)).to_have_text("2/2")
    context.close()


@pytest.mark.parametrize(
    ("scheme", "width", "direction"),
    [("dark", 360, "rtl"), ("light", 1440, "ltr")],
)
def test_open_menus_forms_and_details_are_accessible_and_fit(
    page: Page, blocked: Cell, scheme: str, width: int, direction: str
) -> None:
    Cell.objects.filter(pk=blocked.pk).update(
        provider_reason="flagged " * 20, request_id="req_" + "8f" * 30
    )
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 800})
    visit(page, blocked)
    page.evaluate("dir => { document.documentElement.dir = dir; }", direction)

    def check() -> None:
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        small = page.evaluate(
            "() => [...document.querySelectorAll('.cell :is(a, button)')]"
            ".map((target) => [target.outerHTML, target.getBoundingClientRect()])"
            ".filter(([, box]) => box.width && Math.min(box.width, box.height) < 44)"
            ".map(([html]) => html)"
        )
        assert small == []

    page.get_by_role("link", name="Details").click()
    expect(page.locator(".details")).to_have_text("No request was sent.")
    check()
    page.get_by_role("link", name="Choose another model").click()
    check()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Change the message").click()
    check()
    for name, cell in (
        ("again", blocked.pk),
        ("change", blocked.question_id),
        ("details", blocked.pk),
    ):
        page.goto(reverse(f"cell-{name}", args=[blocked.thread_id, cell]))
        check()
