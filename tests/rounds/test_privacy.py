"""Prompts, answers and keys reach no log, whatever goes wrong and whoever talks.

Every test lets all loggers talk at every level and plays canaries: what people
write, what models answer, what gateways echo. No record may carry one (I1, I2).
"""

import asyncio
import json
from collections.abc import Callable

import openai
import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from tests.canaries import (
    ANSWER,
    ARGUMENT,
    KEY,
    PROMPT,
    REASON,
    RESULT,
    THOUGHT,
    assert_silent,
)
from tests.conftest import model_at
from tests.fakegateway import (
    DONE,
    Close,
    FakeGateway,
    Head,
    Reset,
    Script,
    Stall,
    chunk,
    frame,
    reply,
    tool_call,
)
from tests.rounds.helpers import answered, ask, cell_of, until
from tests.rounds.keys import keyed
from tests.rounds.tooling import with_tools
from threads.models import Cell, Thread
from threads.practice.models import PRACTICE_MODELS
from threads.rounds import engine
from threads.rounds.hub import live_view
from threads.tools.registry import FunctionTool

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds", "key", "loud"),
]

HALF = chunk(reasoning=THOUGHT) + chunk(content=ANSWER)
ECHO = f"{REASON}: you sent {PROMPT} with {KEY}"


@pytest.fixture(autouse=True)
def _impatient(settings: Settings) -> None:
    settings.CHAT_FIRST_DATA_SECONDS = settings.CHAT_IDLE_SECONDS = "1"


STREAMS = {
    "nothing comes": Script(Head(), Stall()),
    "silence halfway": Script(HALF, Stall()),
    "reset": Script(HALF, Reset()),
    "reset at once": Script(Reset(), framing="raw"),
    "closed": Script(HALF, Close(b"data: " + ANSWER.encode())),
    "cut": Script(HALF),
    "cut in a frame": Script(HALF, f'data: {{"choices": "{ANSWER}'),
    "finish error": Script(HALF, chunk(finish="error", error={"message": ECHO})),
    "unknown finish": Script(HALF, chunk(finish=REASON)),
    "error object": Script(HALF, frame({"error": {"code": 502, "message": ECHO}})),
    "error text": Script(HALF, frame({"error": ECHO})),
    "error event": Script(HALF, b"event: error\n", frame({"error": {"message": ECHO}})),
    "error without a frame": Script(HALF, f"error: {ECHO}\n\n"),
    "error in the choice": Script(
        frame({"choices": [{"delta": {"content": ANSWER}, "error": {"message": ECHO}}]})
    ),
    "key refused midway": Script(
        HALF, frame({"error": {"code": 401, "message": ECHO}})
    ),
    "blocked": Script(
        frame({"error": {"code": 403, "metadata": {"flagged_input": PROMPT}}})
    ),
    "unreadable": Script(HALF, f"data: {ANSWER}\n\n"),
    "bad bytes": Script(HALF, b"data: \xff" + ANSWER.encode() + b"\n\n"),
    "a page": Script(f"<h1>{ECHO}</h1>", headers={"content-type": "text/html"}),
    "json": reply(200, {"choices": [{"message": {"content": ANSWER}}]}),
    "json error": reply(200, {"error": {"message": ECHO}}),
    "empty": Script(chunk(reasoning=THOUGHT), DONE),
    "length": Script(HALF, chunk(finish="length"), DONE),
    "filtered": Script(HALF, chunk(finish="content_filter"), DONE),
    "half a tool call": Script(
        chunk(tool_calls=[tool_call(call_id="a", name=ARGUMENT, arguments=ARGUMENT)])
    ),
    "no such tool": Script(
        chunk(tool_calls=[tool_call(call_id="a", name=ARGUMENT, arguments="{}")]),
        chunk(finish="tool_calls"),
        DONE,
    ),
    "whole": Script(HALF, chunk(finish="stop"), DONE),
}


@pytest.mark.parametrize("script", STREAMS.values(), ids=STREAMS)
async def test_no_ending_of_a_stream_tells_what_was_said(
    thread: Thread,
    gateway: FakeGateway,
    loud: pytest.LogCaptureFixture,
    script: Script,
) -> None:
    gateway.play(script)

    cell = await answered(thread, await keyed(gateway), PROMPT)

    assert cell.status in ("done", "error")
    sent = gateway.requests[0]
    assert PROMPT in sent.body.decode()
    assert KEY in sent.headers["authorization"]
    assert any(record.name.startswith("openai") for record in loud.records)
    assert_silent(loud)


STATUSES = (302, 400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 503, 529)
NESTED = {"error": {"message": ECHO, "input": PROMPT, "flagged_input": PROMPT}}
BODIES: dict[str, Callable[[int], Script]] = {
    "nested": lambda status: reply(
        status,
        {
            "error": {
                "message": "Provider returned error",
                "metadata": {"raw": json.dumps(NESTED), "provider_name": f"P {KEY}"},
            },
            "user_id": KEY,
        },
        headers={"retry-after-ms": "1"},
    ),
    "text": lambda status: Script(
        ECHO,
        status=status,
        headers={"content-type": "text/plain", "retry-after-ms": "1"},
        framing="length",
    ),
}


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_no_refusal_tells_what_it_echoes(
    thread: Thread,
    gateway: FakeGateway,
    loud: pytest.LogCaptureFixture,
    status: int,
    body: Callable[[int], Script],
) -> None:
    gateway.play(body(status))
    model = await keyed(gateway)

    cell = await answered(thread, model, PROMPT)
    again = await answered(thread, model, PROMPT)

    assert (cell.status, again.status) == ("error", "error")
    assert PROMPT in gateway.requests[0].body.decode()
    assert_silent(loud)


async def test_no_practice_model_tells_what_it_was_asked(
    alice: User, practice_url: str, loud: pytest.LogCaptureFixture
) -> None:
    async def one(wire_id: str) -> Cell:
        thread = await Thread.objects.acreate(owner=alice)
        return await answered(thread, await model_at(wire_id, practice_url), PROMPT)

    cells = await asyncio.gather(*(one(model.wire_id) for model in PRACTICE_MODELS))

    assert all(cell.status in ("done", "error") for cell in cells)
    assert any("CANARY" in cell.text for cell in cells)
    assert_silent(loud)


async def test_a_stop_tells_nothing(
    thread: Thread, gateway: FakeGateway, loud: pytest.LogCaptureFixture
) -> None:
    gateway.play(Script(HALF, Stall()))
    round_ = await ask(thread, await keyed(gateway), PROMPT)
    await until(lambda: (view := live_view(round_.answer_cell_id)) and view.offset)

    await engine.stop(round_.pk)
    await engine.wait(round_.pk)

    assert (await cell_of(round_)).text == ANSWER
    assert_silent(loud)


async def test_the_cap_tells_nothing(
    thread: Thread,
    gateway: FakeGateway,
    settings: Settings,
    loud: pytest.LogCaptureFixture,
) -> None:
    settings.CHAT_ROUND_CAP_SECONDS, settings.CHAT_IDLE_SECONDS = "1", "30"
    gateway.play(Script(chunk(reasoning=THOUGHT), Stall()))

    cell = await answered(thread, await keyed(gateway), PROMPT)

    assert (cell.code, cell.reasoning) == ("round_cap", THOUGHT)
    assert "ROUND_CAP_WHILE_REASONING" in loud.text
    assert_silent(loud)


TOOL_ERRORS: dict[str, Callable[[str], Exception]] = {
    "value": ValueError,
    "json": lambda word: json.JSONDecodeError(word, word, 0),
    "timeout": TimeoutError,
    "openai": lambda word: openai.OpenAIError(word),
}


@pytest.mark.parametrize("error", TOOL_ERRORS.values(), ids=TOOL_ERRORS)
async def test_a_tool_tells_neither_its_arguments_nor_its_failure(
    thread: Thread,
    gateway: FakeGateway,
    loud: pytest.LogCaptureFixture,
    error: Callable[[str], Exception],
) -> None:
    def canary_tool(word: str) -> str:
        raise error(f"{RESULT} of {word}")

    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    fails = FunctionTool("fails", "A test tool.", schema, canary_tool)
    asked = tool_call(call_id="a", name="fails", arguments=f'{{"word": "{ARGUMENT}"}}')
    gateway.play(
        Script(chunk(tool_calls=[asked]), chunk(finish="tool_calls"), DONE),
        Script(HALF, chunk(finish="stop"), DONE),
    )

    with with_tools(fails):
        cell = await answered(thread, await keyed(gateway), PROMPT)

    assert cell.status == "done"
    assert "fails" in gateway.requests[1].body.decode()
    assert_silent(loud)
