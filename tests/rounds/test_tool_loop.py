"""Rounds of several calls: what runs, in what order, what is told, when it ends."""

import asyncio
import json
import threading
from html import escape
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Reset, Script, chunk, tool_call
from tests.rounds.helpers import answered, opened
from tests.rounds.tooling import asking, function_tool, saying, with_tools
from threads.models import CallAttempt, Thread, ToolRule, ToolRun, ToolTurn
from threads.rendering import thread_row_html
from threads.rounds import engine

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


def noting(calls: list[str], *, effects: bool = False) -> Any:
    """A tool that notes what it was called with."""

    def note(word: str) -> str:
        calls.append(word)
        return f"noted {word}"

    return function_tool("note", note, has_effects=effects)


async def states() -> list[str]:
    runs = ToolRun.objects.order_by("round", "call", "position")
    return [run.state async for run in runs]


async def test_tools_that_change_nothing_run_side_by_side(
    thread: Thread, gateway: FakeGateway
) -> None:
    together = threading.Barrier(3)

    def meet(word: str) -> str:
        together.wait(10)
        return word

    gateway.play(asking(*[("meet", {"word": w}) for w in "abc"]), saying("All met."))
    with with_tools(function_tool("meet", meet)):
        cell = await answered(thread, await model_at("some/model", gateway.base_url))

    assert (cell.status, cell.text) == ("done", "All met.")
    told = gateway.requests[1].json["messages"]
    assert [m["content"] for m in told[-3:]] == ["a", "b", "c"]
    assert [m["tool_call_id"] for m in told[-3:]] == ["call_0", "call_1", "call_2"]


async def test_tools_with_effects_run_one_after_another_in_their_order(
    thread: Thread, gateway: FakeGateway
) -> None:
    await ToolRule.objects.acreate(tool="write", policy="allow")
    running, log = threading.Lock(), list[str]()

    def write(word: str) -> str:
        assert running.acquire(blocking=False)
        log.append(word)
        running.release()
        return word

    gateway.play(asking(*[("write", {"word": w}) for w in "abc"]), saying("Written."))
    with with_tools(function_tool("write", write, has_effects=True)):
        await answered(thread, await model_at("some/model", gateway.base_url))

    assert log == ["a", "b", "c"]
    keys = {run.idempotency_key async for run in ToolRun.objects.all()}
    assert len(keys) == 3


async def test_the_next_question_carries_what_the_tools_told(
    thread: Thread, gateway: FakeGateway
) -> None:
    model, calls = await model_at("some/model", gateway.base_url), list[str]()
    gateway.play(asking(("note", {"word": "x"}), text="I look."), saying("It is x."))
    with with_tools(noting(calls)):
        await answered(thread, model, "What is it?")
        gateway.play(saying("Still x."))
        await answered(thread, model, "And now?")

    messages = gateway.requests[-1].json["messages"]
    assert [(m["role"], m["content"]) for m in messages] == [
        ("user", "What is it?"),
        ("assistant", "I look."),
        ("tool", "noted x"),
        ("assistant", "It is x."),
        ("user", "And now?"),
    ]
    assert calls == ["x"]


async def test_a_model_without_tools_hears_words_only_and_runs_none(
    thread: Thread, gateway: FakeGateway
) -> None:
    model, calls = await model_at("some/model", gateway.base_url), list[str]()
    gateway.play(asking(("note", {"word": "x"}), text="I look."), saying("It is x."))
    with with_tools(noting(calls)):
        await answered(thread, model)
        model.uses_tools = False
        await model.asave()
        gateway.play(asking(("note", {"word": "y"})), saying("Well."))
        cell = await answered(thread, model)

    first, second = gateway.requests[2].json, gateway.requests[3].json
    assert "tools" not in first
    assert first["messages"][1] == {
        "role": "assistant",
        "content": "I look.\n\nIt is x.",
    }
    assert "There is no tool 'note'" in second["messages"][-1]["content"]
    assert (cell.text, calls, await states()) == ("Well.", ["x"], ["ok", "not_run"])


async def test_rules_of_an_agent_hold_before_those_of_all(
    thread: Thread, gateway: FakeGateway
) -> None:
    await ToolRule.objects.acreate(tool="note", policy="deny")
    gateway.play(saying("Hello."))
    with with_tools(noting([])):
        await answered(thread, await model_at("some/model", gateway.base_url))

    names = [t["function"]["name"] for t in gateway.requests[0].json["tools"]]
    assert "note" not in names
    assert "calculator" in names


async def test_nobody_is_asked_in_a_round_without_a_person(
    thread: Thread, gateway: FakeGateway
) -> None:
    calls = list[str]()
    gateway.play(asking(("note", {"word": "x"})), saying("I could not."))
    model = await model_at("some/model", gateway.base_url)
    with with_tools(noting(calls, effects=True)):
        cell = await answered(thread, model, attended=False)

    assert (cell.status, calls, await states()) == ("done", [], ["not_run"])
    told = gateway.requests[1].json["messages"][-1]["content"]
    assert "nobody is there" in told


ARGUMENTS = '{"word": "caf\\u00e9"}'


@pytest.mark.parametrize("finish", ["stop", "tool_calls", None])
async def test_arguments_that_are_cut_are_never_run_wherever_they_are_cut(
    thread: Thread, gateway: FakeGateway, finish: str | None
) -> None:
    model, calls = await model_at("some/model", gateway.base_url), list[str]()
    with with_tools(noting(calls)):
        for end in range(len(ARGUMENTS)):
            part = tool_call(call_id="c", name="note", arguments=ARGUMENTS[:end])
            broken = [chunk(tool_calls=[part])]
            if finish is None:
                gateway.play(Script(*broken, Reset()))
            else:
                gateway.play(
                    Script(*broken, chunk(finish=finish), DONE), saying("Well then.")
                )
            cell = await answered(thread, model)
            assert cell.status == ("error" if finish is None else "done")

    assert calls == []
    assert await states() == ["not_run"] * len(ARGUMENTS)


async def test_a_call_that_is_no_call_is_told_in_a_form_that_gateways_take(
    thread: Thread, gateway: FakeGateway
) -> None:
    broken = [
        tool_call(0, call_id="c", name="note", arguments='{"word": "caf'),
        tool_call(1, call_id="d", name="no such tool!", arguments="{}"),
        tool_call(2, call_id="e", name="", arguments="[]"),
    ]
    gateway.play(
        Script(chunk(tool_calls=broken), chunk(finish="tool_calls"), DONE),
        saying("Well then."),
    )
    with with_tools(noting([])):
        await answered(thread, await model_at("some/model", gateway.base_url))

    asked, *told = gateway.requests[1].json["messages"][1:]
    assert [call["function"] for call in asked["tool_calls"]] == [
        {"name": "note", "arguments": "{}"},
        {"name": "no_such_tool_", "arguments": "{}"},
        {"name": "unknown", "arguments": "{}"},
    ]
    assert "not complete JSON" in told[0]["content"]
    assert "There is no tool 'no such tool!'" in told[1]["content"]


async def test_no_two_calls_of_a_thread_have_one_id(
    thread: Thread, gateway: FakeGateway
) -> None:
    model = await model_at("some/model", gateway.base_url)
    with with_tools(noting([])):
        for word in ("one", "two"):
            gateway.play(
                asking(("note", {"word": f"{word} a"})),
                asking(("note", {"word": f"{word} b"})),
                saying("Noted."),
            )
            await answered(thread, model)

    messages = gateway.requests[-1].json["messages"]
    asked = [c["id"] for m in messages for c in m.get("tool_calls", ())]
    told = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert asked == told
    assert (len(asked), len(set(asked)), asked[0]) == (4, 4, "call_0")


async def test_arguments_that_are_whole_are_run(
    thread: Thread, gateway: FakeGateway
) -> None:
    calls = list[str]()
    part = tool_call(call_id="c", name="note", arguments=ARGUMENTS)
    gateway.play(
        Script(chunk(tool_calls=[part]), chunk(finish="stop"), DONE), saying("Good.")
    )
    with with_tools(noting(calls)):
        await answered(thread, await model_at("some/model", gateway.base_url))

    assert calls == ["café"]


async def test_calls_of_an_answer_at_its_limit_are_not_run(
    thread: Thread, gateway: FakeGateway
) -> None:
    calls = list[str]()
    part = tool_call(call_id="c", name="note", arguments=ARGUMENTS)
    gateway.play(Script(chunk(tool_calls=[part]), chunk(finish="length"), DONE))
    with with_tools(noting(calls)):
        cell = await answered(thread, await model_at("some/model", gateway.base_url))

    assert (cell.ending, calls, await states()) == ("length", [], ["not_run"])
    assert await ToolTurn.objects.acount() == 0


class TestCircles:
    """A model that goes round in circles is stopped by name (F7)."""

    async def test_the_same_call_is_made_seven_times_and_not_an_eighth(
        self, thread: Thread, gateway: FakeGateway
    ) -> None:
        calls = list[str]()
        gateway.play(asking(("note", {"word": "again"})))
        with with_tools(noting(calls)):
            cell = await answered(
                thread, await model_at("some/model", gateway.base_url)
            )

        assert (cell.status, cell.code) == ("error", "repeated_tool_call")
        assert (cell.condition, cell.transient) == ("request", False)
        assert "note" in cell.sentence
        assert (len(calls), len(gateway.requests)) == (7, 8)
        assert (await states())[-1] == "not_run"

    async def test_the_same_failure_ends_the_round_at_the_third_time(
        self, thread: Thread, gateway: FakeGateway
    ) -> None:
        def fails(word: str) -> str:
            raise ValueError("out of order")

        gateway.play(asking(("note", {"word": "x"})))
        with with_tools(function_tool("note", fails)):
            cell = await answered(
                thread, await model_at("some/model", gateway.base_url)
            )

        assert (cell.code, await states()) == ("repeated_tool_error", ["error"] * 3)

    async def test_117_calls_that_differ_come_to_an_answer(
        self, thread: Thread, gateway: FakeGateway
    ) -> None:
        words = [str(n) for n in range(117)]
        batches = [words[n : n + 9] for n in range(0, 117, 9)]
        gateway.play(
            *[asking(*[("note", {"word": w}) for w in batch]) for batch in batches],
            saying("Done."),
        )
        calls = list[str]()
        with with_tools(noting(calls)):
            cell = await answered(
                thread, await model_at("some/model", gateway.base_url)
            )

        assert (cell.status, sorted(calls)) == ("done", sorted(words))


async def test_two_tools_then_a_fault_reads_as_it_was_recorded(
    thread: Thread, gateway: FakeGateway
) -> None:
    """The measured round of requirement E7 (000:35, 000:50-52)."""
    model, calls = await model_at("some/model", gateway.base_url), list[str]()
    usage = {"prompt_tokens": 120, "completion_tokens": 45}
    asks = asking(("note", {"word": "a"}), ("note", {"word": "b"}), text="I look.")
    gateway.play(
        Script(*asks.steps[:-1], chunk(usage=usage), DONE),
        Script(
            chunk(content="Both tools ha"),
            chunk(error={"code": 502, "message": "upstream gave up"}),
        ),
    )
    with with_tools(noting(calls)):
        cell = await answered(thread, model)

    assert cell.text == "I look.\n\nBoth tools ha"
    assert (cell.status, cell.ending, cell.code) == ("error", "faulted", "http_5xx")
    runs = [run async for run in ToolRun.objects.order_by("position")]
    assert [(run.state, run.result) for run in runs] == [
        ("ok", "noted a"),
        ("ok", "noted b"),
    ]
    assert all(run.started_at and run.ended_at for run in runs)
    rows = [row async for row in CallAttempt.objects.order_by("call")]
    assert [(r.call, r.attempt, r.outcome) for r in rows] == [
        (1, 1, "completed"),
        (2, 1, "faulted"),
    ]
    assert (rows[0].input_tokens, rows[0].output_tokens) == (120, 45)
    assert (rows[0].usage_source, rows[1].usage_source) == ("provider", "estimated")
    assert calls == ["a", "b"]
    row = await sync_to_async(thread_row_html)(thread)
    assert f'title="{escape(cell.sentence)}"' in row
    sent = [json.loads(r.body)["messages"] for r in gateway.requests]
    assert [m["role"] for m in sent[1]] == ["user", "assistant", "tool", "tool"]


async def test_a_tool_that_is_cancelled_with_its_round_leaves_no_task(
    thread: Thread, gateway: FakeGateway
) -> None:
    began, release = threading.Barrier(3), threading.Event()

    def hang(word: str) -> str:
        began.wait(10)
        release.wait(20)
        return word

    gateway.play(asking(("hang", {"word": "x"}), ("hang", {"word": "y"})))
    with with_tools(function_tool("hang", hang)):
        round_ = await opened(thread, await model_at("some/model", gateway.base_url))
        await engine.start(round_.pk)
        await asyncio.to_thread(began.wait, 10)
        await engine.stop(round_.pk)
        await engine.wait(round_.pk)
    release.set()

    assert await states() == ["unknown", "unknown"]
