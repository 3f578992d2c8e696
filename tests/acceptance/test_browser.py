"""The whole way in a real browser: sign in, send, watch, reload, stop, keep."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from playwright.async_api import BrowserContext, Page, expect

from tests.acceptance.conftest import Site

ANSWER = ".cell-answer:last-of-type"
TEXT = f"{ANSWER} .answer-text"


async def until(look: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    """Look until it is so."""
    async with asyncio.timeout(seconds):
        while not await look():  # noqa: ASYNC110 - a browser tells nobody
            await asyncio.sleep(0.1)


async def send(page: Page, served: Site, model: str, prompt: str) -> None:
    """Write a message on a new thread and send it with Enter."""
    await page.goto(served.address)
    await page.select_option("#model", label=model)
    await page.fill("#composer-text", prompt)
    await page.press("#composer-text", "Enter")
    await page.wait_for_url("**/threads/*/**")
    await expect(page.locator(".cell-user .message")).to_have_text(prompt)


async def shown(page: Page) -> str:
    """The text of the last answer as it stands on the page."""
    return await page.locator(TEXT).inner_text()


def stored(served: Site, page: Page) -> tuple[str, str]:
    """Text and status of the page's last answer in the database."""
    thread = urlsplit(page.url).path.split("/")[2]
    path = served.env["DATABASE_URL"].removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, timeout=10)) as connection:
        row: tuple[str, str] = connection.execute(
            "select text, status from threads_cell where thread_id=? and role='assistant' order by position desc",
            [thread],
        ).fetchone()
    return row


async def test_an_answer_grows_survives_a_reload_and_stops_where_the_person_stopped_it(
    person: BrowserContext, served: Site
) -> None:
    page = await person.new_page()

    await send(page, served, "Long answer", "Tell me everything")
    await until(lambda: longer(page, 200))
    first = await shown(page)
    await until(lambda: longer(page, len(first) + 200))
    assert (await shown(page)).startswith(first[:150])
    await page.reload()
    again = await shown(page)
    assert again.startswith(first[:150])
    assert len(again) >= len(first)
    await until(lambda: longer(page, len(again) + 200))
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator(ANSWER)).to_have_attribute("data-status", "stopped")

    await expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    kept = await shown(page)
    text, status = stored(served, page)
    assert status == "stopped"
    assert squash(kept) == squash(text)
    await page.reload()
    assert squash(await shown(page)) == squash(text)


async def test_two_tabs_show_the_same_text_while_it_streams_and_at_the_end(
    person: BrowserContext, served: Site
) -> None:
    page, other = await person.new_page(), await person.new_page()

    await send(page, served, "Markdown", "Show me")
    await until(lambda: longer(page, 100))
    await other.goto(page.url)
    assert (await shown(other)).split()[:5] == (await shown(page)).split()[:5]
    for tab in (page, other):
        await expect(tab.locator(ANSWER)).to_have_attribute(
            "data-status", "done", timeout=30_000
        )

    html = [await tab.locator(TEXT).inner_html() for tab in (page, other)]
    assert html[0] == html[1]
    await other.reload()
    assert (
        await other.locator(TEXT).inner_text() == await page.locator(TEXT).inner_text()
    )
    await expect(page.locator(f"{TEXT} table")).to_be_visible()
    await expect(page.locator(f"{TEXT} pre code").first).to_be_visible()


async def test_a_message_in_one_tab_appears_in_the_other_and_can_be_stopped_there(
    person: BrowserContext, served: Site
) -> None:
    page, other = await person.new_page(), await person.new_page()
    await send(page, served, "Empty answer", "First")
    await expect(page.locator(ANSWER)).to_have_attribute("data-status", "error")
    await other.goto(page.url)

    await page.select_option("#model", label="Slow answer")
    await page.fill("#composer-text", "Second")
    await page.press("#composer-text", "Enter")
    await expect(other.locator(".cell-user").nth(1)).to_contain_text("Second")
    await until(lambda: longer(other, 5))
    await other.get_by_role("button", name="Stop").click()

    await expect(page.locator(ANSWER)).to_have_attribute("data-status", "stopped")
    assert squash(await shown(page)) == squash(stored(served, page)[0])
    assert squash(await shown(other)) == squash(stored(served, other)[0])


async def test_reasoning_is_shown_apart_and_folded(
    person: BrowserContext, served: Site
) -> None:
    page = await person.new_page()

    await send(page, served, "Reasoning first", "Think first")
    await expect(page.locator(ANSWER)).to_have_attribute(
        "data-status", "done", timeout=30_000
    )

    reasoning = page.locator(f"{ANSWER} .reasoning")
    await expect(reasoning).to_have_count(1)
    await expect(reasoning.locator(".reasoning-text")).not_to_be_visible()
    await reasoning.locator("summary").click()
    await expect(reasoning.locator(".reasoning-text")).to_be_visible()
    assert (await reasoning.locator(".reasoning-text").inner_text())[
        :40
    ] not in await shown(page)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("Cut off", "ended before its answer was whole"),
        ("Silence mid-answer", "stopped answering halfway"),
        ("Silence from the start", "never began to answer"),
        ("Blocked request", "do not allow this message"),
        ("Length limit", "reached its output limit"),
    ],
)
async def test_each_ending_names_itself_under_the_text_that_is_kept(
    person: BrowserContext, served: Site, model: str, sentence: str
) -> None:
    page = await person.new_page()

    await send(page, served, model, "How will this end?")

    foot = page.locator(f"{ANSWER} .foot")
    await expect(foot).to_contain_text(sentence, timeout=30_000)
    text, status = stored(served, page)
    assert status in ("error", "done")
    assert squash(await shown(page)) == squash(text)
    if text:
        # What had ended before the page was there is read, not announced.
        await expect(page.locator("#status")).to_contain_text(sentence)
    live = await page.locator(ANSWER).inner_text()
    await page.reload()
    assert await page.locator(ANSWER).inner_text() == live


async def test_a_reader_who_scrolled_up_is_not_dragged_away(
    person: BrowserContext, served: Site
) -> None:
    page = await person.new_page()
    await page.set_viewport_size({"width": 800, "height": 500})
    await send(page, served, "Long answer", "Go on for long")
    await until(lambda: longer(page, 3000))

    await page.mouse.move(400, 200)
    await page.mouse.wheel(0, -4000)
    await asyncio.sleep(0.5)
    place = await page.evaluate("window.scrollY")
    await until(lambda: longer(page, 4500))

    assert await page.evaluate("window.scrollY") == place
    await expect(page.locator("#jump")).to_be_visible()
    await page.locator("#jump").click()
    await expect(page.locator("#jump")).not_to_be_visible()
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator(ANSWER)).to_have_attribute("data-status", "stopped")


async def test_hostile_text_of_a_model_is_text(
    person: BrowserContext, served: Site
) -> None:
    page = await person.new_page()

    await send(page, served, "Steady answer", "<img src=x onerror=alert(1)> **bold**")
    await expect(page.locator(ANSWER)).to_have_attribute(
        "data-status", "done", timeout=60_000
    )

    assert await page.locator(".cell img").count() == 0


async def test_an_empty_message_and_an_overlong_one_are_told_and_kept(
    person: BrowserContext, served: Site
) -> None:
    page = await person.new_page()
    await send(page, served, "Empty answer", "First")
    await expect(page.locator(ANSWER)).to_have_attribute("data-status", "error")

    await page.fill("#composer-text", "x" * 100_001)
    await page.get_by_role("button", name="Send", exact=True).click()

    await expect(page.locator("#composer-error")).to_contain_text("100,001")
    assert await page.locator("#composer-text").input_value() == "x" * 100_001
    assert await page.locator(".cell-user").count() == 1


def squash(text: str) -> str:
    """Letters and digits only: what rendering does not change."""
    return "".join(sign for sign in text if sign.isalnum())


async def longer(page: Page, length: int) -> bool:
    """Tell whether the last answer shows more than this many characters."""
    texts = await page.locator(TEXT).all_inner_texts()
    return bool(texts) and len(texts[-1]) > length
