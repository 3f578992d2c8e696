"""The tools that one round may use, and on what terms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from django.db.models import F

from threads.models import Agent, ToolRule
from threads.tools.mcp.tools import tools_of_servers
from threads.tools.registry import Tool, registered

Policy = ToolRule.Policy


@dataclass(frozen=True, slots=True)
class Toolset:
    """Tools by name. One that is denied is not among them."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    asked_first: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """The names of the tools, in the order in which they are offered."""
        return sorted(self.tools)

    def get(self, name: str) -> Tool | None:
        """Return a tool, if this round has it."""
        return self.tools.get(name)

    def must_ask(self, name: str) -> bool:
        """Tell whether a person is to allow each call of this tool."""
        return name in self.asked_first

    def has_effects(self, name: str) -> bool:
        """Tell whether a tool changes something outside; an unknown one does nothing."""
        tool = self.tools.get(name)
        return tool is not None and tool.has_effects

    def offers(self) -> list[dict[str, object]]:
        """Return every tool as a request carries it; always in the same order (D9)."""
        return [
            {
                "type": "function",
                "function": {
                    "name": name,
                    "description": self.tools[name].description,
                    "parameters": dict(self.tools[name].parameters),
                },
            }
            for name in self.names
        ]


def toolset_for(agent: Agent | None) -> Toolset:
    """Return the tools of this site as an agent may use them.

    A rule of the agent holds before a rule for all agents. Without one, a tool of ours
    that changes something is asked about first and any other is allowed; for a tool of
    a server the server's own policy holds.
    """
    rules = _rules(agent)
    tools, asked_first = dict[str, Tool](), set[str]()
    for tool, default in _offered():
        policy = rules.get(tool.name) or default
        if policy == Policy.DENY or tool.name in tools:
            continue
        tools[tool.name] = tool
        if policy == Policy.ASK:
            asked_first.add(tool.name)
    return Toolset(tools, frozenset(asked_first))


def known_tools() -> list[str]:
    """Return the names of all tools that there are, whoever may use them."""
    return sorted({tool.name for tool, _ in _offered()})


def _offered() -> Iterator[tuple[Tool, str]]:
    """Yield every tool with what holds for it where there is no rule."""
    for tool in registered().values():
        yield tool, Policy.ASK if tool.has_effects else Policy.ALLOW
    yield from tools_of_servers()


def _rules(agent: Agent | None) -> dict[str, str]:
    mine = ToolRule.objects.filter(agent=agent) | ToolRule.objects.filter(agent=None)
    # The agent's own come last, and so prevail.
    rows = mine.order_by(F("agent").asc(nulls_first=True))
    return dict(rows.values_list("tool", "policy"))
