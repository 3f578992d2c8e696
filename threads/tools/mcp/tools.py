"""The tools of MCP servers, as tools like any other.

They are offered from the listing that was kept, so that a server which cannot be
reached costs a round nothing: a call of one of its tools says so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from threads.models import ToolServer
from threads.tools.mcp import health
from threads.tools.mcp.client import call_tool
from threads.tools.mcp.values import ServerAddress, ServerError
from threads.tools.registry import (
    NAME_LENGTH,
    UNFIT_IN_NAMES,
    ToolContext,
    ToolError,
    UnknownOutcomeError,
)


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool of one server."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    has_effects: bool
    server_id: int
    address: ServerAddress
    name_there: str

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> object:
        """Call it, bounded a little more tightly than the tool runner does.

        Only of a tool that changes nothing is it safe to say that a call which was
        cut has failed.
        """
        report = health.reporter(self.server_id, self.address)
        try:
            outcome = await call_tool(
                self.address, self.name_there, arguments, report=report
            )
        except ServerError as error:
            if error.was_sent and self.has_effects:
                raise UnknownOutcomeError(str(error)) from error
            raise ToolError(str(error)) from error
        if outcome.is_error:
            raise ToolError(outcome.text)
        return outcome.text


def wire_name(slug: str, name: str) -> str:
    """Return the name under which a server's tool is offered.

    A slug has no underscore, so that no two servers share a name; one that had to be
    changed ends with a mark of what it was.
    """
    whole = f"{slug}__{name}"
    fit = UNFIT_IN_NAMES.sub("_", whole)
    if fit == whole and len(fit) <= NAME_LENGTH:
        return fit
    mark = f"-{sha256(whole.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return fit[: NAME_LENGTH - len(mark)] + mark


def tools_of_servers() -> Iterator[tuple[McpTool, str]]:
    """Yield the tools of the enabled servers, each with its server's policy.

    A server of which nothing is known yet is asked in the background.
    """
    for server in ToolServer.objects.enabled():
        if server.wants_trying:
            health.check_soon(server)
        for listed in server.tools:
            yield _tool(server, listed), server.policy


def _tool(server: ToolServer, listed: Mapping[str, Any]) -> McpTool:
    return McpTool(
        name=wire_name(server.slug, listed["name"]),
        description=listed["description"],
        parameters=listed["schema"],
        has_effects=not listed["is_read_only"],
        server_id=server.pk,
        address=health.address_of(server),
        name_there=listed["name"],
    )
