"""What a person can do about an answer, in a real browser."""

import re

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    WebSocketRoute,
    expect,
)

from tests.conftest import Site, model_now
from tests.rounds.helpers import open_now
from tests.rounds.test_resubmit import COMPLETED, TRUNCATED, again, ended, verdict_of
from tests.web.conftest import assert_accessible, signed_in_context
from threads.models import Cell, LanguageModel, Round, Thread, ToolRun

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def models(practice_url: str, db: None) -> dict[str, LanguageModel]:
    return {
        name: model_now(f"practice/{name}", practice_url)
        for name in ("steady", "truncate", "blocked", "slow")
    }


@pytest.fixture
def cut(thread: Thread, models: dict[str, LanguageModel]) -> Cell:
    """An answer of practice/truncate as it ends; sent again it ends so once more."""
    return ended(open_now(thread, models["truncate"], "Why?"), text="Half a sen")


@pytest.fixture
def blocked(thread: Thread, models: dict[str, LanguageModel]) -> Cell:
    return ended(open_now(thread, models["blocked"], "Why?"), verdict_of("blocked"))


def visit(page: Page, cell: Cell) -> None:
    page.goto(reverse("thread", args=[cell.thread_id]))


def version(page: Page) -> Locator:
    return page.locator(".cell-answer .version-number [aria-hidden]")


def test_sending_again_puts_a_new_version_in_the_place_of_the_old(
    page: Page, cut: Cell
) -> None:
    visit(page, cut)
    expect(page.locator(".ending-word")).to_have_text("interrupted")

    page.get_by_role("button", name="Send again").click()

    expect(version(page)).to_have_text("2/2")
    expect(page.locator(".answer-text")).to_contain_text("because I had not fin")
    expect(page.locator(".cell")).to_have_count(2)
    expect(page.get_by_role("button", name="Send again")).to_be_visible()
    shown = page.locator("#cells").inner_text()
    page.reload()
    assert page.locator("#cells").inner_text() == shown


def test_versions_are_turned_by_keyboard_and_said(page: Page, cut: Cell) -> None:
    ended(again(cut), COMPLETED, "A whole one.")
    visit(page, cut)

    page.get_by_role("button", name="Earlier version").focus()
    page.keyboard.press("Enter")

    expect(version(page)).to_have_text("1/2")
    expect(page.locator(".answer-text")).to_have_text("Half a sen")
    expect(page.locator(".ending-word")).to_have_text("interrupted")
    expect(page.locator("#status")).to_have_text("Version 1 of 2")
    expect(page.get_by_role("button", name="Later version")).to_be_focused()
    page.keyboard.press("Space")
    expect(page.locator(".answer-text")).to_have_text("A whole one.")
    expect(page.get_by_role("button", name="Earlier version")).to_be_focused()


def test_another_model_is_chosen_from_the_menu_by_keyboard(
    page: Page, cut: Cell, models: dict[str, LanguageModel]
) -> None:
    visit(page, cut)
    opener = page.get_by_role("link", name="Choose another model")

    opener.focus()
    page.keyboard.press("Enter")
    menu = page.locator("#models")
    expect(menu).to_be_visible()
    expect(menu.get_by_role("button", name="practice/truncate")).to_be_hidden()
    expect(menu.get_by_role("button").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    expect(menu.get_by_role("button", name="practice/slow")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    expect(menu).to_be_hidden()
    expect(page.locator('.foot[data-status="done"]')).to_be_attached()
    expect(version(page)).to_have_text("2/2")
    expect(page.locator("#model")).to_have_value(str(models["steady"].pk))
    round_ = Round.objects.latest("pk")
    assert round_.model == models["steady"]


def test_a_message_is_changed_where_it_stands_by_keyboard_alone(
    page: Page, blocked: Cell
) -> None:
    visit(page, blocked)
    expect(page.locator(".ending-word")).to_have_text("blocked")
    opener = page.get_by_role("link", name="Change the message")
    area = page.locator("#change-text")

    opener.focus()
    page.keyboard.press("Enter")
    expect(area).to_be_focused()
    expect(area).to_have_value("Why?")
    page.keyboard.type(" thrown away")
    page.keyboard.press("Escape")
    expect(area).to_have_count(0)
    expect(page.locator(".message")).to_have_text("Why?")
    expect(opener).to_be_focused()

    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("And how?")
    page.keyboard.press("Enter")

    expect(page.locator(".message")).to_have_text("Why?\nAnd how?")
    expect(page.locator(".cell-user .version-number [aria-hidden]")).to_have_text("2/2")
    expect(page.locator('.foot[data-status="error"]')).to_be_attached()
    expect(page.locator(".cell")).to_have_count(2)
    page.locator(".cell-user [data-act=earlier]").click()
    expect(page.locator(".message")).to_have_text("Why?")
    expect(page.locator(".cell-answer")).to_have_attribute("id", f"cell-{blocked.pk}")


def test_a_change_that_cannot_be_sent_says_so_and_is_kept(
    page: Page, blocked: Cell, models: dict[str, LanguageModel]
) -> None:
    visit(page, blocked)
    page.get_by_role("link", name="Change", exact=True).click()
    area = page.locator("#change-text")

    area.fill("")
    page.get_by_role("button", name="Save and send").click()
    expect(page.locator("#change-said")).to_have_text("Write a message first.")
    area.fill("Do not lose me")
    Round.objects.filter(pk=blocked.round.pk).update(state="running", ended_at=None)
    page.get_by_role("button", name="Save and send").click()
    expect(page.locator("#change-said")).to_contain_text("still answering")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Save and send").click()
    expect(page.locator("#change-said")).to_contain_text("was not sent")

    expect(area).to_have_value("Do not lose me")


def test_two_quick_clicks_make_one_round(page: Page, cut: Cell) -> None:
    visit(page, cut)

    page.get_by_role("button", name="Send again").dblclick()

    expect(version(page)).to_have_text("2/2")
    assert Round.objects.count() == 2


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


def test_tools_that_change_something_are_named_first(page: Page, cut: Cell) -> None:
    ToolRun.objects.create(
        round=cut.round,
        call=1,
        position=0,
        name="send_mail",
        has_effects=True,
        state="unknown",
    )
    visit(page, cut)

    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_role("alert").filter(has_text="send_mail")).to_be_visible()
    assert Round.objects.count() == 1
    page.get_by_role("button", name="Send again anyway").click()

    expect(version(page)).to_have_text("2/2")


def test_what_cannot_be_sent_again_says_so_where_it_was_clicked(
    page: Page, cut: Cell
) -> None:
    visit(page, cut)
    said = page.locator(f"#cell-{cut.pk}-said")

    LanguageModel.objects.filter(wire_id="practice/truncate").update(is_enabled=False)
    page.get_by_role("button", name="Send again").click()
    expect(said).to_contain_text("not offered any more")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Send again").click()
    expect(said).to_contain_text("was not sent")

    assert Round.objects.count() == 1


def test_details_unfold_and_fold_again(page: Page, cut: Cell) -> None:
    visit(page, cut)
    fold = page.get_by_role("link", name="Details")

    fold.focus()
    page.keyboard.press("Enter")
    expect(fold).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".details")).to_have_text("No request was sent.")
    page.keyboard.press("Enter")

    expect(page.locator(".details")).to_be_hidden()
    expect(fold).to_have_attribute("aria-expanded", "false")


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
    [
        ("light", 360, "ltr"),
        ("dark", 360, "rtl"),
        ("dark", 1440, "ltr"),
        ("light", 1440, "rtl"),
    ],
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
