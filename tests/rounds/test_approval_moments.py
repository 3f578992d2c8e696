"""A person's word at the wrong moment: Stop, a cap, another process, a database."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import OperationalError
from django.utils import timezone

from tests.conftest import model_at
from tests.fakegateway import FakeGateway
from tests.rounds.approving import allowed, decide, rested, same, sending
from tests.rounds.helpers import ask, cell_of, over, until
from tests.rounds.tooling import asking, function_tool, saying, with_tools
from threads.models import Round, Thread, ToolRule, ToolRun
from threads.rounds import broadcast, engine, exchanges, ledger, runner

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


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
        round_ = await rested(
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
        round_ = await rested(thread, gateway, asking(("send", {"word": "it"})))
        stopped = Round.objects.filter(pk=round_.pk)
        await stopped.aupdate(stop_requested_at=timezone.now())

        assert await engine.engine().sweep() == [round_.pk]

    assert (await cell_of(round_)).status == "stopped"


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
    gateway.play(asking(("send", {"word": "it"})), saying("Sent."))
    with with_tools(sending()):
        round_ = await ask(thread, await model_at("some/model", gateway.base_url))
        await engine.wait(round_.pk)
        await engine.wait(round_.pk)

    assert (await over(round_)).text == "Sent."


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
        round_ = await rested(
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
        round_ = await rested(thread, gateway, asking(("send", {"word": "it"})))

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
        await rested(thread, gateway, asking(("note", {"word": "a"})), saying("Noted."))

    assert (await ToolRun.objects.aget()).state == "ok"
