"""The tools that a model may call, and running one.

A tool is a plain function with a JSON schema. Running one never raises: what
went wrong is told to the model, and the round goes on.
"""

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connections

from threads.core.events import ToolCall
from threads.models import ToolRun
from threads.rounds import arithmetic, clock

logger = logging.getLogger(__name__)

RUN_SECONDS = 60.0
RESULT_LENGTH = 32_000
ERROR_LENGTH = 500

State = ToolRun.State
Function = Callable[..., str]


class ToolError(Exception):
    """A tool refuses, in words meant for the model."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool; `parameters` is a JSON schema of type object.

    A tool with effects changes something outside: its outcome matters, and an
    unknown one is never repeated by the machine.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Function
    has_effects: bool = False

    def offer(self) -> dict[str, object]:
        """Return the tool as a request carries it."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What became of a call; `text` is told to the model."""

    state: str
    text: str


_registry: dict[str, Tool] = {}


def register(tool: Tool) -> None:
    """Add a tool, or replace the one of the same name."""
    _registry[tool.name] = tool


def unregister(name: str) -> None:
    """Take a tool away; harmless when there is none."""
    _registry.pop(name, None)


def offers() -> list[dict[str, object]]:
    """Return every tool as a request carries it."""
    return [tool.offer() for tool in _registry.values()]


def has_effects(name: str) -> bool:
    """Tell whether a tool changes something outside; an unknown one does nothing."""
    tool = _registry.get(name)
    return tool is not None and tool.has_effects


async def run_tool(call: ToolCall) -> ToolResult:
    """Run one tool call to its end, its error or its time limit."""
    if call.problem:
        return ToolResult(State.NOT_RUN, f"The tool was not run: {call.problem}.")
    tool = _registry.get(call.name)
    if tool is None:
        known = ", ".join(sorted(_registry)) or "none"
        return ToolResult(
            State.NOT_RUN, f"There is no tool {call.name!r}. The tools are: {known}."
        )
    arguments: dict[str, Any] = json.loads(call.arguments)
    problem = problem_with(arguments, tool.parameters)
    if problem:
        return ToolResult(State.NOT_RUN, f"The tool was not run: {problem}.")
    try:
        async with asyncio.timeout(RUN_SECONDS):
            outcome = await _in_thread(tool, arguments)
    except TimeoutError:
        # Its thread cannot be interrupted; what it does from now on is unknown.
        return ToolResult(
            State.UNKNOWN, f"The tool did not finish within {RUN_SECONDS:.0f} seconds."
        )
    if isinstance(outcome, str):
        return ToolResult(State.OK, shortened(outcome))
    kind = type(outcome).__name__
    logger.warning("TOOL_FAILED tool=%s error=%s", tool.name, kind)
    words = f"The tool failed: {kind}: {outcome}"
    return ToolResult(State.ERROR, words[:ERROR_LENGTH])


def shortened(text: str) -> str:
    """Keep a result inside its limit, and say so where it was longer."""
    if len(text) <= RESULT_LENGTH:
        return text
    notice = f"\n[Shortened: the result had {len(text)} characters.]"
    return text[: RESULT_LENGTH - len(notice)] + notice


JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def problem_with(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Say what keeps arguments from fitting a flat schema; empty when they fit."""
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in arguments:
            return f"the argument {name!r} is missing"
    for name, value in arguments.items():
        if name not in properties:
            return f"there is no argument {name!r}"
        wanted = properties[name].get("type")
        allowed = JSON_TYPES.get(str(wanted), (object,))
        if not isinstance(value, allowed) or (
            isinstance(value, bool) and wanted in {"integer", "number"}
        ):
            return f"the argument {name!r} must be of type {wanted}"
    return ""


async def _in_thread(tool: Tool, arguments: dict[str, Any]) -> str | BaseException:
    """Call the tool in a thread of its own; what it raises is handed back.

    Raised here, a tool's TimeoutError would pass for the end of our patience, and
    its CancelledError for our own; StopIteration cannot cross a future at all.
    A daemon: a tool that hangs holds up neither other tools nor the end of the
    process, as a worker of a pool would.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str | BaseException] = loop.create_future()

    def settle(outcome: str | BaseException) -> None:
        if not done.done():
            done.set_result(outcome)

    def call() -> None:
        outcome: str | BaseException
        try:
            try:
                outcome = str(tool.function(**arguments))
            finally:
                connections.close_all()
        except BaseException as raised:  # noqa: BLE001 - a tool is anybody's code
            outcome = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=call, name=f"tool-{tool.name}", daemon=True).start()
    return await done


register(
    Tool(
        name="current_time",
        description="Tells the current date and time in a time zone.",
        parameters={
            "type": "object",
            "properties": {
                "timezone": {
                    "type": "string",
                    "description": "An IANA name such as Europe/Berlin. Default: UTC.",
                }
            },
        },
        function=clock.current_time,
    )
)
register(
    Tool(
        name="calculator",
        description="Calculates an arithmetic expression exactly.",
        parameters={
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "description": (
                        "Numbers, + - * / // % **, parentheses, and the functions "
                        "sqrt, abs, round, min, max. Example: (17 + 4) * 2.5"
                    ),
                }
            },
            "required": ["expression"],
        },
        function=arithmetic.calculate,
    )
)
