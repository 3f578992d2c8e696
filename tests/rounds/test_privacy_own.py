"""Failures of our own are logged by class and place, and quote nothing (I1, I2).

An error of the database quotes the row, one of a decoder the text: no log does.
"""

import asyncio
import urllib.error
import urllib.request

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from tests.canaries import ANSWER, CANARY, KEY, PROMPT, THOUGHT, assert_silent
from tests.conftest import Site
from tests.fakegateway import DONE, FakeGateway, Script, chunk
from tests.rounds.helpers import Page, answered, opened, until
from tests.rounds.keys import keyed
from tests.rounds.spoiling import spoil
from threads.models import Cell, LanguageModel, Thread
from threads.rounds import engine

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds", "key", "loud"),
]

HALF = chunk(reasoning=THOUGHT) + chunk(content=ANSWER)


async def test_our_own_failure_tells_its_place_and_none_of_its_words(
    thread: Thread,
    steady: LanguageModel,
    settings: Settings,
    loud: pytest.LogCaptureFixture,
) -> None:
    settings.CHAT_ROUND_CAP_SECONDS = KEY

    cell = await answered(thread, steady, PROMPT)

    assert cell.code == "internal_error"
    assert f"INTERNAL_ERROR incident={cell.sentence_params['incident']}" in loud.text
    assert "threads.conf.Misconfigured" in loud.text
    assert_silent(loud)


@pytest.fixture
async def spoilt(thread: Thread, gateway: FakeGateway) -> Cell:
    """An answer that the database cannot give any more."""
    gateway.play(Script(HALF, chunk(finish="stop"), DONE))
    cell = await answered(thread, await keyed(gateway), PROMPT)
    await sync_to_async(spoil)(cell, ANSWER)
    return cell


async def test_a_text_that_cannot_be_read_is_not_quoted_by_a_round(
    thread: Thread, spoilt: Cell, loud: pytest.LogCaptureFixture
) -> None:
    round_ = await opened(thread, await LanguageModel.objects.aget(), PROMPT)

    await engine.start(round_.pk)
    await engine.wait(round_.pk)

    assert f"HISTORY_UNREADABLE round={round_.pk}" in loud.text
    assert "sqlite3.OperationalError" in loud.text
    assert_silent(loud)


async def test_a_text_that_cannot_be_read_is_not_quoted_by_a_page(
    alice: User, thread: Thread, spoilt: Cell, loud: pytest.LogCaptureFixture
) -> None:
    client = Client(raise_request_exception=False)
    await sync_to_async(client.force_login)(alice)

    response = await sync_to_async(client.get)(f"/threads/{thread.pk}/")

    assert response.status_code == 500
    assert "Internal Server Error" in loud.text
    assert "sqlite3.OperationalError" in loud.text
    assert_silent(loud)


async def test_a_text_that_cannot_be_read_is_not_quoted_by_a_socket(
    alice: User, thread: Thread, spoilt: Cell, loud: pytest.LogCaptureFixture
) -> None:
    page = await Page(alice, thread).open()
    await until(lambda: "failed" in loud.text)
    await page.close()

    assert f"Socket of thread {thread.pk} failed" in loud.text
    assert "sqlite3.OperationalError" in loud.text
    assert_silent(loud)


async def test_a_text_that_cannot_be_read_is_not_quoted_by_the_served_site(
    alice: User, thread: Thread, spoilt: Cell, site: Site
) -> None:
    headers = await sync_to_async(site.sign_in)(alice)
    address = urllib.request.Request(  # noqa: S310 - our own site
        f"{site.url}/threads/{thread.pk}/", headers=headers
    )

    with pytest.raises(urllib.error.HTTPError) as failed:
        await asyncio.to_thread(urllib.request.urlopen, address, timeout=20)

    failed.value.close()
    assert failed.value.code == 500
    log = site.log.read_text("utf-8")
    assert "sqlite3.OperationalError" in log
    assert CANARY.findall(log) == []
