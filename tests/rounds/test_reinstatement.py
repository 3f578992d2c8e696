"""What stands when every attempt has failed: the last text that was read (X2, E8)."""

import pytest
from pytest_django import Settings

from tests.fakegateway import FakeGateway, Reset, Script, chunk
from tests.rounds.recovering import (
    CUT,
    HALF,
    SILENT,
    begun,
    cut_after,
    rows_of,
    says,
)
from threads.core.snapshot import Position
from threads.models import Thread
from threads.rendering import render_text
from threads.rounds import engine

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds", "retries"),
]


@pytest.mark.parametrize("attended", [True, False])
@pytest.mark.parametrize(
    ("scripts", "text", "generation"),
    [
        ([CUT, SILENT, SILENT], HALF, 2),
        ([CUT, cut_after("Another"), SILENT], "Another", 3),
        ([CUT, SILENT, cut_after("The last")], "The last", 1),
        ([CUT, cut_after("Another"), cut_after("The last")], "The last", 2),
        ([CUT, cut_after(" \n"), SILENT], HALF, 3),
        ([SILENT, SILENT, SILENT], "", 0),
    ],
    ids=["first", "second", "late", "last", "blank", "none"],
)
async def test_after_three_failures_the_last_text_that_was_read_stands(
    thread: Thread,
    gateway: FakeGateway,
    scripts: list[Script],
    text: str,
    generation: int,
    attended: bool,
) -> None:
    watched = await begun(thread, gateway, *scripts, attended=attended)
    cell = await watched.ended()

    assert (cell.status, cell.code) == ("error", "truncated")
    assert cell.sentence
    assert (cell.text, cell.text_generation) == (text, generation)
    page = watched.page.look()
    assert page.blocks == list(render_text(text))
    assert page.generation == generation
    assert len(gateway.requests) == 3


async def test_a_text_that_stands_again_is_no_withdrawal_to_the_page(
    thread: Thread, gateway: FakeGateway
) -> None:
    watched = await begun(thread, gateway, CUT, SILENT)
    await watched.ended()

    assert watched.page.look().withdrawals == {1: "1.1"}


async def test_thoughts_that_were_read_stand_where_no_text_ever_came(
    thread: Thread, gateway: FakeGateway
) -> None:
    thinking = Script(chunk(reasoning="Let me see"), Reset())

    cell = await (await begun(thread, gateway, thinking, SILENT, SILENT)).ended()

    assert (cell.text, cell.reasoning) == ("", "Let me see")


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("seen", [None, Position(1, 0)])
async def test_a_stop_during_the_wait_ends_it_at_once_and_the_text_stands_again(
    thread: Thread, gateway: FakeGateway, seen: Position | None
) -> None:
    watched = await begun(thread, gateway, CUT, says("All of it"))
    await watched.waits()

    cell = await watched.stopped(seen=seen)

    assert len(gateway.requests) == 1
    assert (cell.status, cell.text, cell.sentence) == ("stopped", HALF, "")
    page = watched.page.look()
    assert (page.words, page.generation) == (HALF, 2)
    [row] = await rows_of(watched.round)
    assert (row.outcome, row.retry_decision) == ("faulted", "regenerate")


@pytest.mark.usefixtures("patient")
async def test_a_cap_that_falls_during_the_wait_names_the_last_fault(
    thread: Thread, gateway: FakeGateway, settings: Settings
) -> None:
    settings.CHAT_ROUND_CAP_SECONDS = "2"

    cell = await (await begun(thread, gateway, CUT, says("All of it"))).ended()

    assert (cell.status, cell.code, cell.ending) == ("error", "truncated", "truncated")
    assert cell.text == HALF
    assert len(gateway.requests) == 1


@pytest.mark.usefixtures("patient")
async def test_a_process_that_ends_during_the_wait_loses_no_text(
    thread: Thread, gateway: FakeGateway
) -> None:
    watched = await begun(thread, gateway, CUT, says("All of it"))
    await watched.waits()

    await engine.shutdown()
    cell = await watched.ended()

    assert (cell.code, cell.text) == ("worker_lost", HALF)
