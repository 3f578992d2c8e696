"""Each ending of the tour, read in a browser in four languages, one right to left."""

import json

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
    assert all(row["sentence"] for row in rows)
    page = await person.new_page()

    for language, direction in READ_IN.items():
        await person.add_cookies(
            [{"name": "django_language", "value": language, "url": served.address}]
        )
        for row in rows:
            await page.goto(f"{served.address}/threads/{row['thread']}/")
            key = row["sentence_key"]
            text = ENGLISH[key] if language == "en" else shipped()[key][language]
            await expect(page.locator("html")).to_have_attribute("dir", direction)
            await expect(page.locator(".foot .sentence")).to_have_text(
                text.format(model=row["id"])
            )
