"""Tools: what runs, what does not, and what the model is told."""

import threading
from collections.abc import Iterator

import pytest

from tests.conftest import model_at
from tests.fakegateway import FakeGateway, Script, chunk, tool_call
from tests.rounds.helpers import answered, ask, cell_of, until
from tests.rounds.tooling import asking, function_tool, run_one, saying, with_tools
from threads.core.events import ToolCall
from threads.models import CallAttempt, LanguageModel, Thread, ToolRun
from threads.rounds import engine
from threads.rounds.hub import live_view
from threads.tools import running


@pytest.fixture
def registered() -> Iterator[list[str]]:
    """Tools that echo, break, ramble and hang; the list notes who was called."""
    calls: list[str] = []

    def echo(word: str) -> str:
        calls.append(word)
        return f"You said {word}"

    def broken(word: str) -> str:
        raise ValueError(f"I do not like {word}")

    functions = {"echo": echo, "broken": broken, "rambles": lambda word: word * 40_000}
    with with_tools(*(function_tool(name, f) for name, f in functions.items())):
        yield calls


async def practice(url: str) -> LanguageModel:
    """A model at that address to which tools are offered."""
    return await model_at("some/model", url)


def call(name: str, arguments: str, *, problem: str = "") -> ToolCall:
    return ToolCall("call_1", name, arguments, problem)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("rounds")
async def test_the_practice_model_asks_two_tools_and_answers_from_what_they_say(
    thread: Thread,
) -> None:
    model = await model_at("practice/tools", "", is_practice=True)

    cell = await answered(thread, model)

    assert cell.status == "done", cell.sentence
    assert "391" in cell.text
    runs = [run async for run in ToolRun.objects.order_by("position")]
    assert [(run.name, run.state) for run in runs] == [
        ("current_time", "ok"),
        ("calculator", "ok"),
    ]
    assert [a.call async for a in CallAttempt.objects.order_by("call")] == [1, 2]
    first, rest = cell.text.split("\n\n", 1)
    assert first == "Let me ask two tools at the same time."
    assert rest.startswith("Both tools have answered.")


async def test_a_tool_that_raises_is_an_error_that_the_model_is_told(
    registered: list[str],
) -> None:
    result = await run_one(call("broken", '{"word": "soup"}'))

    assert result.state == "error"
    assert result.text == "The tool failed: ValueError: I do not like soup"


async def test_a_result_has_a_limit_and_says_so(registered: list[str]) -> None:
    result = await run_one(call("rambles", '{"word": "a"}'))

    assert (result.state, len(result.text)) == ("ok", running.RESULT_LENGTH)
    assert result.text.endswith("[Shortened: the result had 40000 characters.]")


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("no_such", "{}", "There is no tool 'no_such'"),
        ("echo", "{}", "'word' is a required property"),
        ("echo", '{"word": 3}', "at 'word': 3 is not of type 'string'"),
        ("echo", '{"word": "a", "more": 1}', "'more' was unexpected"),
    ],
)
async def test_a_call_that_does_not_fit_is_not_run(
    registered: list[str], name: str, arguments: str, told: str
) -> None:
    result = await run_one(call(name, arguments))

    assert (result.state, registered) == ("not_run", [])
    assert told in result.text


async def test_a_call_with_a_problem_is_not_run(registered: list[str]) -> None:
    result = await run_one(call("echo", '{"wo', problem="it is cut"))

    assert (result.state, registered) == ("not_run", [])


async def test_a_tool_that_hangs_is_given_up_and_its_outcome_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()
    monkeypatch.setattr(running, "RUN_SECONDS", 0.05)
    hangs = function_tool("hangs", lambda word: str(release.wait(20)))

    with with_tools(hangs):
        result = await run_one(call("hangs", '{"word": ""}'))

    release.set()
    assert result.state == "unknown"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("rounds")
class TestRounds:
    """Whole rounds whose model asks for tools."""

    async def test_a_tool_s_error_does_not_end_the_round(
        self, thread: Thread, gateway: FakeGateway, registered: list[str]
    ) -> None:
        gateway.play(asking(("broken", {"word": "x"})), saying("So be it."))

        cell = await answered(thread, await practice(gateway.base_url))

        assert (cell.status, cell.text) == ("done", "So be it.")
        told = gateway.requests[1].json["messages"]
        assert told[-2]["tool_calls"][0]["function"]["name"] == "broken"
        assert told[-1] == {
            "role": "tool",
            "tool_call_id": "call_0",
            "content": "The tool failed: ValueError: I do not like x",
        }

    async def test_a_fault_after_tools_keeps_them_and_runs_nothing_twice(
        self, thread: Thread, gateway: FakeGateway, registered: list[str]
    ) -> None:
        gateway.play(
            asking(("echo", {"word": "a"}), ("echo", {"word": "b"})),
            Script(chunk(content="They sa")),
        )

        cell = await answered(thread, await practice(gateway.base_url))

        assert (cell.status, cell.text) == ("error", "They sa")
        assert registered == ["a", "b"]
        assert [r.state async for r in ToolRun.objects.all()] == ["ok", "ok"]
        outcomes = [a.outcome async for a in CallAttempt.objects.order_by("call")]
        assert outcomes[0] == "completed"
        assert outcomes[-1] == "faulted"

    async def test_a_call_that_was_cut_is_not_run(
        self, thread: Thread, gateway: FakeGateway, registered: list[str]
    ) -> None:
        part = tool_call(0, call_id="c", name="echo", arguments='{"word": "a"')
        gateway.play(Script(chunk(tool_calls=[part])))

        cell = await answered(thread, await practice(gateway.base_url))

        assert (cell.status, registered) == ("error", [])

    async def test_a_stop_during_a_tool_keeps_what_is_there(
        self, thread: Thread, gateway: FakeGateway
    ) -> None:
        began, release = threading.Event(), threading.Event()

        def slow(word: str) -> str:
            began.set()
            release.wait(20)
            return word

        gateway.play(asking(("slow", {"word": "x"}), text="Let me look. "))
        with with_tools(function_tool("slow", slow)):
            round_ = await ask(thread, await practice(gateway.base_url))
            await until(began.is_set)
            await engine.stop(round_.pk)
            await engine.wait(round_.pk)

        release.set()
        cell = await cell_of(round_)
        assert (cell.status, cell.text) == ("stopped", "Let me look. ")
        assert (await ToolRun.objects.aget()).state == "unknown"
        assert live_view(cell.pk) is None
