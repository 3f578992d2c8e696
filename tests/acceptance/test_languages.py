"""Each ending of the tour, read in a browser in four languages, one right to left."""

import json
from html import unescape

from django.utils.html import escape
from playwright.async_api import BrowserContext, expect

from tests.acceptance.conftest import Site, manage
from threads.practice.models import PRACTICE_MODELS
from threads.sentences import ENGLISH, shipped

READ_IN = {"en": "ltr", "de": "ltr", "ja": "ltr", "ar": "rtl"}


def ended_badly(served: Site, owner: str) -> list[dict[str, str]]:
    """Have every ending once, in threads of this person."""
    lines = "".join(
        json.dumps({"id": model.wire_id, "model": model.wire_id, "prompt": "And then?"})
        + "\n"
        for model in PRACTICE_MODELS
        if model.ending != "completed"
    )
    ran = manage(
        "ask", "--user", owner, "--batch", "-", "--concurrency", "16",
        env=served.env, stdin=lines,
    )  # fmt: skip
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(rows) == lines.count("\n"), ran.stderr
    return rows


async def name_of(person: BrowserContext, served: Site) -> str:
    page = await person.new_page()
    await page.goto(served.address)
    name = await page.locator(".account span").inner_text()
    await page.close()
    return name


async def test_each_ending_shows_its_own_sentence_in_the_readers_language(
    person: BrowserContext, served: Site
) -> None:
    rows = ended_badly(served, await name_of(person, served))
    page = await person.new_page()

    for language, direction in READ_IN.items():
        await person.add_cookies(
            [{"name": "django_language", "value": language, "url": served.address}]
        )
        for row in rows:
            response = await person.request.get(address_of(served, row))
            html = await response.text()
            assert f'<html lang="{language}" dir="{direction}"' in html
            assert f'<p class="sentence" dir="auto">{words(row, language)}' in html or (
                f'<span class="sentence" dir="auto">{words(row, language)}' in html
            )
        await page.goto(address_of(served, rows[0]))
        sentence = page.locator(".foot .sentence")
        await expect(sentence).to_have_text(unescape(words(rows[0], language)))
        await expect(sentence).to_have_css("direction", direction)


def address_of(served: Site, row: dict[str, str]) -> str:
    return f"{served.address}/threads/{row['thread']}/"


def words(row: dict[str, str], language: str) -> str:
    """The sentence as it stands in the page's source."""
    key = row["sentence_key"]
    text = ENGLISH[key] if language == "en" else shipped()[key][language]
    return escape(text.format(model=row["id"]))
