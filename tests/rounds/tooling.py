"""Tools for tests: registered for a while, and run outside of a round."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.fakegateway import DONE, Script, chunk, tool_call
from threads.core.events import ToolCall
from threads.tools import running
from threads.tools.registry import (
    FunctionTool,
    Tool,
    ToolContext,
    register,
    registered,
    unregister,
)
from threads.tools.running import ToolResult
from threads.tools.toolset import Toolset

CONTEXT = ToolContext(
    round_id=1, thread_id=1, owner_id=1, locale="en", idempotency_key="round-1-call-1-0"
)

WORD = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}
"""The schema of a tool that takes one word."""


def function_tool(name: str, function: Any, **more: Any) -> FunctionTool:
    """A tool that takes one word, unless told otherwise."""
    return FunctionTool(
        name, "A test tool.", more.pop("parameters", WORD), function, **more
    )


@contextmanager
def with_tools(*tools: Tool) -> Iterator[None]:
    """Register tools for as long as the context lasts."""
    for tool in tools:
        register(tool)
    try:
        yield
    finally:
        for tool in tools:
            unregister(tool.name)


async def run_one(call: ToolCall) -> ToolResult:
    """Run a call with all the tools of this site, as a round would."""
    toolset = Toolset(registered())
    return await running.run_asked(call, toolset, CONTEXT)


def asking(*calls: tuple[str, dict[str, Any]], text: str = "") -> Script:
    """A script that asks for tools."""
    parts = [
        tool_call(n, call_id=f"call_{n}", name=name, arguments=json.dumps(arguments))
        for n, (name, arguments) in enumerate(calls)
    ]
    words = [chunk(content=text)] if text else []
    return Script(*words, chunk(tool_calls=parts), chunk(finish="tool_calls"), DONE)


def saying(text: str) -> Script:
    """A script that answers."""
    return Script(chunk(content=text), chunk(finish="stop"), DONE)
