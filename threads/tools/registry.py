"""What a tool is, and the tools that this site brings itself.

A tool is a plain function with a JSON schema. Tools of MCP servers are tools like
any other: they differ in how they are called and in nothing else.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from threads.tools.calling import in_thread

Function = Callable[..., object]

NAME_LENGTH = 64
UNFIT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
"""What the OpenAI wire takes as a function's name, and what it does not."""


class ToolError(Exception):
    """A tool refuses, in words meant for the model."""


class UnknownOutcomeError(Exception):
    """The tool may or may not have done what was asked; in words for the model."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """On whose behalf a tool runs.

    `idempotency_key` is the same whenever the same call of the same round is made,
    and no other call has it (requirement F6).
    """

    round_id: int
    thread_id: int
    owner_id: int
    locale: str
    idempotency_key: str


class Tool(Protocol):
    """One tool; `parameters` is a JSON schema of type object.

    A tool with effects changes something outside: its outcome matters, and an
    unknown one is never repeated by the machine.
    """

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def has_effects(self) -> bool: ...

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> object:
        """Run it: text, or a value that JSON can hold.

        Raises:
            ToolError: it refuses, or reports an error of its own.
            UnknownOutcomeError: nobody can tell whether it has run.
        """
        ...


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A tool that is a plain function of this process.

    It gets the arguments by name, and before them the `ToolContext` if it
    `takes_context`. It may block: it runs in a thread of its own.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Function
    has_effects: bool = False
    takes_context: bool = False

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> object:
        """Run the function; whatever else it raises is a ToolError here.

        An error of its own must never pass for one of the gateway's (requirement A12).
        """
        first = (context,) if self.takes_context else ()
        outcome = await in_thread(
            lambda: self.function(*first, **arguments), name=self.name
        )
        if isinstance(outcome, ToolError | UnknownOutcomeError):
            raise outcome
        if isinstance(outcome, BaseException):
            raise ToolError(f"{type(outcome).__name__}: {outcome}") from outcome
        return outcome


_registry: dict[str, Tool] = {}


def register(tool: Tool) -> None:
    """Add a tool, or replace the one of the same name."""
    _registry[tool.name] = tool


def unregister(name: str) -> None:
    """Take a tool away; harmless when there is none."""
    _registry.pop(name, None)


def registered() -> dict[str, Tool]:
    """Return the tools of this site by name."""
    return dict(_registry)
