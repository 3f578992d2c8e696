"""Tools beside drafts, thoughts, failures and other models of a route."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Script, chunk, reply, tool_call
from tests.rounds.approving import allowed, decide, rested, same, sending
from tests.rounds.helpers import answered, ask, cell_of
from tests.rounds.routes import through
from tests.rounds.tooling import asking, function_tool, saying, with_tools
from threads.models import Cell, Route, Thread, ToolRule, ToolRun
from threads.rounds import engine, exchanges

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


@pytest.mark.usefixtures("retries")
async def test_a_draft_that_was_withdrawn_does_not_come_back(
    thread: Thread, gateway: FakeGateway, alice: User
) -> None:
    with with_tools(sending()):
        round_ = await rested(
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
    await rested(
        thread,
        gateway,
        Script(chunk(content="A draft of the letter")),
        asking(("calculator", {"expression": "1"})),
        reply(400, {"error": {"message": "No."}}),
    )

    cell = await Cell.objects.aget(role="assistant")
    assert (cell.status, cell.text) == ("error", "")


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
        await rested(thread, gateway, asking(*calls), saying("Noted."))

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
            await rested(thread, gateway, thinks, saying("Sent.")), alice
        )

    assert (cell.reasoning, cell.reasoning_ms is None) == ("Hm.", False)


async def test_a_round_that_goes_in_circles_asks_nobody_any_more(
    thread: Thread, gateway: FakeGateway
) -> None:
    def fails(word: str) -> str:
        raise ValueError("no")

    again = ("fail", {"word": "a"})
    with with_tools(function_tool("fail", fails), sending()):
        round_ = await rested(
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
        round_ = await rested(thread, gateway, asking(*[("send", {"word": "a"})] * 7))

    states = ToolRun.objects.order_by("position").values_list("state", flat=True)
    assert [state async for state in states] == ["error"] * 3 + ["not_run"] * 4
    assert round_.code == "repeated_tool_error"


async def test_to_decline_again_and_again_is_no_failure_of_the_tool(
    thread: Thread, gateway: FakeGateway, alice: User
) -> None:
    with with_tools(sending()):
        round_ = await rested(
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


async def test_what_no_page_can_carry_is_shown_escaped(
    thread: Thread, gateway: FakeGateway, alice: User
) -> None:
    odd = {"word": "a\u202eb \ud800"}
    with with_tools(sending(lambda word: '{"half": "\\ud800"}')):
        round_ = await rested(thread, gateway, asking(("send", odd)), saying("Done."))
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
