"""Running one tool call. It never raises: what went wrong is told to the model."""

import asyncio
import json
import logging
from dataclasses import dataclass

from threads.core.answer import clean
from threads.core.events import ToolCall
from threads.models import ToolRun
from threads.tools.arguments import UnfitError, arguments_of, unfit_arguments
from threads.tools.registry import Tool, ToolContext, ToolError, UnknownOutcomeError
from threads.tools.toolset import Toolset

logger = logging.getLogger(__name__)

RUN_SECONDS = 60.0
RESULT_LENGTH = 32_000
ERROR_LENGTH = 500
NAME_LENGTH = 100

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
        name = asked.name[:NAME_LENGTH]
        return shortened(f"There is no tool {name!r}. The tools are: {known}.")
    try:
        unfit = unfit_arguments(arguments_of(asked.arguments), tool.parameters)
    except UnfitError as error:
        unfit = str(error)
    return f"The tool was not run: {clean(unfit)}." if unfit else ""


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
    """Run it. What a tool raises is never taken for our own patience or a Stop."""
    patience = asyncio.timeout(RUN_SECONDS)
    try:
        async with patience:
            value = await tool.call(arguments_of(asked.arguments), context)
    except UnknownOutcomeError as error:
        return _unknown(tool, told(error))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _unknown(tool, "The tool was broken off.")
    except Exception as error:  # noqa: BLE001 - a tool is anybody's code
        if patience.expired():
            # Its thread cannot be interrupted; what it does from now on is unknown.
            words = f"The tool did not finish within {RUN_SECONDS:.0f} seconds."
            return _unknown(tool, words)
        return _failed(tool, error)
    return _told_result(tool, value)


def _unknown(tool: Tool, words: str) -> ToolResult:
    logger.warning("TOOL_OUTCOME_UNKNOWN tool=%s", tool.name)
    return ToolResult(State.UNKNOWN, f"{words} {MAYBE}")


def _failed(tool: Tool, error: Exception) -> ToolResult:
    kind = type(error.__cause__ or error).__name__
    logger.warning("TOOL_FAILED tool=%s error=%s", tool.name, kind)
    words = told(error) if isinstance(error, ToolError) else f"{kind}: {told(error)}"
    return ToolResult(State.ERROR, f"The tool failed: {words}")


def _told_result(tool: Tool, value: object) -> ToolResult:
    try:
        text = text_of(value)
    except Exception as error:  # noqa: BLE001 - a result may hold anything
        kind = type(error).__name__
        logger.warning("TOOL_FAILED tool=%s error=%s", tool.name, kind)
        words = f"The tool has run, but its result cannot be written down ({kind})."
        return ToolResult(State.ERROR, words)
    return ToolResult(State.OK, shortened(clean(text)))


def told(error: Exception) -> str:
    """What an error says, made fit to be told and stored."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - an exception is anybody's code too
        words = type(error).__name__
    return clean(words)[:ERROR_LENGTH]


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
