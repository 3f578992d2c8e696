"""A tool that asks first, at the wrong moment: races, restarts, drafts, other models."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Script, chunk, reply, tool_call
from tests.rounds.helpers import answered, ask, cell_of, until
from tests.rounds.routes import through
from tests.rounds.tooling import asking, function_tool, saying, with_tools
from threads.models import Cell, Round, Route, Thread, ToolRule, ToolRun
from threads.rounds import approval, broadcast, engine, exchanges, ledger, runner
from threads.tools.registry import FunctionTool

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


def same(word: str) -> str:
    return word


def sending(function: Callable[[str], Any] = same) -> FunctionTool:
    return function_tool("send", function, has_effects=True)


async def decide(run: ToolRun, by: User, **word: Any) -> bool:
    return await sync_to_async(approval.decide)(run, by=by, **word)


async def asked(thread: Thread, gateway: FakeGateway, *scripts: Script) -> Round:
    """A round that has come so far that it asks."""
    gateway.play(*scripts)
    round_ = await ask(thread, await model_at("some/model", gateway.base_url))
    await engine.wait(round_.pk)
    await round_.arefresh_from_db()
    return round_


async def allowed(round_: Round, by: User) -> Cell:
    """Allow what waits, and let the round go on to its end."""
    await decide(await ToolRun.objects.aget(state="waiting"), by, allow=True)
    await engine.start(round_.pk)
    await engine.wait(round_.pk)
    return await cell_of(round_)


@pytest.mark.usefixtures("retries")
async def test_a_draft_that_was_withdrawn_does_not_come_back(
    thread: Thread, gateway: FakeGateway, alice: User
) -> None:
    with with_tools(sending()):
        round_ = await asked(
            thread,
            gateway,
            asking(("calculator", {"expression": "1"}), text="First."),
            Script(chunk(content="A draft of the letter")),
            asking(("send", {"word": "it"})),
            saying("Sent."),
        )
        cell = await allowed(round_, alice)

    assert (cell.status, cell.text) == ("done", "First.\n\nSent.")


@pytest.mark.usefixtures("retries")
async def test_a_draft_in_whose_place_a_tool_came_does_not_come_back_after_it(
    thread: Thread, gateway: FakeGateway
) -> None:
    await asked(
        thread,
        gateway,
        Script(chunk(content="A draft of the letter")),
        asking(("calculator", {"expression": "1"})),
        reply(400, {"error": {"message": "No."}}),
    )

    cell = await Cell.objects.aget(role="assistant")
    assert (cell.status, cell.text) == ("error", "")


async def test_what_changes_something_does_not_overtake_what_waits(
    thread: Thread, gateway: FakeGateway, alice: User
) -> None:
    await ToolRule.objects.acreate(tool="write", policy="allow")
    done = list[str]()

    def noting(name: str) -> Callable[[str], str]:
        def note(word: str) -> str:
            done.append(name)
            return word

        return note

    tools = [
        sending(noting("send")),
        function_tool("write", noting("write"), has_effects=True),
        function_tool("look", noting("look")),
    ]
    with with_tools(*tools):
        round_ = await asked(
            thread,
            gateway,
            asking(*[(name, {"word": "it"}) for name in ("send", "write", "look")]),
            saying("Done."),
        )
        assert (round_.state, done) == ("asking", ["look"])
        await allowed(round_, alice)

    assert done == ["look", "send", "write"]


async def test_a_stopped_round_whose_last_holder_died_is_ended(
    thread: Thread, gateway: FakeGateway
) -> None:
    with with_tools(sending()):
        round_ = await asked(thread, gateway, asking(("send", {"word": "it"})))
        stopped = Round.objects.filter(pk=round_.pk)
        await stopped.aupdate(stop_requested_at=timezone.now())

        assert await engine.engine().sweep() == [round_.pk]

    assert (await cell_of(round_)).status == "stopped"


async def test_too_many_calls_in_one_answer_are_not_run(
    thread: Thread, gateway: FakeGateway
) -> None:
    most, now = list[int](), list[str]()

    def count(word: str) -> str:
        now.append(word)
        most.append(len(now))
        now.remove(word)
        return word

    calls = [
        ("note", {"word": str(n)}) for n in range(exchanges.MOST_IN_ONE_ANSWER + 9)
    ]
    with with_tools(function_tool("note", count)):
        await asked(thread, gateway, asking(*calls), saying("Noted."))

    assert (len(most), max(most) <= 8) == (exchanges.MOST_IN_ONE_ANSWER, True)
    states = ToolRun.objects.order_by("position").values_list("state", flat=True)
    assert [state async for state in states][-9:] == ["not_run"] * 9


async def test_what_was_thought_before_it_asked_keeps_its_time(
    thread: Thread, gateway: FakeGateway, alice: User
) -> None:
    call = tool_call(call_id="c", name="send", arguments='{"word": "it"}')
    thinks = Script(
        chunk(reasoning="Hm."), chunk(tool_calls=[call]), chunk(finish="stop"), DONE
    )
    with with_tools(sending()):
        cell = await allowed(
            await asked(thread, gateway, thinks, saying("Sent.")), alice
        )

    assert (cell.reasoning, cell.reasoning_ms is None) == ("Hm.", False)


async def test_nothing_begins_once_stop_was_pressed_in_another_process(
    thread: Thread, gateway: FakeGateway
) -> None:
    await ToolRule.objects.acreate(tool="send", policy="allow")
    began, go, done = threading.Event(), threading.Event(), list[str]()

    def send(word: str) -> str:
        done.append(word)
        began.set()
        go.wait(10)
        return word

    gateway.play(asking(("send", {"word": "a"}), ("send", {"word": "b"})))
    with with_tools(sending(send)):
        round_ = await ask(thread, await model_at("some/model", gateway.base_url))
        await until(began.is_set)
        await sync_to_async(ledger.request_stop)(round_.pk)
        go.set()
        await engine.wait(round_.pk)

    assert ((await cell_of(round_)).status, done) == ("stopped", ["a"])
    states = ToolRun.objects.order_by("position").values_list("state", flat=True)
    assert [state async for state in states] == ["ok", "not_run"]


async def test_a_word_that_comes_as_the_round_is_let_go_of_is_heard(
    thread: Thread, gateway: FakeGateway, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = broadcast.round_asks

    async def told_and_decided(place: Any) -> None:
        await tell(place)
        await decide(await ToolRun.objects.aget(), alice, allow=True)
        await engine.start(place.round_id)

    monkeypatch.setattr(runner, "round_asks", told_and_decided)
    with with_tools(sending()):
        round_ = await asked(
            thread, gateway, asking(("send", {"word": "it"})), saying("Sent.")
        )
        await engine.wait(round_.pk)

    assert (await cell_of(round_)).text == "Sent."


async def test_what_is_allowed_runs_though_another_still_waits(
    thread: Thread, gateway: FakeGateway, alice: User
) -> None:
    began, go, done = threading.Event(), threading.Event(), list[str]()

    def send(word: str) -> str:
        done.append(word)
        began.set()
        go.wait(10)
        return word

    with with_tools(sending(send)):
        round_ = await asked(
            thread, gateway, asking(*[("send", {"word": word}) for word in "abc"])
        )
        first, second, _ = [run async for run in ToolRun.objects.order_by("position")]
        assert await decide(first, alice, allow=True)
        await engine.start(round_.pk)
        await until(began.is_set)
        assert not await decide(second, alice, allow=True)
        go.set()
        await engine.wait(round_.pk)

    await round_.arefresh_from_db()
    assert (round_.state, done) == ("asking", ["a", "b"])


async def test_a_round_that_goes_in_circles_asks_nobody_any_more(
    thread: Thread, gateway: FakeGateway
) -> None:
    def fails(word: str) -> str:
        raise ValueError("no")

    again = ("fail", {"word": "a"})
    with with_tools(function_tool("fail", fails), sending()):
        round_ = await asked(
            thread,
            gateway,
            asking(again),
            asking(again),
            asking(again, ("send", {"word": "it"})),
        )

    assert (round_.state, round_.code) == ("error", "repeated_tool_error")


async def test_what_fails_in_the_same_way_is_not_tried_on_in_one_answer(
    thread: Thread, gateway: FakeGateway
) -> None:
    await ToolRule.objects.acreate(tool="send", policy="allow")

    def fails(word: str) -> str:
        raise ValueError("no")

    with with_tools(sending(fails)):
        round_ = await asked(thread, gateway, asking(*[("send", {"word": "a"})] * 7))

    states = ToolRun.objects.order_by("position").values_list("state", flat=True)
    assert [state async for state in states] == ["error"] * 3 + ["not_run"] * 4
    assert round_.code == "repeated_tool_error"


async def test_to_decline_again_and_again_is_no_failure_of_the_tool(
    thread: Thread, gateway: FakeGateway, alice: User
) -> None:
    with with_tools(sending()):
        round_ = await asked(
            thread,
            gateway,
            *[asking(("send", {"word": word})) for word in "abcdef"],
            saying("Then not."),
        )
        for _ in range(6):
            waits = await ToolRun.objects.aget(state="waiting")
            await decide(waits, alice, allow=False)
            await engine.start(round_.pk)
            await engine.wait(round_.pk)

    assert (await cell_of(round_)).text == "Then not."


async def test_no_other_model_of_a_route_goes_on_with_what_one_asked(
    thread: Thread, gateway: FakeGateway, alice: User, settings: Settings
) -> None:
    settings.A_KEY = "sk-of-a-test"
    async with FakeGateway() as second:
        first, _ = await through(gateway, second)
        first.gateway.key_variable = "A_KEY"
        await first.gateway.asave()
        gateway.play(asking(("send", {"word": "it"}), text="I will."))
        with with_tools(sending()):
            route = await Route.objects.aget()
            round_ = await ask(thread, first, route=route)
            await engine.wait(round_.pk)
            gateway.play(reply(401, {"error": {"code": "invalid_api_key"}}))
            await answered(await Thread.objects.acreate(owner=alice), first)
            cell = await allowed(round_, alice)

    assert (cell.status, cell.condition, cell.text) == (
        "error",
        "account_key",
        "I will.",
    )
    assert second.requests == []


async def test_a_cap_that_falls_while_a_round_is_let_go_of_does_not_end_it(
    thread: Thread, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    park, loop = ledger.park_round, asyncio.get_running_loop()
    rounds, late = engine.engine(), threading.Event()

    def cap(round_id: int) -> None:
        run = rounds.run(round_id)
        assert run is not None
        run.markers.cap = True
        run._woken.set()
        loop.call_later(0.05, late.set)

    def parked_late(exchange: exchanges.Exchange, worker: str) -> bool:
        is_parked = park(exchange, worker)
        loop.call_soon_threadsafe(cap, exchange.turn.round_id)
        late.wait(5)
        return is_parked

    monkeypatch.setattr(ledger, "park_round", parked_late)
    with with_tools(sending()):
        round_ = await asked(thread, gateway, asking(("send", {"word": "it"})))

    assert (round_.state, (await cell_of(round_)).status) == ("asking", "streaming")


async def test_a_database_that_hiccups_costs_no_result(
    thread: Thread, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, tries = exchanges.end_run, list[int]()

    def hiccup(*args: Any) -> bool:
        tries.append(1)
        if len(tries) == 1:
            raise OperationalError("database is locked")
        return end(*args)

    monkeypatch.setattr(exchanges, "end_run", hiccup)
    with with_tools(function_tool("note", same)):
        await asked(thread, gateway, asking(("note", {"word": "a"})), saying("Noted."))

    assert (await ToolRun.objects.aget()).state == "ok"


async def test_what_no_page_can_carry_is_shown_escaped(
    thread: Thread, gateway: FakeGateway, alice: User
) -> None:
    odd = {"word": "a\u202eb \ud800"}
    with with_tools(sending(lambda word: '{"half": "\\ud800"}')):
        round_ = await asked(thread, gateway, asking(("send", odd)), saying("Done."))
        client = Client()
        await sync_to_async(client.force_login)(alice)
        page = await sync_to_async(client.get)(f"/threads/{thread.pk}/")
        assert r"a\u202eb \ud800" in page.content.decode()
        await allowed(round_, alice)
        page = await sync_to_async(client.get)(f"/threads/{thread.pk}/")

    assert (page.status_code, rb"\ud800" in page.content) == (200, True)


async def test_tools_that_are_all_taken_away_leave_the_conversation_in_words(
    thread: Thread, gateway: FakeGateway
) -> None:
    model = await model_at("some/model", gateway.base_url)
    with with_tools(function_tool("note", same)):
        gateway.play(asking(("note", {"word": "a"}), text="I look."), saying("Noted."))
        await answered(thread, model)
        names = [t["function"]["name"] for t in gateway.requests[0].json["tools"]]
        await ToolRule.objects.abulk_create(
            ToolRule(tool=name, policy="deny") for name in names
        )
        gateway.play(saying("Well."))
        await answered(thread, model)

    last = gateway.requests[-1].json
    assert "tools" not in last
    assert [m["role"] for m in last["messages"]] == ["user", "assistant", "user"]
