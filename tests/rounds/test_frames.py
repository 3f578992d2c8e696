"""What pages are sent: every page ends with the same text, whatever befell it."""

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser, User

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Pause, Script, chunk
from tests.fakescript import Step
from tests.rounds.helpers import Page, ask, cell_of, opened, until
from threads.models import Cell, LanguageModel, Thread
from threads.rendering import render_text
from threads.rounds import engine, ledger
from threads.rounds.hub import hub, live_view
from threads.rounds.live import LiveCell
from threads.rounds.published import Shown

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]

PARAGRAPH = "A **bold** word, a `code` and 😀 an emoji. "
LONG = (
    "# Title\n\n"
    + PARAGRAPH * 5
    + "\n\n- one\n- two\n- three\n\n```python\nfor n in range(3):\n    print(n)\n```\n\n"
    + "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    + PARAGRAPH * 10
)


def spoken(text: str, *, size: int = 7, pause: float = 0.01) -> Script:
    """A script that says a text in small pieces over some time."""
    steps: list[Step | bytes | str] = []
    for start in range(0, len(text), size):
        steps += [chunk(content=text[start : start + size]), Pause(pause)]
    return Script(*steps, chunk(finish="stop"), DONE)


async def test_the_frames_of_a_page_add_up_to_the_answer(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(spoken(LONG))
    page = await Page(alice, thread).open()
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))

    shown = await page.read_to_the_end(round_.answer_cell_id)

    cell = await cell_of(round_)
    assert cell.text == LONG
    assert shown.blocks == list(render_text(LONG))
    assert (shown.tail, shown.offset) == ("", len(LONG))
    assert not any(frame.get("error") for frame in page.frames)
    await page.close()


async def test_a_page_that_attaches_in_the_middle_goes_on_from_what_it_shows(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(spoken(LONG))
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    view = await until(
        lambda: (v := live_view(round_.answer_cell_id)) and v.offset > 150 and v
    )
    page = Page(alice, thread)
    page.position = 1

    await page.open(round_.answer_cell_id)
    mine = page.cells[round_.answer_cell_id]
    mine.blocks, mine.offset = list(view.blocks), view.offset
    mine.tail, mine.kind, mine.open_html = view.tail, view.tail_kind, view.open_html
    await page.greet()
    shown = await page.read_to_the_end(round_.answer_cell_id)

    assert shown.blocks == list(render_text(LONG))
    await page.close()


async def test_a_page_that_reads_late_gets_one_frame_for_all_that_it_missed(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(spoken(LONG * 3, pause=0.004))
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    late = hub().watch(thread.pk)
    await until(lambda: late.cells)
    late.shown[round_.answer_cell_id] = Shown()

    await engine.wait(round_.pk)

    assert len(late.frames()) == 1
    assert late.frames() == []
    hub().leave(late)


async def test_a_page_that_reconnects_goes_on_from_where_it_was(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(spoken(LONG))
    page = await Page(alice, thread).open()
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    cell_id = round_.answer_cell_id
    await page.read_until(
        lambda: cell_id in page.cells and page.cells[cell_id].offset > 100
    )
    await page.close()

    again = Page(alice, thread)
    again.position, again.cells = 1, page.cells
    await again.open()
    shown = await again.read_to_the_end(cell_id)

    assert shown.blocks == list(render_text(LONG))
    assert sum(len(text) for text in again.texts) < 30 * len(LONG)
    await again.close()


async def test_a_page_that_comes_back_after_the_end_gets_the_whole_cell(
    alice: User, thread: Thread, steady: LanguageModel
) -> None:
    round_ = await ask(thread, steady, "Anybody there?")
    await engine.wait(round_.pk)
    page = Page(alice, thread)
    page.position = 1

    await page.open(round_.answer_cell_id)
    await page.read_until(lambda: any("Anybody there?" in html for html in page.html))

    assert f'id="cell-{round_.answer_cell_id}"' in page.html[0]
    assert 'hx-swap-oob="outerHTML"' in page.html[0]
    await page.close()


async def test_two_pages_see_the_same(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(spoken(LONG))
    one, two = await Page(alice, thread).open(), await Page(alice, thread).open()
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))

    shown = await asyncio.gather(
        one.read_to_the_end(round_.answer_cell_id),
        two.read_to_the_end(round_.answer_cell_id),
    )

    assert shown[0].blocks == shown[1].blocks == list(render_text(LONG))
    await one.close()
    await two.close()


async def test_a_page_that_asks_to_be_told_everything_is(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(spoken(LONG))
    page = await Page(alice, thread).open()
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    cell_id = round_.answer_cell_id
    await page.read_until(lambda: cell_id in page.cells and page.cells[cell_id].blocks)

    page.cells[cell_id].blocks = ["nonsense"] * 50
    await page.say({"type": "resync", "cell": cell_id})
    shown = await page.read_to_the_end(cell_id)

    assert shown.blocks == list(render_text(LONG))
    await page.close()


async def test_a_page_that_acknowledges_is_never_sent_far_ahead_of_what_it_read(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(spoken(LONG * 40, size=400, pause=0))
    page = Page(alice, thread, acks=True)
    await page.open()
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))

    shown = await page.read_to_the_end(round_.answer_cell_id)

    assert shown.blocks == list(render_text(LONG * 40))
    await page.close()


async def test_a_round_that_begins_puts_both_cells_and_the_stop_button_on_the_page(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(spoken("Hello.", pause=0.2))
    page = await Page(alice, thread).open()
    round_ = await ask(thread, await model_at("some/model", gateway.base_url), "Hi <b>")
    cells = (round_.user_cell_id, round_.answer_cell_id)

    await page.read_until(lambda: any("beforeend:#cells" in html for html in page.html))
    begun = next(html for html in page.html if "beforeend:#cells" in html)
    await page.read_to_the_end(round_.answer_cell_id)

    assert all(f'id="cell-{cell}"' in begun for cell in cells)
    assert "Hi &lt;b&gt;" in begun
    assert any(f'id="cell-{cells[1]}-foot"' in html for html in page.html)
    assert any('id="composer-state"' in html for html in page.html)
    await page.close()


async def test_a_quiet_model_is_said_to_be_thinking_in_the_page_s_language(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(
        Script(
            chunk(reasoning="hm "),
            *[step for _ in range(20) for step in (Pause(0.2), chunk(reasoning="hm "))],
            chunk(content="Yes."),
            chunk(finish="stop"),
            DONE,
        )
    )
    page = await Page(alice, thread).open()
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))

    shown = await page.read_to_the_end(round_.answer_cell_id)

    notes = [frame["note"] for frame in page.frames if "note" in frame]
    assert notes[0] == "Thinking… (3 s)"
    assert notes[-1] == shown.note == ""
    assert shown.reasoning == "hm " * 21
    await page.close()


async def test_a_stranger_is_refused_and_so_is_nobody(
    alice: User, bob: User, thread: Thread
) -> None:
    closed = []
    for user in (bob, AnonymousUser()):
        page = Page(user, thread)
        await page.socket.connect()
        closed.append((await page.socket.receive_output(timeout=5))["code"])

    assert closed == [4404, 4401]


async def test_a_stranger_learns_nothing_of_a_cell_by_naming_it(
    alice: User, bob: User, thread: Thread, steady: LanguageModel
) -> None:
    round_ = await ask(thread, steady, "My secret")
    await engine.wait(round_.pk)
    own = await Thread.objects.acreate(owner=bob)
    page = await Page(bob, own).open(round_.answer_cell_id)

    await page.say({"type": "resync", "cell": round_.answer_cell_id})
    await page.say({"type": "resync", "cell": round_.user_cell_id})
    await page.say("the end")
    await page.read_until(lambda: page.errors)
    await asyncio.sleep(0)

    assert await page.socket.receive_nothing(timeout=0.8)
    assert not any("secret" in text for text in page.texts)
    await page.close()


@pytest.mark.parametrize(
    "text",
    [
        " ",
        "{",
        "null",
        "[]",
        '"hello"',
        '{"type": "hello", "position": "x"}',
        '{"type": "hello", "position": 1e400}',
        '{"type": "hello", "position": -2}',
        '{"type": "hello", "position": true}',
        '{"type": "hello", "cells": [1]}',
        '{"type": "hello", "cells": {"x": [0,0,0,0]}}',
        '{"type": "hello", "cells": {"٣": [0,0,0,0]}}',
        '{"type": "hello", "cells": {"1": [0,0,0]}}',
        '{"type": "hello", "cells": {"1": [0,0,0,-1]}}',
        '{"type": "hello", "cells": {"99999999999999999999": [0,0,0,0]}}',
        '{"type": "resync"}',
        '{"type": "resync", "cell": 1.5}',
        '{"type": "resync", "cell": 99999999999999999999}',
        '{"type": "ack", "a": null}',
        '{"type": "no such"}',
        "[" * 30_000,
        '"' + "x" * 70_000 + '"',
    ],
    ids=lambda text: text[:40],
)
async def test_a_malformed_message_is_answered_with_an_error_and_the_socket_lives(
    alice: User, thread: Thread, text: str
) -> None:
    page = await Page(alice, thread).open()

    await page.socket.send_to(text_data=text)
    await page.read_until(lambda: page.errors)
    await page.say({"type": "hello", "position": -1})
    before = len(page.html)
    await page.read_until(lambda: len(page.html) > before)

    assert len(page.errors) == 1
    await page.close()


async def test_bytes_are_malformed_too(alice: User, thread: Thread) -> None:
    page = await Page(alice, thread).open()

    await page.socket.send_to(bytes_data=b"\x00\xff")
    await page.read_until(lambda: page.errors)

    await page.close()


async def test_a_page_with_a_language_we_do_not_speak_gets_english(
    alice: User, thread: Thread
) -> None:
    for language in ("xx", "../../etc", "%00", "de-at-1901-" + "x" * 600):
        page = await Page(alice, thread, language=language).open()

        await page.read()

        await page.close()


async def test_a_deleted_thread_closes_its_pages(alice: User, thread: Thread) -> None:
    page = await Page(alice, thread).open()
    await page.read_until(lambda: len(page.html) >= 2)
    await Thread.objects.filter(pk=thread.pk).aupdate(deleted_at="2026-01-01T00:00:00Z")

    await page.greet()

    closed = await page.socket.receive_output(timeout=5)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4404)


async def test_a_round_of_another_process_reaches_the_page_at_its_end(
    alice: User, thread: Thread, steady: LanguageModel
) -> None:
    round_ = await opened(thread, steady)
    page = await Page(alice, thread).open()
    await page.read_until(lambda: any("beforeend" in html for html in page.html))
    cell_id = round_.answer_cell_id

    def end_elsewhere() -> None:
        ledger.claim_round(round_.pk, "elsewhere:1:x")
        Cell.objects.filter(pk=cell_id).update(text="Written elsewhere")
        ledger.finish_round(round_.pk, ledger.Outcome(ledger.STOPPED))

    await sync_to_async(end_elsewhere)()
    await engine.stop(round_.pk)
    await page.read_to_the_end(cell_id)

    assert any("Written elsewhere" in html for html in page.html)
    await page.close()


def test_frames_are_compact() -> None:
    live = LiveCell(12, 5, touch=lambda _: None)
    live.append("Hello")
    live.publish()
    page = live.published.shown
    live.append(" world")
    live.publish()

    frame = live.frame_since(page)

    assert frame == '{"c":12,"g":0,"o":5,"n":11,"t":" world"}'
    assert live.frame_since(page) is frame
    whole = json.loads(live.frame_since(Shown()) or "")
    assert (whole["k"], whole["b"], whole["t"]) == (0, [], "Hello world")
