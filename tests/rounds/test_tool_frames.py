"""What pages are sent of tools: each state as it comes, in their own language."""

import threading

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import translation

from tests.conftest import model_at
from tests.fakegateway import FakeGateway
from tests.rounds.helpers import Page, ask, until
from tests.rounds.tooling import asking, function_tool, saying, with_tools
from tests.web.toolcells import BEFORE, waiting
from threads.models import LanguageModel, Thread, ToolRun
from threads.rounds import broadcast, engine, ledger
from threads.rounds.database import in_database

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


async def test_pages_see_each_state_in_their_language_and_again_when_they_come_back(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    began, release = threading.Event(), threading.Event()

    def slow(word: str) -> str:
        began.set()
        release.wait(20)
        return word * 2

    gateway.play(asking(("slow", {"word": "so"}), text="Let me look."), saying("Done."))
    page = await Page(alice, thread).open()
    german = await Page(alice, thread, language="de").open()
    with with_tools(function_tool("slow", slow)):
        round_ = await ask(thread, await model_at("some/model", gateway.base_url))
        cell_id = round_.answer_cell_id
        await until(began.is_set)
        for each in (page, german):
            await sees(each, "running")
            shown = each.cells[cell_id]
            assert shown.blocks[0] == "<p>Let me look.</p>"
            assert f'id="cell-{cell_id}-tools-1"' in shown.blocks[1]
        late = await Page(alice, thread).open()
        await sees(late, "running")
        release.set()
        for each in (page, german, late):
            await sees(each, "ok")
        await engine.wait(round_.pk)

    assert ">finished<" in page.tools[-1]
    assert "soso" in page.tools[-1]
    with translation.override("de"):
        assert f">{ToolRun.State.OK.label}<" in german.tools[-1]
    assert (await page.read_to_the_end(cell_id)).blocks[2] == "<p>Done.</p>"
    for each in (page, german, late):
        await each.close()


async def sees(page: Page, state: str) -> None:
    """Read until a tool in this state has come, by itself or in its answer."""
    wanted = f'data-state="{state}"'
    await page.read_until(lambda: wanted in "".join(page.html + page.tools))


async def test_a_page_that_comes_back_while_it_is_asked_gets_what_it_lacks(
    alice: User, thread: Thread, steady: LanguageModel
) -> None:
    cell, runs = await sync_to_async(waiting)(thread, steady)
    page = Page(alice, thread)
    page.position = 1
    await page.open(cell.pk)
    shown = page.cells[cell.pk]

    await page.read_until(lambda: page.cells[cell.pk].note)

    shown = page.cells[cell.pk]
    assert shown.blocks[0] == f"<p>{BEFORE}</p>"
    assert shown.note == "Waiting for your decision"
    assert page.tools[-1].count("<form") == 2
    again = Page(alice, thread)
    again.position, again.cells = 1, {cell.pk: shown}
    await again.open()
    shown.note = ""
    await again.read_until(lambda: shown.note)
    assert not any("<article" in html for html in again.html)

    place = await in_database(ledger.place_of, cell.round.pk)
    assert place is not None
    await ToolRun.objects.filter(pk=runs[0].pk).aupdate(state="allowed")
    await broadcast.tools_changed(place, 1)
    await sees(page, "allowed")
    assert page.tools[-1].count("<form") == 1
    for each in (page, again):
        await each.close()
