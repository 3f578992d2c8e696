"""A tool run begins once, and only for the worker that holds its round."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from tests.rounds.helpers import open_now
from tests.rounds.tooling import function_tool
from threads.core.events import ToolCall
from threads.models import LanguageModel, Round, Thread, ToolRun
from threads.rounds import exchanges, ledger
from threads.tools.toolset import Toolset

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(thread: Thread, steady: LanguageModel) -> ToolRun:
    """A run that may begin, of a round that "here" has claimed."""
    round_ = open_now(thread, steady)
    ledger.claim_round(round_.pk, "here")
    return ToolRun.objects.create(
        round=round_, call=1, position=0, call_id="c", state="allowed"
    )


def test_of_many_that_begin_it_one_does(run: ToolRun) -> None:
    def begin(_: int) -> bool:
        try:
            return exchanges.start_run(ToolRun.objects.get(pk=run.pk), "here")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        begun = list(pool.map(begin, range(8)))

    assert sorted(begun) == [False] * 7 + [True]


def test_another_worker_does_not_begin_it(run: ToolRun) -> None:
    assert not exchanges.start_run(run, "elsewhere")


@pytest.mark.parametrize("state", ["waiting", "running", "ok", "not_run", "unknown"])
def test_what_is_not_allowed_does_not_begin(run: ToolRun, state: str) -> None:
    ToolRun.objects.update(state=state)

    assert not exchanges.start_run(run, "here")


def test_it_does_not_begin_after_its_round(run: ToolRun) -> None:
    Round.objects.filter(pk=run.round_id).update(state="asking")

    assert not exchanges.start_run(run, "here")


ASKS = Toolset(
    {
        name: function_tool(name, str, has_effects=name == "send")
        for name in ("look", "send")
    },
    frozenset({"send"}),
)


def states(name: str, arguments: str, *, attended: bool) -> list[str]:
    """How a call would be recorded."""
    asked = ToolCall("call_1", name, arguments)
    runs = exchanges.new_runs(1, 1, [asked], ASKS, attended=attended)
    return [run.state for run in runs]


def test_a_tool_that_asks_waits_for_its_person() -> None:
    assert states("send", '{"word": "x"}', attended=True) == ["waiting"]
    assert states("look", '{"word": "x"}', attended=True) == ["allowed"]


def test_where_nobody_is_there_a_tool_that_asks_is_not_run() -> None:
    assert states("send", '{"word": "x"}', attended=False) == ["not_run"]
    assert states("look", '{"word": "x"}', attended=False) == ["allowed"]


def test_nobody_is_asked_about_what_cannot_run() -> None:
    assert states("send", '{"word": 3}', attended=True) == ["not_run"]
    assert states("hide", '{"word": "x"}', attended=True) == ["not_run"]
