"""What a gateway's list of models says of them; each gateway has words of its own."""

from collections.abc import Mapping
from dataclasses import dataclass

WINDOWS = (
    *("context_length", "context_window", "max_model_len", "max_context_length"),
    *("max_input_tokens", "max_context_tokens"),
)
"""OpenRouter and Together, Groq, vLLM, Mistral and LM Studio; Anthropic and others."""

MOST_TOKENS = 2**31 - 1
"""More is no window, and no number that the database takes."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One model of a list; None is what the list does not say.

    `must_reason` is a model that refuses to be told not to (classifier, Q2).
    """

    wire_id: str
    context_window: int | None = None
    uses_tools: bool | None = None
    must_reason: bool = False


def models_in(listed: object) -> list[ListedModel]:
    """Read a list; what is none lists nothing."""
    rows = listed.get("data") if isinstance(listed, Mapping) else None
    return [
        ListedModel(row["id"], _window(row), _uses_tools(row), _must_reason(row))
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, Mapping) and row.get("id") and isinstance(row["id"], str)
    ]


def _window(row: Mapping[str, object]) -> int | None:
    for name in WINDOWS:
        tokens = row.get(name)
        if type(tokens) is int and 0 < tokens <= MOST_TOKENS:
            return tokens
    return None


def _uses_tools(row: Mapping[str, object]) -> bool | None:
    parameters, able = row.get("supported_parameters"), row.get("capabilities")
    if isinstance(parameters, list) and parameters:
        return "tools" in parameters
    calls = able.get("function_calling") if isinstance(able, Mapping) else None
    return calls if isinstance(calls, bool) else None


def _must_reason(row: Mapping[str, object]) -> bool:
    reasoning = row.get("reasoning")
    return isinstance(reasoning, Mapping) and reasoning.get("mandatory") is True
