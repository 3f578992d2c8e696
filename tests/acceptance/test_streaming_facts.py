"""What a person has seen is what is kept: to the character, in a real browser."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.acceptance.conftest import Site, sign_in_link

ANSWER = ".cell-answer:last-of-type"
STARTED, FURTHER = 400, 1200  # characters


class Answer(HTMLParser):
    """The last answer of a page as the server sent it, before any script ran."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.stands = -1
        self.text = ""
        self._depth = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note how far the answer claims to stand, and where its text begins."""
        given = dict(attrs)
        classes = (given.get("class") or "").split()
        if "cell-answer" in classes:
            self.stands = int(given["data-offset"] or -1)
        if tag == "div" and (self._depth or "answer-text" in classes):
            self.text = self.text if self._depth else ""
            self._depth += 1

    def handle_endtag(self, tag: str) -> None:
        """Note where its text ends."""
        if tag == "div" and self._depth:
            self._depth -= 1

    def handle_data(self, data: str) -> None:
        """Gather its text."""
        if self._depth:
            self.text += data


async def sign_in(browser: Browser, served: Site) -> BrowserContext:
    """Open the browser of somebody new."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(served.address + sign_in_link(served))
    await page.locator("form button[type=submit]").first.click()
    await expect(page.locator("#composer-text")).to_be_visible()
    await page.close()
    return context


async def ask(page: Page, served: Site) -> None:
    """Ask the model whose answer is long, and wait until it has begun."""
    await page.goto(served.address)
    await page.select_option("#model", label="Long answer")
    await page.fill("#composer-text", "Tell me everything")
    await page.press("#composer-text", "Enter")
    await page.wait_for_url("**/threads/*/**")
    await reaches(page, STARTED)


async def offset(page: Page) -> int:
    """How many characters of the answer the page has."""
    found = await page.locator(ANSWER).get_attribute("data-offset", timeout=20_000)
    return int(found or 0)


async def reaches(page: Page, length: int) -> None:
    """Wait until the page has so many characters of the answer."""
    async with asyncio.timeout(30):
        while await offset(page) < length:  # noqa: ASYNC110 - a browser tells nobody
            await asyncio.sleep(0.1)


def stored(served: Site, page: Page) -> str:
    """The text of the page's last answer in the database."""
    thread = urlsplit(page.url).path.split("/")[2]
    path = served.env["DATABASE_URL"].removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, timeout=10)) as connection:
        rows: Iterator[tuple[str]] = connection.execute(
            "select text from threads_cell where thread_id=? and role='assistant'"
            " order by position desc",
            [thread],
        )
        return next(rows)[0]


def squeezed(text: str) -> str:
    """A text without the white space, which depends on how it is laid out."""
    return "".join(text.split())


async def test_a_page_that_is_loaded_mid_answer_shows_exactly_as_much_as_it_says(
    browser: Browser, served: Site
) -> None:
    context = await sign_in(browser, served)
    page = await context.new_page()
    await ask(page, served)

    before = await offset(page)
    response = await page.reload()
    assert response is not None
    sent = Answer(await response.text())
    await reaches(page, sent.stands + FURTHER)
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator(ANSWER)).to_have_attribute("data-status", "stopped")
    whole = stored(served, page)
    shown = await page.locator(f"{ANSWER} .answer-text").inner_text()
    await context.close()

    assert sent.stands >= before
    assert squeezed(sent.text) == squeezed(whole[: sent.stands])
    assert squeezed(shown) == squeezed(whole)


async def test_stop_keeps_to_the_character_what_the_page_had_when_it_was_pressed(
    browser: Browser, served: Site
) -> None:
    context = await sign_in(browser, served)
    page = await context.new_page()
    await ask(page, served)

    # One step for the browser: no frame can come between the look and the press.
    seen = await page.evaluate(
        """() => {
            const answer = [...document.querySelectorAll(".cell-answer")].at(-1);
            const seen = [Number(answer.dataset.offset), answer.querySelector(".answer-text").innerText];
            document.querySelector("#composer-state button").click();
            return seen;
        }"""
    )
    await expect(page.locator(ANSWER)).to_have_attribute("data-status", "stopped")
    kept = stored(served, page)
    await expect(page.locator(ANSWER)).to_have_attribute("data-offset", str(len(kept)))
    shown = await page.locator(f"{ANSWER} .answer-text").inner_text()
    await context.close()

    assert len(kept) == seen[0]
    assert squeezed(shown) == squeezed(seen[1]) == squeezed(kept)
