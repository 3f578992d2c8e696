"""Stop wins, is felt at the gateway at once, and keeps what the person saw."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Pause, Script, Stall, chunk
from tests.rounds.helpers import (
    Page,
    ask,
    cell_of,
    opened,
    until,
    until_stored,
)
from threads.core.snapshot import Position
from threads.models import CallAttempt, Cell, JournalEntry, Round, Thread
from threads.rounds import engine, ledger
from threads.rounds.hub import live_view

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]

HALF = Script(chunk(content="One two "), chunk(content="three four "), Stall())


async def answering(
    thread: Thread, gateway: FakeGateway, script: Script = HALF
) -> Round:
    """A round that has shown all that the script says before it stalls."""
    gateway.play(script)
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    await until(lambda: (v := live_view(round_.answer_cell_id)) and v.offset >= 19)
    return round_


async def test_stop_closes_the_connection_and_keeps_the_text(
    thread: Thread, gateway: FakeGateway
) -> None:
    round_ = await answering(thread, gateway)

    await engine.stop(round_.pk)
    await gateway.requests[0].wait_closed(within_seconds=2)
    await engine.wait(round_.pk)

    cell = await cell_of(round_)
    assert (cell.status, cell.text) == ("stopped", "One two three four ")
    assert (cell.round.state, cell.round.ending) == ("stopped", "stopped")
    assert cell.sentence == ""
    attempt = await CallAttempt.objects.aget(round=round_)
    assert (attempt.outcome, attempt.ending) == ("cancelled", "stopped")


async def test_stop_keeps_no_more_than_the_tab_that_pressed_it_had_shown(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    page = await Page(alice, thread).open()
    round_ = await answering(thread, gateway)

    await engine.stop(round_.pk, seen=Position(0, 8))
    shown = await page.read_to_the_end(round_.answer_cell_id)

    cell = await cell_of(round_)
    assert (cell.text, cell.text_generation) == ("One two ", 1)
    assert (shown.generation, shown.offset) == (1, 8)
    assert shown.blocks == ["<p>One two</p>"]
    await page.close()


@pytest.mark.parametrize(
    ("seen", "kept"),
    [
        (Position(0, 0), ""),
        (Position(0, 1), "O"),
        (Position(0, 19), "One two three four "),
        (Position(0, 99), "One two three four "),
        (Position(7, 3), "One two three four "),
    ],
)
async def test_what_is_kept_is_never_more_than_there_is_nor_of_another_generation(
    thread: Thread, gateway: FakeGateway, seen: Position, kept: str
) -> None:
    round_ = await answering(thread, gateway)

    await engine.stop(round_.pk, seen=seen)
    await engine.wait(round_.pk)

    assert (await cell_of(round_)).text == kept


async def test_a_round_that_is_stopped_before_it_is_claimed_sends_nothing(
    thread: Thread, gateway: FakeGateway
) -> None:
    round_ = await opened(thread, await model_at("some/model", gateway.base_url))

    await engine.stop(round_.pk)
    await engine.start(round_.pk)
    await engine.wait(round_.pk)

    assert (await cell_of(round_)).status == "stopped"
    assert gateway.requests == []


async def test_a_stop_that_is_marked_while_a_round_waits_is_honoured_by_who_claims_it(
    thread: Thread, gateway: FakeGateway
) -> None:
    round_ = await opened(thread, await model_at("some/model", gateway.base_url))
    await Round.objects.filter(pk=round_.pk).aupdate(
        stop_requested_at="2026-01-01T00:00:00Z"
    )

    await engine.start(round_.pk)
    await engine.wait(round_.pk)

    assert (await cell_of(round_)).status == "stopped"
    assert gateway.requests == []


async def test_a_stop_pressed_in_another_process_is_found_in_the_database(
    thread: Thread, gateway: FakeGateway
) -> None:
    round_ = await answering(thread, gateway)

    await sync_to_async(ledger.request_stop)(round_.pk)
    await gateway.requests[0].wait_closed(within_seconds=10)
    await engine.wait(round_.pk)

    assert (await cell_of(round_)).status == "stopped"


async def test_stopping_twice_or_after_the_end_changes_nothing(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(Script(chunk(content="All of it"), chunk(finish="stop"), DONE))
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    await engine.wait(round_.pk)

    await engine.stop(round_.pk)
    await engine.stop(round_.pk, seen=Position(0, 1))

    cell = await cell_of(round_)
    assert (cell.status, cell.text) == ("done", "All of it")


async def test_a_round_that_reaches_its_cap_ends_as_an_error_that_names_it(
    thread: Thread, gateway: FakeGateway, settings: pytest.FixtureRequest
) -> None:
    settings.CHAT_ROUND_CAP_SECONDS = "2"  # type: ignore[attr-defined]
    gateway.play(Script(chunk(content="So far"), Stall()))
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))

    await engine.wait(round_.pk)

    cell = await cell_of(round_)
    assert (cell.status, cell.ending, cell.code) == (
        "error",
        "interrupted",
        "round_cap",
    )
    assert (cell.text, bool(cell.sentence)) == ("So far", True)
    await gateway.requests[0].wait_closed()


async def test_a_cap_that_falls_while_the_model_reasons_says_so_in_the_log(
    thread: Thread,
    gateway: FakeGateway,
    settings: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.CHAT_ROUND_CAP_SECONDS = "2"  # type: ignore[attr-defined]
    gateway.play(
        Script(*[s for _ in range(40) for s in (chunk(reasoning="hm"), Pause(0.1))])
    )
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))

    await engine.wait(round_.pk)

    assert (await cell_of(round_)).code == "round_cap"
    assert "ROUND_CAP_WHILE_REASONING" in caplog.text


async def test_a_process_that_ends_names_the_cause_and_keeps_the_text(
    thread: Thread, gateway: FakeGateway
) -> None:
    round_ = await answering(thread, gateway)

    await engine.shutdown()

    cell = await cell_of(round_)
    assert (cell.status, cell.code) == ("error", "worker_lost")
    assert cell.text == "One two three four "
    await gateway.requests[0].wait_closed()


async def test_what_was_streamed_is_in_the_journal_soon(
    thread: Thread, gateway: FakeGateway
) -> None:
    round_ = await answering(thread, gateway)

    await until_stored(JournalEntry.objects.filter(cell=round_.answer_cell_id).exists)

    entries = JournalEntry.objects.filter(cell=round_.answer_cell_id).order_by("offset")
    assert "".join([entry.text async for entry in entries]) == "One two three four "
    assert (await Cell.objects.aget(pk=round_.answer_cell_id)).text == ""
    await engine.stop(round_.pk)
