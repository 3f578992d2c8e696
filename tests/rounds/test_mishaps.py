"""What goes on between two steps: ends, renames and clicks at the wrong moment."""

import asyncio
import time
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils import timezone
from pytest_django import Settings

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Script, Stall, chunk, tool_call
from tests.rounds.helpers import (
    Page,
    PageCell,
    answered,
    ask,
    opened,
    until,
    until_stored,
)
from threads.models import Cell, LanguageModel, Round, Thread
from threads.rounds import engine
from threads.rounds.database import in_database
from threads.rounds.hub import live_state

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


async def signed_in(user: User) -> AsyncClient:
    client = AsyncClient()
    await sync_to_async(client.force_login)(user)
    return client


async def test_an_answer_that_ends_between_a_sockets_opening_and_its_hello_is_told(
    alice: User, thread: Thread, steady: LanguageModel
) -> None:
    round_ = await ask(thread, steady)
    await until(lambda: live_state(round_.answer_cell_id))
    page = Page(alice, thread)
    page.cells = {round_.answer_cell_id: PageCell()}
    page.position = 1

    await page.connect()
    await engine.wait(round_.pk)
    await page.greet()

    async with asyncio.timeout(10):
        while page.cells[round_.answer_cell_id].status == "streaming":
            await page.read()
    assert page.cells[round_.answer_cell_id].status == "done"


async def test_a_rename_is_not_undone_by_a_message_from_an_older_page(
    thread: Thread, steady: LanguageModel
) -> None:
    older = await Thread.objects.aget(pk=thread.pk)
    await Thread.objects.filter(pk=thread.pk).aupdate(title="Renamed")

    await opened(older, steady)

    assert (await Thread.objects.aget(pk=thread.pk)).title == "Renamed"


async def test_a_write_that_waits_for_its_turn_is_made_though_its_caller_is_gone() -> (
    None
):
    written: list[int] = []
    busy = asyncio.ensure_future(in_database(time.sleep, 0.2))
    waiting = asyncio.ensure_future(in_database(written.append, 1))
    await asyncio.sleep(0)

    waiting.cancel()
    await busy
    await in_database(time.sleep, 0)

    assert written == [1]


async def test_two_clicks_at_once_on_the_home_page_make_one_thread(
    alice: User, gateway: FakeGateway
) -> None:
    gateway.play(Script(chunk(content="Good day."), chunk(finish="stop"), DONE))
    model = await model_at("some/model", gateway.base_url)
    clients = [await signed_in(alice) for _ in range(3)]
    message = {"prompt": "Hello", "model": model.pk, "key": "one-click"}

    responses = await asyncio.gather(*(client.post("/", message) for client in clients))

    assert len({response["Location"] for response in responses}) == 1
    assert await Thread.objects.acount() == 1
    assert await Cell.objects.filter(role="user").acount() == 1
    await engine.wait((await Round.objects.aget()).pk)


async def test_another_message_with_an_old_key_on_the_home_page_is_another_thread(
    alice: User, gateway: FakeGateway
) -> None:
    gateway.play(Script(chunk(content="Good day."), chunk(finish="stop"), DONE))
    model = await model_at("some/model", gateway.base_url)
    client = await signed_in(alice)

    for prompt in ("One", "Two"):
        await client.post("/", {"prompt": prompt, "model": model.pk, "key": "kept"})

    prompts = Cell.objects.filter(role="user").values_list("text", flat=True)
    assert {text async for text in prompts} == {"One", "Two"}
    for pk in [pk async for pk in Round.objects.values_list("pk", flat=True)]:
        await engine.wait(pk)


async def test_a_dead_workers_round_does_not_block_its_thread(
    alice: User, thread: Thread, steady: LanguageModel
) -> None:
    dead = await opened(thread, steady)
    long_ago = timezone.now() - timedelta(hours=1)
    await Round.objects.filter(pk=dead.pk).aupdate(
        state="running",
        worker="elsewhere:1:x",
        claimed_at=long_ago,
        heartbeat_at=long_ago,
    )
    client = await signed_in(alice)

    refused = await client.post(
        f"/threads/{thread.pk}/send/", {"prompt": "Again", "key": "z"}
    )

    assert refused.status_code == 422
    await until_stored(
        lambda: Round.objects.filter(pk=dead.pk, code="worker_lost").exists()
    )


async def test_the_cap_speaks_of_the_call_that_it_cut_and_not_of_an_earlier_one(
    thread: Thread, gateway: FakeGateway, settings: Settings
) -> None:
    settings.CHAT_ROUND_CAP_SECONDS = "2"
    asks_for_a_tool = Script(
        chunk(reasoning="Let me see"),
        chunk(tool_calls=[tool_call(call_id="a", name="current_time", arguments="{}")]),
        chunk(finish="tool_calls"),
        DONE,
    )
    gateway.play(asks_for_a_tool, Script(Stall()))

    cell = await answered(thread, await model_at("some/model", gateway.base_url))

    assert (cell.code, cell.sentence_key) == ("round_cap", "round.cap_silent")
