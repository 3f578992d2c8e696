"""What tests of pages share: a real browser, and Alice in front of it."""

import os
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    expect,
    sync_playwright,
)

from tests.chromium import FLAGS, chromium
from tests.conftest import Site, model_now
from tests.rounds.helpers import open_now
from tests.rounds.resubmitting import TRUNCATED, ended, verdict_of
from threads.models import Cell, LanguageModel, Thread

ACCESSIBLE = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"],
    # Every rule is tried; only what it has against a page is worked out and told.
    "resultTypes": ["violations"],
    "selectors": False,
}
# A machine on which several tests run at once may take its time.
expect.set_options(timeout=20_000)
# The script asks what the server refuses, and shows the reason.
REFUSED = "Failed to load resource: the server responded with a status of 422"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        # Playwright's loop runs in this thread; Django must still talk to the database.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        yield playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


def signed_in_context(
    browser: Browser, site: Site, user: User, *, scripts: bool = True
) -> BrowserContext:
    """Return a browser of somebody who has signed in."""
    context = browser.new_context(base_url=site.url, java_script_enabled=scripts)
    for part in site.sign_in(user)["Cookie"].split("; "):
        name, value = part.split("=")
        context.add_cookies([{"name": name, "value": value, "url": site.url}])
    return context


@pytest.fixture
def context(browser: Browser, site: Site, alice: User) -> Iterator[BrowserContext]:
    """Alice's browser; whatever goes wrong in any of its pages fails the test."""
    problems: list[str] = []
    context = signed_in_context(browser, site, alice)
    context.on("weberror", lambda error: problems.append(str(error.error)))
    context.on(
        "console",
        lambda said: problems.append(said.text) if said.type == "error" else None,
    )
    yield context
    for page in context.pages:
        # A page that is torn down in the middle of an answer has nowhere to put it.
        page.wait_for_load_state("networkidle")
    context.close()
    assert [said for said in problems if not said.startswith(REFUSED)] == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page of hers."""
    return context.new_page()


def assert_accessible(page: Page) -> None:
    """Assert that axe finds nothing wrong on a page as it stands."""
    found = Axe().run(page, options=ACCESSIBLE).response["violations"]
    assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found] == []


@pytest.fixture
def broken(thread: Thread, steady: LanguageModel) -> Cell:
    """An answer that was cut off after a few words, written without a model."""
    return ended(open_now(thread, steady, "Why?"), TRUNCATED, "Half a sen")


@pytest.fixture
def models(practice_url: str, db: None) -> dict[str, LanguageModel]:
    """Practice models by the ends of their names."""
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
    """A message that practice/blocked did not take."""
    return ended(open_now(thread, models["blocked"], "Why?"), verdict_of("blocked"))
