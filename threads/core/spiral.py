"""Telling a model that goes round in circles from one that works (requirement F7).

Counts per round, and nothing is forgotten between calls: who goes on with a round
in another process feeds what the ledger has of it first.
"""

import json
from collections import Counter
from dataclasses import dataclass, field, replace

from threads.core.endings import Condition, Ending, Verdict

MOST_SAME_CALLS = 8
MOST_SAME_ERRORS = 3
MOST_SAME_ERRORS_ANY_ARGUMENTS = 6

SAME_CALL = Verdict(
    code="repeated_tool_call",
    ending=Ending.INTERRUPTED,
    condition=Condition.REQUEST,
    sentence_key="round.same_call",
)
SAME_ERROR = Verdict(
    code="repeated_tool_error",
    ending=Ending.INTERRUPTED,
    condition=Condition.REQUEST,
    sentence_key="round.same_error",
)
SAME_ERROR_ANY_ARGUMENTS = Verdict(
    code="repeated_tool_error_any_args",
    ending=Ending.INTERRUPTED,
    condition=Condition.REQUEST,
    sentence_key="round.same_error",
)
"""Never transient: the same message would go the same way."""


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
            return replace(SAME_CALL, params={"tool": name})
        return None

    def fail(self, name: str, arguments: str, error: str) -> Verdict | None:
        """Count a call that did not end well; the verdict if it failed too often."""
        same = (name, canonical(arguments), error)
        self._errors[same] += 1
        self._any_errors[name, error] += 1
        if self._errors[same] >= MOST_SAME_ERRORS:
            return replace(SAME_ERROR, params={"tool": name})
        if self._any_errors[name, error] >= MOST_SAME_ERRORS_ANY_ARGUMENTS:
            return replace(SAME_ERROR_ANY_ARGUMENTS, params={"tool": name})
        return None


def canonical(arguments: str) -> str:
    """Write arguments so that those which mean the same read the same."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments
