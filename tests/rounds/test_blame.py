"""Whose fault it was: a tool's, the gateway's or our own, and never the wrong one's.

What goes wrong in a tool looks just like what goes wrong with a gateway: the same
exception types (A12). What goes wrong in our own code is nobody else's (A13).
"""

import asyncio
import concurrent.futures
import json
import logging
from collections.abc import Callable, Iterator

import httpx2
import openai
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Script, Stall, chunk, tool_call
from tests.rounds.helpers import answered, cell_of
from threads.core.answer import Accumulator, ToolCallAssembler
from threads.core.events import StreamEvent, TextDelta
from threads.models import CallAttempt, Cell, Round, Thread, ToolRun
from threads.tools import registry
from threads.tools.registry import FunctionTool

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]

REQUEST = httpx2.Request("POST", "http://gateway.test/v1/chat/completions")
REFUSAL = httpx2.Response(429, json={"error": {"message": "slow"}}, request=REQUEST)

RAISED: dict[str, Callable[[], BaseException]] = {
    "JSONDecodeError": lambda: json.JSONDecodeError("Expecting value", "doc", 0),
    "UnicodeDecodeError": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    "TimeoutError": lambda: TimeoutError("the tool's own"),
    "APIError": lambda: openai.APIError("boom", REQUEST, body={"code": 502}),
    "APITimeoutError": lambda: openai.APITimeoutError(REQUEST),
    "APIConnectionError": lambda: openai.APIConnectionError(request=REQUEST),
    "RateLimitError": lambda: openai.RateLimitError("slow", response=REFUSAL, body={}),
    "ReadError": lambda: httpx2.ReadError("reset"),
    "ConnectionResetError": lambda: ConnectionResetError(104, "reset"),
    "RecursionError": lambda: RecursionError("too deep"),
    "StopIteration": lambda: StopIteration("no more"),
    "CancelledError": lambda: asyncio.CancelledError("the tool's own"),
    "concurrent CancelledError": lambda: concurrent.futures.CancelledError("its own"),
    "SystemExit": lambda: SystemExit(3),
}


@pytest.fixture
def raising() -> Iterator[Callable[[Callable[[], BaseException]], None]]:
    """Registers a tool that raises what it is told to."""

    def register(make: Callable[[], BaseException]) -> None:
        def breaks() -> str:
            raise make()

        registry.register(FunctionTool("breaks", "Breaks.", {"type": "object"}, breaks))

    yield register
    registry.unregister("breaks")


@pytest.mark.parametrize("make", RAISED.values(), ids=RAISED)
async def test_what_a_tool_raises_is_the_tools_error_and_the_round_goes_on(
    thread: Thread,
    gateway: FakeGateway,
    raising: Callable[[Callable[[], BaseException]], None],
    make: Callable[[], BaseException],
) -> None:
    raising(make)
    asked = tool_call(0, call_id="a", name="breaks", arguments="{}")
    gateway.play(
        Script(chunk(tool_calls=[asked]), chunk(finish="tool_calls"), DONE),
        Script(chunk(content="So be it."), chunk(finish="stop"), DONE),
    )

    cell = await answered(thread, await model_at("some/model", gateway.base_url))

    assert (cell.status, cell.code, cell.text) == ("done", "", "So be it.")
    run = await ToolRun.objects.aget()
    assert run.state == "error"
    assert run.result.startswith(f"The tool failed: {type(make()).__name__}")
    told = gateway.requests[1].json["messages"][-1]
    assert (told["role"], told["content"]) == ("tool", run.result)
    attempts = [a async for a in CallAttempt.objects.order_by("call")]
    assert [(a.outcome, a.code) for a in attempts] == [("completed", "")] * 2


@pytest.fixture
async def owner(alice: User) -> AsyncClient:
    client = AsyncClient()
    await sync_to_async(client.force_login)(alice)
    return client


async def page_of(client: AsyncClient, thread: Thread) -> str:
    response = await client.get(f"/threads/{thread.pk}/")
    assert response.status_code == 200
    return str(response.content.decode())


BUG = "bug-canary-0815"


def broken_at_the_second_piece(self: Accumulator, event: StreamEvent) -> None:
    """Stand in for a mistake in our own code, after some text has come."""
    if isinstance(event, TextDelta):
        if event.text == "two":
            raise ValueError(BUG)
        self._text.append(event.text)


async def test_a_bug_in_our_accumulator_is_ours_and_shows_a_number_and_no_traceback(
    thread: Thread,
    gateway: FakeGateway,
    owner: AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(Accumulator, "feed", broken_at_the_second_piece)
    gateway.play(Script(chunk(content="one "), chunk(content="two"), Stall()))

    with caplog.at_level(logging.DEBUG):
        cell = await answered(thread, await model_at("some/model", gateway.base_url))

    assert (cell.status, cell.code) == ("error", "internal_error")
    assert (cell.condition, cell.transient) == ("our_bug", False)
    assert cell.text == "one "
    incident = cell.sentence_params["incident"]
    assert incident in cell.sentence
    await gateway.requests[0].wait_closed(within_seconds=10)
    assert len(gateway.requests) == 1
    markers = [r.getMessage() for r in caplog.records if "PROVIDER_" in r.getMessage()]
    assert markers == []
    page = await page_of(owner, thread)
    assert incident in page
    for words in (page, cell.sentence, cell.text, cell.provider_reason):
        assert BUG not in words
        assert "Traceback" not in words
        assert "ValueError" not in words


async def test_a_bug_where_tool_calls_are_put_together_runs_no_tool(
    thread: Thread, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: ToolCallAssembler) -> None:
        raise ValueError(BUG)

    monkeypatch.setattr(ToolCallAssembler, "finish", broken)
    asked = tool_call(0, call_id="a", name="current_time", arguments="{}")
    gateway.play(Script(chunk(tool_calls=[asked]), chunk(finish="tool_calls"), DONE))

    cell = await answered(thread, await model_at("some/model", gateway.base_url))

    assert (cell.status, cell.code) == ("error", "internal_error")
    assert await ToolRun.objects.acount() == 0
    round_ = await Round.objects.aget()
    assert (round_.state, (await cell_of(round_)).status) == ("error", "error")
    assert await Cell.objects.filter(status="streaming").acount() == 0
