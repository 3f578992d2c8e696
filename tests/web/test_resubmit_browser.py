"""What a person can do about an answer, in a real browser."""

import pytest
from playwright.sync_api import (
    Page,
    expect,
)

from tests.rounds.resubmitting import COMPLETED, again, ended
from tests.web.asking import version, visit
from threads.models import Cell, LanguageModel, Round, ToolRun

pytestmark = pytest.mark.django_db(transaction=True)


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
