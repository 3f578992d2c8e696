"""Running one tool call. It never raises: what went wrong is told to the model."""

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from threads.core.answer import clean
from threads.core.events import ToolCall
from threads.models import ToolRun
from threads.tools.registry import Tool, ToolContext, ToolError, UnknownOutcomeError
from threads.tools.toolset import Toolset

logger = logging.getLogger(__name__)

RUN_SECONDS = 60.0
RESULT_LENGTH = 32_000
ERROR_LENGTH = 500

State = ToolRun.State

MAYBE = "It may or may not have finished. Check before you do it again."
"""What is true of a tool of which nothing more was heard (requirement F6)."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What became of a call; `text` is told to the model."""

    state: str
    text: str


def problem_with(asked: ToolCall, toolset: Toolset) -> str:
    """Say why a call must not run; empty when it may (requirement F14)."""
    if asked.problem:
        return f"The tool was not run: {asked.problem}."
    tool = toolset.get(asked.name)
    if tool is None:
        known = ", ".join(sorted(toolset.names)) or "none"
        return f"There is no tool {asked.name!r}. The tools are: {known}."
    unfit = unfit_arguments(json.loads(asked.arguments), tool.parameters)
    return f"The tool was not run: {unfit}." if unfit else ""


def unfit_arguments(arguments: Any, schema: Mapping[str, Any]) -> str:
    """Say where arguments do not fit their JSON schema; empty when they do."""
    # An empty registry: nothing that a schema refers to is ever fetched.
    validator = validator_for(schema)(schema, registry=Registry())
    try:
        errors = sorted(validator.iter_errors(arguments), key=lambda e: list(e.path))
    except (SchemaError, Unresolvable, RecursionError, ValueError) as error:
        return f"its schema cannot be used ({type(error).__name__})"
    if not errors:
        return ""
    place = "/".join(str(part) for part in errors[0].path)
    words = errors[0].message[:ERROR_LENGTH]
    return f"at {place!r}: {words}" if place else words


async def run_asked(
    asked: ToolCall, toolset: Toolset, context: ToolContext
) -> ToolResult:
    """Run one tool call to its end, its error or its time limit, if it may run."""
    problem = problem_with(asked, toolset)
    tool = toolset.get(asked.name)
    if problem or tool is None:
        return ToolResult(State.NOT_RUN, problem)
    return await _run(asked, tool, context)


async def _run(asked: ToolCall, tool: Tool, context: ToolContext) -> ToolResult:
    arguments: dict[str, Any] = json.loads(asked.arguments)
    try:
        async with asyncio.timeout(RUN_SECONDS):
            value = await tool.call(arguments, context)
    except TimeoutError:
        # Its thread cannot be interrupted; what it does from now on is unknown.
        words = f"The tool did not finish within {RUN_SECONDS:.0f} seconds. {MAYBE}"
        return ToolResult(State.UNKNOWN, words)
    except UnknownOutcomeError as error:
        logger.warning("TOOL_OUTCOME_UNKNOWN tool=%s", tool.name)
        return ToolResult(State.UNKNOWN, f"{told(error)} {MAYBE}")
    except ToolError as error:
        kind = type(error.__cause__ or error).__name__
        logger.warning("TOOL_FAILED tool=%s error=%s", tool.name, kind)
        return ToolResult(State.ERROR, f"The tool failed: {told(error)}")
    return ToolResult(State.OK, shortened(clean(text_of(value))))


def told(error: Exception) -> str:
    """What an error says, made fit to be told and stored."""
    return clean(str(error))[:ERROR_LENGTH]


def text_of(value: object) -> str:
    """A result as text: words as they are, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def shortened(text: str) -> str:
    """Keep a result inside its limit, and say so where it was longer (F9)."""
    if len(text) <= RESULT_LENGTH:
        return text
    notice = f"\n[Shortened: the result had {len(text)} characters.]"
    return text[: RESULT_LENGTH - len(notice)] + notice
