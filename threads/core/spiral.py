"""Telling a model that goes round in circles from one that works (requirement F7).

Counts per round, and nothing is forgotten between calls: who goes on with a round
in another process feeds what the ledger has of it first.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from threads.core.endings import Condition, Ending, Verdict

MOST_SAME_CALLS = 8
MOST_SAME_ERRORS = 3
MOST_SAME_ERRORS_ANY_ARGUMENTS = 6

SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        "repeated_tool_call": "round.same_call",
        "repeated_tool_error": "round.same_error",
        "repeated_tool_error_any_args": "round.same_error",
    }
)


@dataclass(slots=True)
class Spiral:
    """What a round's tools were asked, and how often they failed in the same way."""

    _calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    _errors: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _any_errors: Counter[tuple[str, str]] = field(default_factory=Counter)

    def ask(self, name: str, arguments: str) -> Verdict | None:
        """Count a call before it is run; the verdict if it is one too many."""
        asked = (name, canonical(arguments))
        self._calls[asked] += 1
        if self._calls[asked] >= MOST_SAME_CALLS:
            return stop("repeated_tool_call", name)
        return None

    def fail(self, name: str, arguments: str, error: str) -> Verdict | None:
        """Count a call that did not end well; the verdict if it failed too often."""
        same = (name, canonical(arguments), error)
        self._errors[same] += 1
        self._any_errors[name, error] += 1
        if self._errors[same] >= MOST_SAME_ERRORS:
            return stop("repeated_tool_error", name)
        if self._any_errors[name, error] >= MOST_SAME_ERRORS_ANY_ARGUMENTS:
            return stop("repeated_tool_error_any_args", name)
        return None


def canonical(arguments: str) -> str:
    """Write arguments so that those which mean the same read the same."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def stop(code: str, tool: str) -> Verdict:
    """Return the verdict that ends a round which goes round in circles.

    Never transient: the same message would go the same way.
    """
    return Verdict(
        code=code,
        ending=Ending.INTERRUPTED,
        condition=Condition.REQUEST,
        sentence_key=SENTENCES[code],
        params={"tool": tool},
    )
