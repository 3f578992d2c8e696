"""What the one runner of tools bears: any arguments, any schema, any result."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.rounds.test_blame import RAISED
from tests.rounds.tooling import function_tool, run_one, with_tools
from threads.core.events import ToolCall
from threads.tools import arguments
from threads.tools.registry import ToolContext, UnknownOutcomeError
from threads.tools.running import RESULT_LENGTH, ToolResult

ANYTHING = {"type": "object"}


async def result_of(
    function: Callable[..., object],
    written: str = "{}",
    schema: dict[str, Any] | None = None,
) -> ToolResult:
    """Run a tool of that function and schema with these arguments."""
    with with_tools(function_tool("tool", function, parameters=schema or ANYTHING)):
        return await run_one(ToolCall("call_1", "tool", written))


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


def looped() -> list[object]:
    loop: list[object] = []
    loop.append(loop)
    return loop


def nested(depth: int) -> str:
    return '{"a":' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("words", "words"),
        ({"ä": [1, None, True]}, '{"ä": [1, null, true]}'),
        (None, "null"),
        ({"set": {1}}, '{"set": "{1}"}'),
        ("a\0b\ud83d\ude00c\ud800", "ab😀c�"),
        ({"a\ud800": "\0"}, '{"a�": "\\u0000"}'),
    ],
)
async def test_a_result_is_told_as_text_that_can_be_stored(
    value: object, text: str
) -> None:
    assert await result_of(lambda: value) == ToolResult("ok", text)


@pytest.mark.parametrize("make", [looped, lambda: {(1, 2): 3}], ids=["loop", "keys"])
async def test_a_result_that_cannot_be_written_is_an_error_of_a_tool_that_has_run(
    make: Callable[[], object],
) -> None:
    result = await result_of(make)

    assert result.state == "error"
    assert result.text.startswith("The tool has run, but its result cannot be written")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (nested(2_000), "nested too deeply"),
        (nested(150), "nested too deeply"),
        (nested(200_000), "the arguments are longer than 256000 characters"),
        ('{"a": "' + "x" * 1_000_000 + '"}', "longer than 256000 characters"),
        ('{"a": NaN}', "NaN is no JSON"),
        ('{"a": -Infinity}', "-Infinity is no JSON"),
        ('{"a": 1, "b": {"to": 1, "to": 2}}', "'to' is given twice"),
        ('{"a": ' + "9" * 5_000 + "}", "not complete JSON"),
        ("[1]", "not a JSON object"),
        ('"{}"', "not a JSON object"),
        ('{"a": 1', "not complete JSON"),
        ("", "not complete JSON"),
        ("\ud800", "not complete JSON"),
    ],
)
async def test_arguments_of_no_use_are_answered_and_nothing_runs(
    written: str, told: str
) -> None:
    ran: list[object] = []

    result = await result_of(lambda **given: ran.append(given), written)

    assert (result.state, ran) == ("not_run", [])
    assert told in result.text
    assert len(result.text) < 1_200


async def test_arguments_within_the_bounds_arrive_whole() -> None:
    given = {"a": json.loads(nested(90)), "b": "x" * 250_000, "c": 10**300}

    result = await result_of(lambda **got: got == given, json.dumps(given))

    assert result == ToolResult("ok", "true")


async def test_a_name_of_any_length_is_told_shortened() -> None:
    result = await run_one(ToolCall("call_1", "\ud800" + "n" * 1_000_000, "{}"))

    assert result.state == "not_run"
    assert len(result.text) < RESULT_LENGTH
    assert "calculator" in result.text


BOMB = {
    "$ref": "#/$defs/0",
    "$defs": {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(40)}
    | {"40": {}},
}
"""Each part is checked twice by the one before: 2 to the 40th checks."""


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"type": 5},
        {"properties": 3},
        {"properties": {"a": {"type": "string", "minLength": "two"}}},
        {"required": 7},
        {"$ref": "#/nowhere"},
        {"$ref": "#"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$schema": ["what"], "type": "object"},
        {"allOf": {"a": 1}},
        {"additionalProperties": "no", "properties": None},
        {"enum": 3},
        BOMB,
    ],
    ids=lambda schema: json.dumps(schema)[:40],
)
async def test_a_broken_schema_is_named_and_nothing_runs(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arguments, "CHECK_SECONDS", 1.0)
    ran: list[object] = []

    result = await result_of(lambda **given: ran.append(given), '{"a": "b"}', schema)

    assert (result.state, ran) == ("not_run", [])
    assert "schema cannot be used" in result.text


COSTLY = [
    ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 60 + "!"}),
    ({"patternProperties": {"^(a+)+$": {}}}, {"a" * 60 + "!": 1}),
    (
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"a" * 60 + "!": 1},
    ),
    (
        {"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False},
        {"a" * 60 + "!": 1},
    ),
    (
        {"properties": {"a": {"uniqueItems": True}}},
        {"a": [{"b": n} for n in range(9_000)]},
    ),
]


@pytest.mark.parametrize(("schema", "given"), COSTLY)
async def test_what_could_take_for_ever_to_check_is_left_to_the_tool(
    schema: dict[str, Any], given: dict[str, Any]
) -> None:
    result = await result_of(lambda **_: "ran", json.dumps(given), schema)

    assert result == ToolResult("ok", "ran")


@pytest.mark.parametrize("draft", ["draft-04", "draft-07", "2019-09/", "2099-01/"])
async def test_schemas_of_any_draft_are_held_to(draft: str) -> None:
    schema = {
        "$schema": f"http://json-schema.org/{draft}schema#",
        "properties": {"a": {"items": {"uniqueItems": True, "maxItems": 2}}},
        "additionalProperties": False,
    }

    unfit = await result_of(lambda **_: "ran", '{"a": [[1, 1]], "b": 1}', schema)
    deep = await result_of(lambda **_: "ran", '{"a": [[1, 1, 3]]}', schema)
    fit = await result_of(lambda **_: "ran", '{"a": [[1, 2]]}', schema)

    assert (unfit.state, deep.state, fit.state) == ("not_run", "not_run", "ok")
    assert "'b' was unexpected" in unfit.text
    assert "at 'a/0'" in deep.text


class Raw:
    """A tool that is no function of ours, and whose exceptions nobody wraps."""

    name, description, parameters, has_effects = "raw", "Raises.", ANYTHING, True

    def __init__(self, make: Callable[[], BaseException]) -> None:
        self.make = make

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> object:
        raise self.make()


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("JSONDecodeError", "error"),
        ("TimeoutError", "error"),
        ("APIError", "error"),
        ("CancelledError", "unknown"),
    ],
)
async def test_what_any_tool_raises_is_its_own(name: str, state: str) -> None:
    with with_tools(Raw(RAISED[name])):
        result = await run_one(ToolCall("call_1", "raw", "{}"))

    assert result.state == state
    assert name in result.text or state == "unknown"


async def test_a_stop_is_no_outcome_of_a_tool() -> None:
    began = asyncio.Event()

    class Waits(Raw):
        async def call(self, arguments: dict[str, Any], context: ToolContext) -> object:
            began.set()
            await asyncio.Event().wait()
            return None

    with with_tools(Waits(RuntimeError)):
        task = asyncio.create_task(run_one(ToolCall("call_1", "raw", "{}")))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_what_a_tool_says_of_its_failure_is_told_as_far_as_it_can_be() -> None:
    def unspeakable() -> None:
        raise UnspeakableError

    def unknown() -> None:
        raise UnknownOutcomeError("The line broke\0.")

    assert (await result_of(unspeakable)).state == "error"
    told = await result_of(unknown)
    assert told.state == "unknown"
    assert told.text.startswith("The line broke. It may or may not have finished.")
