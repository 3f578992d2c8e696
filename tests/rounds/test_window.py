"""What reaches the gateway of a conversation that its model cannot read whole."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Script, chunk, tool_call
from tests.rounds.helpers import answered
from tests.rounds.tooling import function_tool, with_tools
from tests.web.asking import client_of, path
from threads.models import CallAttempt, Cell, LanguageModel, Thread
from threads.tools.running import RESULT_LENGTH

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]

UNDECLARED = "CONTEXT_WINDOW_UNDECLARED"
NOTE = "because the model can read only so much"


def saying(text: str) -> Script:
    return Script(chunk(content=text), chunk(finish="stop"), DONE)


def asking(name: str, *, reasoning: str | None = None) -> Script:
    call = tool_call(0, call_id="c1", name=name, arguments='{"word": "x"}')
    thought = [chunk(reasoning=reasoning)] if reasoning else []
    return Script(*thought, chunk(tool_calls=[call]), chunk(finish="tool_calls"), DONE)


async def model_with(
    gateway: FakeGateway, wire_id: str = "some/model", **fields: Any
) -> LanguageModel:
    """A model at the fake gateway, of which an operator said this."""
    model = await model_at(wire_id, gateway.base_url)
    for name, value in fields.items():
        setattr(model, name, value)
    await model.asave()
    return model


def sent(gateway: FakeGateway, place: int = -1) -> list[str | None]:
    """What the messages of a request said."""
    return [m["content"] for m in gateway.requests[place].json["messages"]]


@sync_to_async
def shown(cell: Cell) -> tuple[str, str]:
    """The thread's page and the answer's details, as their owner gets them."""
    client = client_of(cell.thread.owner)
    page = client.get(reverse("thread", args=[cell.thread_id])).content.decode()
    return page, client.get(path("details", cell)).content.decode()


async def test_the_oldest_exchanges_are_left_out_and_the_answer_says_so(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(saying("a" * 400))
    model = await model_with(gateway, context_window=400, uses_tools=False)
    for number in range(3):
        await answered(thread, model, f"{number}" * 200)
    cell = await answered(thread, model, "3" * 200)

    assert sent(gateway) == ["2" * 200, "a" * 400, "3" * 200]
    assert (cell.status, cell.round.left_out) == ("done", 4)
    first = await Cell.objects.select_related("round").filter(
        role="assistant"
    ).order_by("pk").afirst()  # fmt: skip
    assert first is not None
    assert first.round.left_out == 0
    cell = await Cell.objects.select_related("thread__owner").aget(pk=cell.pk)
    page, details = await shown(cell)
    assert page.count(NOTE) == 2
    assert f"The 4 oldest messages were left out, {NOTE}." in page
    assert "Oldest messages left out" in details
    attempt = await CallAttempt.objects.order_by("-pk").afirst()
    assert attempt is not None
    assert attempt.request_shape == {
        "messages": 3,
        "tools": 0,
        "stream_options": {"include_usage": True},
    }


async def test_a_message_that_cannot_fit_is_refused_before_it_is_sent(
    thread: Thread, gateway: FakeGateway
) -> None:
    model = await model_with(gateway, context_window=400, uses_tools=False)

    cell = await answered(thread, model, "long " * 400)

    assert (cell.ending, cell.code) == ("refused", "context_too_long")
    assert (cell.condition, cell.transient) == ("request", False)
    assert cell.sentence.startswith("This message is longer than some/model can read")
    assert gateway.accepted == 0


async def test_tools_that_fill_a_window_are_the_site_s_condition(
    thread: Thread, gateway: FakeGateway
) -> None:
    wide = function_tool("wide", str, parameters={"type": "object", "title": "x" * 999})
    model = await model_with(gateway, context_window=300)

    with with_tools(wide):
        cell = await answered(thread, model, "Hello")

    assert (cell.code, cell.condition) == ("context_too_long", "our_config")
    assert cell.sentence_key == "config.model_settings"
    assert gateway.accepted == 0


async def test_results_that_cannot_fit_end_the_round_and_what_was_left_stays(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(asking("rambles"), saying("never"))
    model = await model_with(gateway, context_window=6000)
    rambles = function_tool("rambles", lambda word: word * 40_000)

    with with_tools(rambles):
        cell = await answered(thread, model, "Look")

    assert (cell.ending, cell.code) == ("refused", "context_too_long")
    assert cell.sentence_key == "request.results_too_long"
    assert "What the tools brought back" in cell.sentence
    assert len(gateway.requests) == 1


async def test_tool_results_push_old_exchanges_out_and_stay_themselves(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(saying("old answer"), asking("rambles"), saying("Done."))
    model = await model_with(gateway, context_window=12_000)
    rambles = function_tool("rambles", lambda word: word * 24_000)

    with with_tools(rambles):
        await answered(thread, model, "old question " * 1_000)
        cell = await answered(thread, model, "Look")

    assert len(sent(gateway, 1)) == 3
    told = gateway.requests[2].json["messages"]
    assert [m["role"] for m in told] == ["user", "assistant", "tool"]
    assert (told[0]["content"], told[2]["content"]) == ("Look", "x" * 24_000)
    assert (cell.text, cell.round.left_out) == ("Done.", 2)


async def test_a_window_that_nobody_declared_is_guessed_and_refuses_nobody(
    thread: Thread, gateway: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.play(saying("Yes."))
    model = await model_with(gateway, "undeclared/one", uses_tools=False)

    await answered(thread, model, "first " * 5_000)
    await answered(thread, model, "second " * 10_000)
    cell = await answered(thread, model, "third " * 40_000)

    assert (cell.status, cell.round.left_out) == ("done", 4)
    assert [len(sent(gateway, n)) for n in range(3)] == [1, 3, 1]
    warned = [r for r in caplog.records if UNDECLARED in r.getMessage()]
    assert [r.getMessage() for r in warned] == [f"{UNDECLARED} model=undeclared/one"]


async def test_a_huge_result_does_not_reach_a_gateway_without_a_declared_window(
    thread: Thread, gateway: FakeGateway
) -> None:
    """The seed's case: 3.4 MB of a list, to a model of which nothing was known."""
    gateway.play(asking("lists"), saying("Many."))
    model = await model_with(gateway, "undeclared/two")
    rows = json.dumps([{"id": n, "name": "row " * 60} for n in range(13_641)])
    assert len(rows) > 3_400_000

    with with_tools(function_tool("lists", lambda word: rows)):
        cell = await answered(thread, model, "List all")

    assert (cell.status, cell.text) == ("done", "Many.")
    told = gateway.requests[1]
    assert len(told.json["messages"][-1]["content"]) <= RESULT_LENGTH
    assert len(told.body) < 2 * RESULT_LENGTH


@pytest.mark.parametrize(
    ("wire_id", "thought"), [("deepseek-v4", "I must look"), ("some/model", None)]
)
async def test_what_was_thought_before_a_tool_call_goes_back_where_it_is_wanted(
    thread: Thread, gateway: FakeGateway, wire_id: str, thought: str | None
) -> None:
    gateway.play(asking("echo", reasoning="I must look"), saying("Done."))
    model = await model_with(gateway, wire_id, context_window=100_000)

    with with_tools(function_tool("echo", str.upper)):
        cell = await answered(thread, model, "Look")

    assert cell.status == "done"
    asked = gateway.requests[1].json["messages"][-2]
    assert asked.get("reasoning_content") == thought


async def test_an_operator_s_word_on_a_model_is_in_every_call_of_a_round(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(asking("echo"), saying("Done."))
    model = await model_with(
        gateway,
        "gpt-5.4",
        reasoning_effort="high",
        max_output_tokens=900,
        temperature="1.00",
        request_extras={"service_tier": "flex"},
        context_window=100_000,
    )

    with with_tools(function_tool("echo", str.upper)):
        await answered(thread, model, "Look")

    said = {
        "reasoning_effort": "high",
        "max_completion_tokens": 900,
        "temperature": 1.0,
        "service_tier": "flex",
    }
    for request in gateway.requests:
        assert {name: request.json.get(name) for name in said} == said
    shapes = [a.request_shape async for a in CallAttempt.objects.order_by("call")]
    assert [shape["messages"] for shape in shapes] == [1, 3]
    assert all(shape["extras"] == ["service_tier"] for shape in shapes)
