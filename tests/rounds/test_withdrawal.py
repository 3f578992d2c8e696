"""A text that is withdrawn: exactly that, at once, and only where a new one follows."""

import logging

import pytest
from django.contrib.auth.models import User

from tests.fakegateway import FakeGateway, Reset, Script, chunk
from tests.rounds.helpers import Page, until_stored
from tests.rounds.recovering import (
    ASK_TOOL,
    CUT,
    HALF,
    SILENT,
    begun,
    cut_after,
    rows_of,
    says,
)
from threads.models import Agent, Cell, JournalEntry, Thread, ToolRun
from threads.rendering import render_text
from threads.rounds import hub

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds", "retries"),
]

TOLD_THEN_TOOL = Script(chunk(content="ha ha ha"), *ASK_TOOL)


async def test_a_call_cut_in_its_answer_is_regenerated(
    thread: Thread, gateway: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    watched = await begun(thread, gateway, CUT, says("All ", "of it"))

    cell = await watched.ended()

    assert (cell.status, cell.text, cell.text_generation) == ("done", "All of it", 1)
    assert cell.sentence == ""
    first, second = await rows_of(watched.round)
    assert (first.outcome, second.outcome) == ("faulted", "completed")
    assert (first.withdrawn_text, second.withdrawn_text) == (HALF, "")
    assert (first.usage_source, second.usage_source) == ("estimated", "unknown")
    assert [
        (record.levelno, record.getMessage().split(":")[0])
        for record in caplog.records
        if "[ThreadExec]" in record.getMessage()
    ] == [(logging.WARNING, "[ThreadExec] REGENERATE")]


async def test_a_new_answer_that_is_shorter_leaves_nothing_of_the_old_one(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    long = cut_after("# Head\n\n", "A first paragraph.\n\n", "- and\n- a list")
    page = await Page(alice, thread).open()

    watched = await begun(thread, gateway, long, says("Short"))
    shown = await page.read_to_the_end(watched.round.answer_cell_id)
    cell = await watched.ended()

    assert cell.text == "Short"
    eager = watched.page.look()
    assert eager.blocks == shown.blocks == list(render_text("Short"))
    assert (eager.tail, shown.tail) == ("", "")
    await page.close()


async def test_only_the_text_of_the_cut_attempt_goes_where_the_same_stood_before(
    thread: Thread, gateway: FakeGateway
) -> None:
    scripts = [TOLD_THEN_TOOL, cut_after("ha ", "ha ha"), says("ha!")]

    cell = await (await begun(thread, gateway, *scripts)).ended()

    assert cell.text == "ha ha ha\n\nha!"
    assert await ToolRun.objects.acount() == 1


@pytest.mark.usefixtures("patient")
async def test_a_withdrawal_is_pushed_at_once_and_not_at_the_next_tick(
    alice: User, thread: Thread, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "WINDOW_SECONDS", 60.0)
    monkeypatch.setattr(hub, "WIDE_WINDOW_SECONDS", 60.0)
    page = await Page(alice, thread).open()
    watched = await begun(thread, gateway, TOLD_THEN_TOOL, cut_after("ha ha ha ha"))

    await page.read_until(lambda: any("w" in frame for frame in page.frames))

    assert len(gateway.requests) == 2
    withdrawal = next(frame for frame in page.frames if "w" in frame)
    assert (withdrawal["w"], withdrawal["g"]) == ("2.1", 1)
    cell = page.cells[watched.round.answer_cell_id]
    assert (cell.generation, cell.offset, cell.tail) == (1, 8, "")
    assert cell.blocks[0] == "<p>ha ha ha</p>"
    assert watched.page.look().words == "ha ha ha"
    await watched.stopped()
    await page.close()


async def test_every_withdrawal_names_its_attempt_to_the_page(
    thread: Thread, gateway: FakeGateway
) -> None:
    scripts = [CUT, cut_after("Another"), TOLD_THEN_TOOL, CUT, says("Two")]

    watched = await begun(thread, gateway, *scripts)
    await watched.ended()

    assert watched.page.look().withdrawals == {1: "1.1", 2: "1.2", 3: "2.1"}


async def test_the_thoughts_of_a_cut_attempt_are_withdrawn_as_well(
    thread: Thread, gateway: FakeGateway
) -> None:
    thinking = Script(chunk(reasoning="Let me see"), Reset())
    again = Script(chunk(reasoning="Now"), *says("All").steps)

    watched = await begun(thread, gateway, thinking, again)
    cell = await watched.ended()

    assert (cell.text, cell.reasoning, cell.text_generation) == ("All", "Now", 1)
    assert watched.page.look().reasoning == "Now"


@pytest.mark.parametrize("second", ["served-2", ""])
async def test_the_model_that_served_a_failed_attempt_is_not_the_rounds(
    thread: Thread, gateway: FakeGateway, second: str
) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    counted = Script(chunk(usage=usage, model="served-1"), Reset())
    cut = cut_after(HALF, model="served-1")

    cells = [
        await (await begun(thread, gateway, each, says("All", model=second))).ended()
        for each in (cut, counted)
    ]

    assert [cell.round.model_served for cell in cells] == [second] * 2


@pytest.mark.usefixtures("patient")
async def test_the_journal_tells_of_a_withdrawal_and_keeps_what_it_took(
    thread: Thread, gateway: FakeGateway
) -> None:
    watched = await begun(thread, gateway, TOLD_THEN_TOOL, cut_after("Half"))
    await watched.waits(attempts=2)

    entries = JournalEntry.objects.filter(cell=watched.round.answer_cell_id)
    in_order = entries.order_by("generation", "offset")

    rows = await until_stored(
        lambda: list(in_order) if len(in_order.all()) == 3 else []
    )

    assert [(row.generation, row.part, row.offset, row.text) for row in rows] == [
        (0, "text", 0, "ha ha ha"),
        (0, "text", 8, "\n\nHalf"),
        (1, "withdrawal", 8, "2.1"),
    ]
    stored = await Cell.objects.aget(pk=watched.round.answer_cell_id)
    assert (stored.text, stored.text_generation) == ("", 1)
    await watched.stopped()


# What the model is told.


async def test_the_call_that_follows_a_regenerated_one_sees_no_partial(
    thread: Thread, gateway: FakeGateway
) -> None:
    scripts = [CUT, Script(*ASK_TOOL), CUT, says("Done")]

    cell = await (await begun(thread, gateway, *scripts)).ended()

    assert cell.text == "Done"
    first, again, second, second_again = gateway.requests
    assert (again.body, second_again.body) == (first.body, second.body)
    question, asking, result = second.json["messages"]
    assert question == {"role": "user", "content": "Hello"}
    assert (asking["role"], asking["content"]) == ("assistant", None)
    assert [each["id"] for each in asking["tool_calls"]] == ["a"]
    assert (result["role"], result["tool_call_id"]) == ("tool", "a")
    assert await ToolRun.objects.acount() == 1


@pytest.mark.parametrize("attended", [True, False])
async def test_the_next_round_is_told_nothing_that_was_withdrawn_nor_any_sentence(
    thread: Thread,
    gateway: FakeGateway,
    attended: bool,
) -> None:
    for question, *scripts in (
        ("One", CUT, says("Whole")),
        ("Two", CUT, SILENT, SILENT),
        ("Three", SILENT),
    ):
        asked = {"prompt": question, "attended": attended}
        await (await begun(thread, gateway, *scripts, **asked)).ended()
    await (await begun(thread, gateway, says("End"), prompt="Four")).ended()

    assert gateway.requests[-1].json["messages"] == [
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": "Whole"},
        {"role": "user", "content": "Two"},
        {"role": "assistant", "content": HALF},
        {"role": "user", "content": "Three"},
        {"role": "user", "content": "Four"},
    ]


# Other ways to go on.


@pytest.mark.parametrize(
    ("policy", "requests", "text"), [("keep", 1, HALF), ("regenerate", 2, "All of it")]
)
async def test_an_agent_says_whether_a_cut_answer_is_kept(
    thread: Thread, gateway: FakeGateway, policy: str, requests: int, text: str
) -> None:
    agent = await Agent.objects.acreate(slug="a", name="A", cut_policy=policy)
    scripts = [CUT, says("All of it")]

    watched = await begun(thread, gateway, *scripts, agent=agent)
    cell = await watched.ended()

    assert (cell.text, len(gateway.requests)) == (text, requests)
    last = (await rows_of(watched.round))[-1]
    assert last.retry_reason == ("cut_kept" if policy == "keep" else "whole")


async def test_a_buffered_round_shows_nothing_before_it_is_whole(
    thread: Thread, gateway: FakeGateway
) -> None:
    watched = await begun(
        thread, gateway, CUT, says("All of it"), attended=False, is_buffered=True
    )
    cell = await watched.ended()

    assert (cell.status, cell.text, cell.text_generation) == ("done", "All of it", 0)
    assert watched.page.look().withdrawals == {}
    assert [row.retry_decision for row in await rows_of(watched.round)] == [
        "reissue",
        "none",
    ]


@pytest.mark.usefixtures("patient")
async def test_a_buffered_round_that_is_stopped_keeps_what_had_come(
    thread: Thread, gateway: FakeGateway
) -> None:
    watched = await begun(
        thread, gateway, CUT, says("All of it"), attended=False, is_buffered=True
    )
    await watched.waits()

    assert watched.page.look().words == ""
    cell = await watched.stopped()

    assert (cell.status, cell.text) == ("stopped", HALF)
    assert len(gateway.requests) == 1
