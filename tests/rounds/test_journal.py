"""The journal: one writer, few transactions, nothing lost to a failing database."""

import asyncio
import sqlite3

import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError, connection
from django.utils import timezone

from tests.conftest import model_at, model_now
from tests.fakegateway import DONE, FakeGateway, Pause, Script, Stall, chunk
from tests.rounds.helpers import (
    answered,
    ask,
    cell_of,
    open_now,
    until,
    until_stored,
)
from threads.core.faults import Condition, Ending, Verdict
from threads.models import Cell, JournalEntry, Round, Thread
from threads.rounds import engine, folding, ledger, sweep
from threads.rounds.database import in_database
from threads.rounds.hub import live_view
from threads.rounds.journal import Page, Row, Writer, journal, write_pages
from threads.rounds.ledger import Outcome
from threads.rounds.live import LiveCell
from threads.rounds.worker import worker_id

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]

DONE_WELL = Outcome(Verdict("", Ending.COMPLETED, Condition.UNKNOWN))


def claimed(thread: Thread) -> Round:
    """A round that this process has claimed, without running it."""
    round_ = open_now(thread, model_now("some/model", "http://127.0.0.1:9/v1"))
    assert ledger.claim_round(round_.pk, worker_id())
    return round_


def page(round_: Round, *rows: Row, generation: int = 0) -> Page:
    return Page(round_.pk, round_.answer_cell_id, generation, rows)


def text(offset: int, words: str, *, generation: int = 0) -> Row:
    return Row(JournalEntry.Part.TEXT, generation, offset, words)


def test_of_two_writers_of_one_cell_only_one_succeeds(thread: Thread) -> None:
    round_ = claimed(thread)
    write_pages([page(round_, text(0, "mine"))], beat=False)

    tidings = write_pages([page(round_, text(0, "also mine"))], beat=False)

    assert tidings.lost == {round_.pk}
    assert folding.fold(round_.answer_cell).text == "mine"
    with pytest.raises(IntegrityError):
        JournalEntry.objects.create(
            cell=round_.answer_cell, generation=0, offset=0, text=""
        )


def test_a_collision_of_one_round_leaves_the_others_written(thread: Thread) -> None:
    one = claimed(thread)
    two = claimed(Thread.objects.create(owner=thread.owner))
    write_pages([page(one, text(0, "first"))], beat=False)

    tidings = write_pages(
        [page(one, text(0, "again")), page(two, text(0, "new"))], beat=True
    )

    assert tidings.lost == {one.pk}
    assert folding.fold(two.answer_cell).text == "new"


def test_nothing_is_written_for_a_round_that_somebody_else_has_ended(
    thread: Thread,
) -> None:
    round_ = claimed(thread)
    assert ledger.finish_round(round_.pk, DONE_WELL)

    tidings = write_pages([page(round_, text(0, "too late"))], beat=True)

    assert tidings.lost == {round_.pk}
    assert JournalEntry.objects.count() == 0


def test_the_newest_generation_with_text_is_what_is_folded(thread: Thread) -> None:
    round_ = claimed(thread)
    rows = (
        text(0, "cut "),
        text(4, "text"),
        text(0, "whole ", generation=1),
        text(6, "answer", generation=1),
    )

    write_pages([page(round_, *rows, generation=1)], beat=False)
    ledger.finish_round(round_.pk, DONE_WELL)

    cell = Cell.objects.get(pk=round_.answer_cell_id)
    assert (cell.text, cell.text_generation) == ("whole answer", 1)


def test_a_withdrawal_after_which_nothing_came_is_undone_by_the_fold(
    thread: Thread,
) -> None:
    round_ = claimed(thread)
    write_pages([page(round_, text(0, "seen by the person"))], beat=False)
    for generation in (1, 2):
        withdrawal = Row(JournalEntry.Part.WITHDRAWAL, generation, 5, "1.1")
        write_pages([page(round_, withdrawal, generation=generation)], beat=False)

    ledger.finish_round(round_.pk, Outcome(sweep.WORKER_LOST))

    cell = Cell.objects.get(pk=round_.answer_cell_id)
    assert (cell.text, cell.text_generation) == ("seen by the person", 3)


def test_a_gap_ends_the_text(thread: Thread) -> None:
    round_ = claimed(thread)

    write_pages([page(round_, text(0, "abc"), text(4, "efg"))], beat=False)

    assert folding.fold(round_.answer_cell).text == "abc"


async def test_transactions_go_with_time_and_not_with_tokens(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(
        Script(
            *[chunk(content="word ") for _ in range(3_000)],
            Pause(0.5),
            *[chunk(content="word ") for _ in range(3_000)],
            chunk(finish="stop"),
            DONE,
        )
    )
    begun: list[str] = []

    def count(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        if sql.startswith("BEGIN"):
            begun.append(sql)
        return execute(sql, params, many, context)

    def watch() -> None:
        connection.ensure_connection()
        connection.execute_wrappers.append(count)

    def rows() -> int:
        return JournalEntry.objects.count()

    model = await model_at("some/model", gateway.base_url)
    await in_database(watch)
    round_ = await ask(thread, model)
    await until(lambda: (v := live_view(round_.answer_cell_id)) and v.offset > 10_000)
    written = await until_stored(rows)
    await engine.wait(round_.pk)

    assert written < 20
    assert len(begun) < 60
    assert (await cell_of(round_)).text == "word " * 6_000


async def test_a_database_that_is_locked_for_a_while_loses_nothing(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(
        Script(
            *[s for _ in range(30) for s in (chunk(content="word "), Pause(0.05))],
            chunk(finish="stop"),
            DONE,
        )
    )
    model = await model_at("some/model", gateway.base_url)

    def hurry() -> None:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 50")

    round_ = await ask(thread, model)
    await until(lambda: live_view(round_.answer_cell_id))
    await in_database(hurry)
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    await until(
        lambda: (v := live_view(round_.answer_cell_id)) is None or v.offset == 150
    )
    other.execute("ROLLBACK")
    other.close()
    await engine.wait(round_.pk)

    assert (await cell_of(round_)).text == "word " * 30


async def test_a_round_that_another_process_has_ended_stops_writing_and_asking(
    thread: Thread, gateway: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.play(Script(chunk(content="Half"), Stall()))
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    await until_stored(lambda: JournalEntry.objects.count())

    await sync_to_async(ledger.finish_round)(round_.pk, Outcome(sweep.WORKER_LOST))
    await engine.wait(round_.pk)

    await gateway.requests[0].wait_closed()
    cell = await cell_of(round_)
    assert (cell.code, cell.text) == ("worker_lost", "Half")
    assert "TERMINAL_WRITE_LOST" in caplog.text


async def test_a_running_round_shows_that_it_lives(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(Script(chunk(content="Half"), Stall()))
    began = timezone.now()
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    await until_stored(lambda: JournalEntry.objects.count())

    await round_.arefresh_from_db()

    assert round_.heartbeat_at is not None
    assert round_.heartbeat_at >= began
    assert round_.worker == worker_id()
    await engine.stop(round_.pk)


async def test_many_rounds_at_once_all_end_well(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(
        Script(
            *[s for _ in range(50) for s in (chunk(content="word "), Pause(0.01))],
            chunk(finish="stop"),
            DONE,
        )
    )
    model = await model_at("some/model", gateway.base_url)
    threads = [
        await Thread.objects.acreate(owner_id=thread.owner_id) for _ in range(20)
    ]

    started = [await ask(one, model) for one in threads]
    for round_ in started:
        await engine.wait(round_.pk)

    texts = {(await cell_of(round_)).text for round_ in started}
    assert texts == {"word " * 50}
    assert await JournalEntry.objects.acount() == 0


async def test_the_answer_of_the_next_round_does_not_touch_the_last(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(
        Script(chunk(content="One"), chunk(finish="stop"), DONE),
        Script(chunk(content="Two"), chunk(finish="stop"), DONE),
    )
    model = await model_at("some/model", gateway.base_url)

    first, second = await answered(thread, model), await answered(thread, model)

    assert (first.text, second.text) == ("One", "Two")
    assert [c.position async for c in Cell.objects.order_by("position")] == [0, 1, 2, 3]


async def test_a_flush_whose_caller_is_cancelled_is_neither_lost_nor_repeated(
    thread: Thread,
) -> None:
    round_ = await sync_to_async(claimed)(thread)
    live = LiveCell(round_.answer_cell_id, thread.pk, touch=lambda _: None)
    writer = Writer(round_.pk, live, on_stop=lambda: None, on_lost=lambda: None)
    journal().open(writer)

    for number in range(20):
        live.append(f"{number} ")
        flush = asyncio.create_task(journal().flush_now(writer))
        await asyncio.sleep(0)
        await asyncio.sleep(0.001 * (number % 4))
        flush.cancel()
        await asyncio.wait({flush})
    await journal().flush_now(writer)
    journal().close(writer)

    assert not writer.is_lost
    folded = await sync_to_async(folding.fold)(round_.answer_cell)
    assert folded.text == live.text
