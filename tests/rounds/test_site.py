"""The running site: real pages, real sockets, a process that can be killed."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.typing import Origin

from tests.conftest import Site, model_at
from tests.fakegateway import FakeGateway, Script, Stall, chunk
from tests.loopback import loopback_client
from tests.rounds.helpers import SitePage, until_stored
from tests.rounds.test_frames import LONG, spoken
from threads.models import Cell, JournalEntry, LanguageModel, Round, Thread
from threads.rendering import render_text
from threads.rounds import sweep

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


async def headers_of(site: Site, user: User) -> dict[str, str]:
    return await sync_to_async(site.sign_in)(user)


async def post(site: Site, user: User, path: str, **fields: object) -> int:
    """Post a form as this person's browser would; returns the status."""
    headers = await headers_of(site, user)
    async with loopback_client(base_url=site.url) as client:
        response = await client.post(path, data=fields, headers=headers)
    return int(response.status_code)


async def send(site: Site, thread: Thread, model: LanguageModel, prompt: str) -> Round:
    """Send a message by the page's own form and return the round that it opened."""
    owner = await User.objects.aget(pk=thread.owner_id)
    status = await post(
        site,
        owner,
        f"/threads/{thread.pk}/send/",
        prompt=prompt,
        model=model.pk,
        key=prompt,
    )
    assert status in {200, 302}
    return await Round.objects.aget(thread=thread, submission_key=prompt)


async def page_of(site: Site, user: User, thread: Thread) -> SitePage:
    url = f"{site.socket_url}/ws/threads/{thread.pk}/?lang=en"
    page = SitePage(url, await headers_of(site, user))
    await page.open()
    return page


async def test_a_message_is_answered_on_every_page_that_shows_the_thread(
    site: Site, alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(spoken(LONG))
    one, two = await page_of(site, alice, thread), await page_of(site, alice, thread)

    round_ = await send(site, thread, await model_at("m", gateway.base_url), "Hello")
    shown = [await page.read_to_the_end(round_.answer_cell_id) for page in (one, two)]

    cell = await Cell.objects.aget(pk=round_.answer_cell_id)
    assert (cell.status, cell.text) == ("done", LONG)
    assert shown[0].blocks == shown[1].blocks == list(render_text(LONG))
    await one.close()
    await two.close()


async def test_stop_on_the_page_closes_the_connection_to_the_gateway(
    site: Site, alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(Script(chunk(content="One two three"), Stall()))
    page = await page_of(site, alice, thread)
    round_ = await send(site, thread, await model_at("m", gateway.base_url), "Hello")
    cell_id = round_.answer_cell_id
    await page.read_until(lambda: cell_id in page.cells and page.cells[cell_id].offset)

    await post(site, alice, f"/threads/{thread.pk}/stop/", generation=0, offset=7)
    await gateway.requests[0].wait_closed(within_seconds=5)
    shown = await page.read_to_the_end(cell_id)

    cell = await Cell.objects.aget(pk=cell_id)
    assert (cell.status, cell.text) == ("stopped", "One two")
    assert shown.blocks == ["<p>One two</p>"]
    await page.close()


async def test_a_killed_process_leaves_what_it_had_flushed_and_a_named_ending(
    site: Site, alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(Script(chunk(content="What was flushed"), Stall()))
    round_ = await send(site, thread, await model_at("m", gateway.base_url), "Hello")
    await until_stored(JournalEntry.objects.filter(cell=round_.answer_cell_id).exists)

    site.kill()
    ended = await sync_to_async(sweep.end_lost_rounds)(timezone.now())

    assert ended == [round_.pk]
    cell = await Cell.objects.aget(pk=round_.answer_cell_id)
    assert (cell.status, cell.code, cell.text) == (
        "error",
        "worker_lost",
        "What was flushed",
    )
    assert cell.sentence


async def test_a_socket_from_another_site_is_refused(
    site: Site, alice: User, thread: Thread
) -> None:
    headers = await headers_of(site, alice)

    for origin in ("https://evil.example", None):
        with pytest.raises(InvalidStatus) as refused:
            await connect(
                f"{site.socket_url}/ws/threads/{thread.pk}/",
                additional_headers={"Cookie": headers["Cookie"]},
                origin=Origin(origin) if origin else None,
                proxy=None,
            )
        assert refused.value.response.status_code == 403


@pytest.mark.parametrize("path", ["/ws/threads/{thread}/", "/ws/threads/9/", "/ws/no"])
async def test_a_stranger_s_socket_is_closed_with_a_code_that_says_why(
    site: Site, bob: User, thread: Thread, path: str
) -> None:
    headers = await headers_of(site, bob)
    url = site.socket_url + path.format(thread=thread.pk)

    async with connect(
        url,
        additional_headers={"Cookie": headers["Cookie"]},
        origin=Origin(site.url),
        proxy=None,
    ) as wire:
        with pytest.raises(ConnectionClosedError):
            await wire.recv()

    assert wire.close_code == 4404


async def test_a_socket_of_nobody_is_closed_with_a_code_that_says_why(
    site: Site, thread: Thread
) -> None:
    url = f"{site.socket_url}/ws/threads/{thread.pk}/"

    async with connect(url, origin=Origin(site.url), proxy=None) as wire:
        with pytest.raises(ConnectionClosedError):
            await wire.recv()

    assert wire.close_code == 4401


async def test_a_stranger_can_neither_send_to_nor_stop_a_thread(
    site: Site, bob: User, thread: Thread, steady: LanguageModel
) -> None:
    sent = await post(
        site, bob, f"/threads/{thread.pk}/send/", prompt="x", model=steady.pk
    )
    stopped = await post(site, bob, f"/threads/{thread.pk}/stop/")

    assert (sent, stopped) == (404, 404)
    assert await Cell.objects.acount() == 0


async def test_a_tab_that_was_signed_out_elsewhere_follows_no_further(
    site: Site, alice: User, thread: Thread, steady: LanguageModel
) -> None:
    page = await page_of(site, alice, thread)
    async with loopback_client(base_url=site.url) as client:
        await client.post("/sign-out/", headers=page.headers)

    await send(site, thread, steady, "Is she still there?")
    with pytest.raises(ConnectionClosedError):
        await page.read_until(lambda: False)

    assert page.wire.close_code == 4401
    assert not any("Is she" in text for text in page.texts)
