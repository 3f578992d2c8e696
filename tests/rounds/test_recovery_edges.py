"""Stop, mishaps and odd endings between a withdrawal and what follows it."""

import pytest
from django.db import OperationalError

from tests.fakegateway import DONE, FakeGateway, Reset, Script, Stall, chunk, tool_call
from tests.rounds.helpers import until, until_stored
from tests.rounds.recovering import ASK_TOOL, CUT, HALF, SILENT, begun, rows_of, says
from threads.core.snapshot import Position
from threads.models import CallAttempt, JournalEntry, Thread
from threads.rounds import ledger
from threads.rounds.answering import Answering
from threads.rounds.hub import live_state

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds", "retries"),
]

LONG_ARGUMENTS = '{"expression": "' + "1+" * 2000
OPEN_TOOL_CALL = chunk(
    tool_calls=[tool_call(call_id="a", name="calculator", arguments=LONG_ARGUMENTS)]
)


@pytest.mark.parametrize("seen", [Position(1, 0), Position(0, len(HALF))])
async def test_stop_before_the_new_text_is_seen_leaves_the_text_that_was_read(
    thread: Thread, gateway: FakeGateway, seen: Position
) -> None:
    watched = await begun(thread, gateway, CUT, Script(chunk(content="New"), Stall()))

    def has_new_text() -> bool:
        state = live_state(watched.round.answer_cell_id)
        return state is not None and (state.shown.generation, state.shown.offset) == (
            1,
            3,
        )

    await until(has_new_text)
    cell = await watched.stopped(seen=seen)

    assert (cell.status, cell.text) == ("stopped", HALF)


async def test_the_model_that_wrote_a_text_that_stands_again_is_the_rounds(
    thread: Thread, gateway: FakeGateway
) -> None:
    cut = Script(chunk(content=HALF, model="other/thing"), Reset())

    cell = await (await begun(thread, gateway, cut, SILENT, SILENT)).ended()

    assert cell.text == HALF
    assert cell.round.model_served == "other/thing"


async def test_the_last_thoughts_stand_where_nothing_took_their_place(
    thread: Thread, gateway: FakeGateway
) -> None:
    asks = Script(chunk(reasoning="First thought. "), *ASK_TOOL)
    thinks = Script(chunk(reasoning="Second thought."), Reset())

    cell = await (await begun(thread, gateway, asks, thinks, SILENT, SILENT)).ended()

    assert cell.reasoning == "First thought. Second thought."


@pytest.mark.parametrize("before", [(), (chunk(content="Well"),)])
async def test_an_estimate_counts_the_arguments_of_a_tool_call(
    thread: Thread, gateway: FakeGateway, before: tuple[bytes, ...]
) -> None:
    watched = await begun(thread, gateway, Script(*before, OPEN_TOOL_CALL, Reset()))
    await watched.ended()

    [row] = await rows_of(watched.round)

    assert row.usage_source == "estimated"
    assert row.output_tokens is not None
    assert row.output_tokens > 500


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_a_draft_that_stands_again_is_never_called_whole(
    thread: Thread, gateway: FakeGateway, finish: str
) -> None:
    part = Script(OPEN_TOOL_CALL, chunk(finish=finish), DONE)

    cell = await (await begun(thread, gateway, CUT, part)).ended()

    assert (cell.status, cell.code, cell.text) == ("error", "truncated", HALF)


async def test_a_cut_is_in_the_journal_before_its_row_is_in_the_ledger(
    thread: Thread, gateway: FakeGateway, patient: None
) -> None:
    watched = await begun(thread, gateway, CUT, says("All"))
    cell_id = watched.round.answer_cell_id

    await until_stored(CallAttempt.objects.filter(round=watched.round).exists)
    parts = [
        (row.part, row.generation, row.text)
        async for row in JournalEntry.objects.filter(cell=cell_id).order_by("pk")
    ]
    await watched.stopped()

    assert parts == [("text", 0, HALF), ("withdrawal", 1, "1.1")]


async def test_a_row_that_cannot_be_written_costs_nobody_the_answer(
    thread: Thread, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, tried = ledger.record_attempt, list[int]()

    def fails_once(*args: object, **kwargs: object) -> None:
        tried.append(1)
        if len(tried) == 1:
            raise OperationalError("database is locked")
        record(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(ledger, "record_attempt", fails_once)

    watched = await begun(thread, gateway, CUT, says("Whole"))
    cell = await watched.ended()

    assert cell.text == "Whole"
    rows = await rows_of(watched.round)
    assert [(row.attempt, row.outcome) for row in rows] == [
        (1, "faulted"),
        (2, "completed"),
    ]


async def test_a_fault_of_ours_leaves_the_row_of_the_attempt_in_flight(
    thread: Thread, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Answering, text: str) -> None:
        raise ValueError("ours")

    monkeypatch.setattr(Answering, "add", fails)

    watched = await begun(thread, gateway, says("x"))
    cell = await watched.ended()

    assert cell.code == "internal_error"
    assert len(await rows_of(watched.round)) == 1
