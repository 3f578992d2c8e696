"""A tool that asks first: the round waits for its person, and for nothing else."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from tests.conftest import model_at
from tests.fakegateway import FakeGateway
from tests.rounds.approving import decide, go_on, rested, sending
from tests.rounds.helpers import ask, cell_of, until_stored
from tests.rounds.tooling import asking, function_tool, saying, with_tools
from threads.models import JournalEntry, Round, Thread, ToolRun
from threads.rounds import approval, engine, resubmit, sweep
from threads.rounds.hub import live_view

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


@pytest.fixture
def sent() -> Iterator[list[str]]:
    """A tool with effects, which asks first; the list notes what it did."""
    done: list[str] = []

    def send(word: str) -> str:
        done.append(word)
        return f"sent {word}"

    with with_tools(sending(send)):
        yield done


@pytest.fixture
async def asked(thread: Thread, gateway: FakeGateway, sent: list[str]) -> Round:
    """A round that asks whether `send` may run, beside a tool that just runs."""
    return await rested(
        thread,
        gateway,
        asking(
            ("calculator", {"expression": "6 * 7"}),
            ("send", {"word": "a letter"}),
            text="Let me send it.",
        ),
        saying("All is done."),
    )


async def waiting() -> ToolRun:
    return await ToolRun.objects.aget(name="send")


async def test_a_round_that_asks_is_nobodys_and_keeps_what_it_has(
    asked: Round, sent: list[str]
) -> None:
    cell = await cell_of(asked)

    assert (asked.state, asked.worker, cell.status) == ("asking", "", "streaming")
    assert sent == []
    runs = [run async for run in ToolRun.objects.order_by("position")]
    assert [(run.state, run.result, run.description) for run in runs] == [
        ("ok", "42", ""),
        ("waiting", "", "A test tool."),
    ]
    assert live_view(cell.pk) is None
    texts = JournalEntry.objects.filter(cell=cell).values_list("text", flat=True)
    assert [text async for text in texts] == ["Let me send it."]
    assert await sync_to_async(sweep.end_lost_rounds)(timezone.now()) == []
    assert await sync_to_async(sweep.unclaimed_rounds)(timezone.now()) == []


async def test_allowed_it_runs_once_and_the_round_goes_on_where_it_was(
    asked: Round, sent: list[str], gateway: FakeGateway, alice: User
) -> None:
    run = await waiting()

    assert await decide(run, alice, allow=True)
    cell = await go_on(asked)

    assert (cell.status, cell.text) == ("done", "Let me send it.\n\nAll is done.")
    assert sent == ["a letter"]
    await run.arefresh_from_db()
    assert (run.state, run.result, run.decided_by_id) == (
        "ok",
        "sent a letter",
        alice.pk,
    )
    told = gateway.requests[1].json["messages"]
    assert [m.get("content") for m in told[-2:]] == ["42", "sent a letter"]
    assert len(gateway.requests) == 2


async def test_it_runs_with_what_the_person_made_of_its_arguments(
    asked: Round, sent: list[str], gateway: FakeGateway, alice: User
) -> None:
    run = await waiting()

    await decide(run, alice, allow=True, arguments=' {"word": "a postcard"} ')
    await go_on(asked)

    assert sent == ["a postcard"]
    asking_again, _, told = gateway.requests[1].json["messages"][-3:]
    assert asking_again["tool_calls"][1]["function"]["arguments"] == run.arguments
    assert told["content"] == (
        '[The person changed the arguments to: {"word": "a postcard"}]\nsent a postcard'
    )


@pytest.mark.parametrize(
    "arguments", ["{", "[]", '"word"', '{"word": 3}', "{}", '{"other": "x"}']
)
async def test_arguments_that_do_not_fit_are_refused_and_nothing_is_decided(
    asked: Round, sent: list[str], alice: User, arguments: str
) -> None:
    run = await waiting()

    with pytest.raises(approval.UnfitError, match=r"[a-z]"):
        await decide(run, alice, allow=True, arguments=arguments)

    await run.arefresh_from_db()
    assert (run.state, sent) == ("waiting", [])
    await engine.stop(asked.pk)


async def test_declined_it_does_not_run_and_the_model_is_told(
    asked: Round, sent: list[str], gateway: FakeGateway, alice: User
) -> None:
    await decide(await waiting(), alice, allow=False)
    cell = await go_on(asked)

    assert (cell.status, sent) == ("done", [])
    told = gateway.requests[1].json["messages"][-1]["content"]
    assert told == "The person did not allow this tool to run."


async def test_what_was_decided_once_cannot_be_decided_again(
    asked: Round, sent: list[str], alice: User
) -> None:
    run = await waiting()
    await decide(run, alice, allow=False)

    with pytest.raises(approval.TooLateError):
        await decide(run, alice, allow=True)
    await go_on(asked)
    with pytest.raises(approval.TooLateError):
        await decide(run, alice, allow=True)

    assert sent == []


async def test_stop_ends_a_round_that_asks(
    asked: Round, sent: list[str], alice: User
) -> None:
    await engine.stop(asked.pk)

    cell = await cell_of(asked)
    assert (cell.status, cell.text) == ("stopped", "Let me send it.")
    run = await waiting()
    assert (run.state, sent) == ("not_run", [])
    with pytest.raises(approval.TooLateError):
        await decide(run, alice, allow=True)


async def test_nobody_is_waited_for_for_ever(asked: Round, sent: list[str]) -> None:
    late = timezone.now() + timedelta(seconds=sweep.DECISION_SECONDS + 1)

    assert await sync_to_async(sweep.end_lost_rounds)(late) == [asked.pk]

    cell = await cell_of(asked)
    assert (cell.status, cell.code) == ("error", "approval_expired")
    assert "send" in cell.sentence
    assert ((await waiting()).state, sent) == ("not_run", [])


async def test_a_round_whose_question_is_old_is_taken_up_when_it_is_decided(
    asked: Round, sent: list[str], alice: User
) -> None:
    hour = timezone.now() - timedelta(hours=1)
    old = Round.objects.filter(pk=asked.pk)
    await old.aupdate(created_at=hour, queued_at=hour, claimed_at=hour)

    await decide(await waiting(), alice, allow=True)

    assert await sync_to_async(sweep.end_lost_rounds)(timezone.now()) == []
    assert (await go_on(asked)).status == "done"


async def test_the_wait_survives_the_process(
    asked: Round, sent: list[str], alice: User
) -> None:
    await engine.shutdown()
    assert (await Round.objects.aget(pk=asked.pk)).state == "asking"

    await decide(await waiting(), alice, allow=True)
    cell = await go_on(asked)

    assert (cell.status, sent) == ("done", ["a letter"])


async def test_two_that_ask_are_decided_one_by_one(
    thread: Thread, gateway: FakeGateway, sent: list[str], alice: User
) -> None:
    gateway.play(
        asking(("send", {"word": "one"}), ("send", {"word": "two"})), saying("Done.")
    )
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    await engine.wait(round_.pk)
    first, second = [run async for run in ToolRun.objects.order_by("position")]

    await decide(first, alice, allow=True)
    await engine.start(round_.pk)
    await engine.wait(round_.pk)
    assert (sent, len(gateway.requests)) == (["one"], 1)
    await decide(second, alice, allow=True)
    cell = await go_on(round_)

    assert (cell.status, sent) == ("done", ["one", "two"])
    told = gateway.requests[1].json["messages"]
    assert [m["content"] for m in told[-2:]] == ["sent one", "sent two"]


async def test_a_word_given_while_another_tool_still_runs_is_heard(
    thread: Thread, gateway: FakeGateway, sent: list[str], alice: User
) -> None:
    def slow(word: str) -> str:
        run = ToolRun.objects.get(name="send")
        return str(approval.decide(run, by=alice, allow=True))

    gateway.play(
        asking(("send", {"word": "now"}), ("slow", {"word": "x"})), saying("Done.")
    )
    with with_tools(function_tool("slow", slow)):
        round_ = await ask(thread, await model_at("some/model", gateway.base_url))
        await engine.wait(round_.pk)

    cell = await cell_of(round_)
    assert (cell.status, sent) == ("done", ["now"])
    assert (await ToolRun.objects.aget(name="slow")).result == "False"


async def test_a_stop_that_finds_the_round_being_let_go_of_ends_it(
    thread: Thread, gateway: FakeGateway, sent: list[str]
) -> None:
    gateway.play(asking(("send", {"word": "x"})))
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    await until_stored(ToolRun.objects.filter(state="waiting").exists)

    await engine.stop(round_.pk)
    await engine.wait(round_.pk)

    assert (await cell_of(round_)).status == "stopped"
    assert (await waiting()).state == "not_run"


async def test_a_question_whose_tool_had_effects_is_not_asked_again_unasked(
    asked: Round, sent: list[str], alice: User
) -> None:
    await decide(await waiting(), alice, allow=True)
    cell = await go_on(asked)

    with pytest.raises(resubmit.EffectsError) as refused:
        await sync_to_async(resubmit.resubmit)(
            cell, by=alice, locale="en", attended=True
        )

    assert refused.value.tools == ("send",)
