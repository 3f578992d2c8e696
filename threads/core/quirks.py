"""What models want a request to look like, as data (requirement F13).

A row says what wire ids it is about and what differs there; a request is shaped
from the rows that match and from what an operator said of the model. Nothing is
tried and then sent in another shape: a parameter that a gateway refuses is told as
a setting that does not fit (classifier, Q7).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

NEEDED, OMIT = "", "omit"
"""Words of an operator on effort that are none: what the model needs; never said."""

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

PROTECTED = frozenset({"model", "messages", "stream", "tools"})
"""What is ours to say, whatever an operator adds to a request."""

ONE_OF = (
    frozenset({"reasoning", "reasoning_effort"}),
    frozenset({"max_tokens", "max_completion_tokens"}),
)
"""Names of one thing: where an operator's own is added, ours is not sent (Q3)."""


class Sampling(StrEnum):
    """Which temperature a model takes."""

    ANY = "any"
    FIXED_WHEN_REASONING = "fixed_when_reasoning"
    FIXED = "fixed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Quirks:
    """What differs in a request to a model.

    `effort_with_tools` has to be said as soon as tools are offered, since leaving
    it out means the model's own, which is refused as well (Q1). `highest_effort`
    is said in place of any above it. `nests_effort` is OpenRouter's form (Q3).
    """

    effort_with_tools: str = ""
    highest_effort: str = "max"
    nests_effort: bool = False
    limit_name: str = "max_tokens"
    sampling: Sampling = Sampling.ANY
    sends_reasoning_back: bool = False


@dataclass(frozen=True, slots=True)
class Override:
    """What an operator says of one model; empty leaves it to the rows."""

    effort: str = NEEDED
    max_output_tokens: int | None = None
    temperature: float | None = None
    extras: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One quirk: a pattern over the whole wire id or host, and what differs."""

    pattern: re.Pattern[str]
    asks: Mapping[str, Any]


def _row(pattern: str, **asks: object) -> Row:
    return Row(re.compile(pattern, re.IGNORECASE), asks)


_OPENAI = r"(?:openrouter/|azure/)?(?:openai/)?"
_CLAUDE = r"(?:.*[/.])?claude-"

MODELS = (
    # Q1, Q5. Where tools are offered on Chat Completions, these refuse every effort
    # but "none", their own default included (openai-openapi #541, pipecat #4043).
    _row(
        rf"{_OPENAI}(?:gpt-5|o\d).*",
        effort_with_tools="none",
        highest_effort="xhigh",
        limit_name="max_completion_tokens",
        sampling=Sampling.FIXED,
    ),
    # Q2. These know no "none": the chat models have no effort at all, the pro
    # models only "high" (the vendor's reference of `reasoning_effort`).
    _row(rf"{_OPENAI}gpt-5(?:\.\d+)?-(?:chat|pro).*", effort_with_tools=""),
    _row(rf"{_OPENAI}o\d-pro.*", effort_with_tools=""),
    # Q6. Samples as it likes; the earlier ones do so while they think.
    _row(rf"{_CLAUDE}.*", sampling=Sampling.FIXED_WHEN_REASONING),
    _row(
        rf"{_CLAUDE}(?:opus-4[.-](?:[7-9]|[1-9]\d)(?!\d)|(?:opus|sonnet|fable)-[5-9](?!\d)).*",
        sampling=Sampling.REFUSED,
    ),
    # Q8. What was thought before a tool call belongs to the call.
    _row(r"(?:.*/)?deepseek-(?:chat|reasoner|v3\.[2-9]|v[4-9]).*", sends_reasoning_back=True),
    _row(r"(?:.*/)?kimi-.*", sends_reasoning_back=True),
)  # fmt: skip
"""Of several rows that match, the later says more of the same model."""

GATEWAYS = (_row(r"(?:.*\.)?openrouter\.ai(?::\d+)?", nests_effort=True),)


def quirks_of(wire_id: str, host: str = "") -> Quirks:
    """Return what differs for a model at a gateway's host."""
    quirks = Quirks()
    for rows, name in ((MODELS, wire_id), (GATEWAYS, host)):
        for row in rows:
            if row.pattern.fullmatch(name):
                quirks = replace(quirks, **row.asks)
    return quirks


def shape(quirks: Quirks, override: Override, *, has_tools: bool) -> dict[str, object]:
    """Return the parameters of a request beside what is asked; the same for the same.

    An operator's extras come last and stand as they were written, except for what
    is ours to say.
    """
    shaped: dict[str, object] = {}
    effort = _effort(quirks, override, has_tools=has_tools)
    if effort and quirks.nests_effort:
        shaped["reasoning"] = {"effort": effort}
    elif effort:
        shaped["reasoning_effort"] = effort
    if override.max_output_tokens is not None:
        shaped[quirks.limit_name] = override.max_output_tokens
    temperature = override.temperature
    if temperature is not None and _takes(quirks.sampling, temperature, effort):
        shaped["temperature"] = temperature
    extras = {
        name: value for name, value in override.extras.items() if name not in PROTECTED
    }
    for names in ONE_OF:
        if not names.isdisjoint(extras):
            shaped = {n: value for n, value in shaped.items() if n not in names}
    return shaped | extras


def _effort(quirks: Quirks, override: Override, *, has_tools: bool) -> str:
    """The effort to say; an operator's word stands, whatever the rows say (Q4)."""
    match override.effort:
        case "omit":
            return ""
        case "":
            return quirks.effort_with_tools if has_tools else ""
        case effort if effort in EFFORTS:
            highest = EFFORTS.index(quirks.highest_effort)
            return EFFORTS[min(EFFORTS.index(effort), highest)]
        case effort:
            return effort


def _takes(sampling: Sampling, temperature: float, effort: str) -> bool:
    match sampling:
        case Sampling.ANY:
            return True
        case Sampling.REFUSED:
            return False
        case Sampling.FIXED:
            return temperature == 1
        case Sampling.FIXED_WHEN_REASONING:
            return temperature == 1 or effort in ("", "none")
