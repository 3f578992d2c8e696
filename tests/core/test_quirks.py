"""What differs in a request from model to model: rows, and the operator's word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threads.core.quirks import (
    EFFORTS,
    OMIT,
    PROTECTED,
    Override,
    Quirks,
    quirks_of,
    shape,
)

OPENROUTER = "openrouter.ai"
NONE = {"reasoning_effort": "none"}


@pytest.mark.parametrize(
    ("wire_id", "host", "with_tools"),
    [
        ("gpt-5", "", NONE),
        ("gpt-5.4-mini", "", NONE),
        ("GPT-5.2", "", NONE),
        ("openai/gpt-5.1", "", NONE),
        ("openrouter/openai/gpt-5.1", "", NONE),
        ("o3", "", NONE),
        ("openai/o4-mini", "", NONE),
        ("openai/gpt-5.1", OPENROUTER, {"reasoning": {"effort": "none"}}),
        ("openai/o3", "eu.openrouter.ai:443", {"reasoning": {"effort": "none"}}),
        ("openai/gpt-5.1", "openrouter.ai.example.com", NONE),
        # Those that know no "none", and those that only look alike.
        ("gpt-5-pro", "", {}),
        ("openai/gpt-5.2-pro", OPENROUTER, {}),
        ("o3-pro", "", {}),
        ("gpt-5-chat-latest", "", {}),
        ("gpt-5.1-chat-latest", "", {}),
        ("kimi-for-coding", "", {}),
        ("moonshotai/kimi-k2-thinking", OPENROUTER, {}),
        ("gpt-4o", "", {}),
        ("openai/gpt-oss-120b", "", {}),
        ("AIDC-AI/Marco-o1", "", {}),
        ("other/gpt-5", "", {}),
        ("olmo-3", "", {}),
        ("anthropic/claude-sonnet-5", "", {}),
        ("", "", {}),
    ],
)
def test_no_reasoning_is_asked_for_aloud_where_tools_are_offered(
    wire_id: str, host: str, with_tools: dict[str, object]
) -> None:
    quirks = quirks_of(wire_id, host)

    assert shape(quirks, Override(), has_tools=True) == with_tools
    assert shape(quirks, Override(), has_tools=False) == {}


@pytest.mark.parametrize(
    ("wire_id", "host", "effort", "said"),
    [
        ("gpt-5.4", "", "low", {"reasoning_effort": "low"}),
        ("gpt-5.4", "", "max", {"reasoning_effort": "xhigh"}),
        ("gpt-5.4", "", OMIT, {}),
        ("gpt-5-pro", "", "high", {"reasoning_effort": "high"}),
        ("openai/gpt-5.4", OPENROUTER, "max", {"reasoning": {"effort": "xhigh"}}),
        ("openai/gpt-5.4", OPENROUTER, OMIT, {}),
        ("deepseek-v4", "", "max", {"reasoning_effort": "max"}),
        ("kimi-for-coding", "", "minimal", {"reasoning_effort": "minimal"}),
        ("some/model", "", "none", NONE),
        ("some/model", "", "of-another-release", {"reasoning_effort": "of-another-release"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_tools", [True, False])
def test_an_operator_s_effort_stands_with_and_without_tools(
    wire_id: str, host: str, effort: str, said: dict[str, object], has_tools: bool
) -> None:
    quirks = quirks_of(wire_id, host)

    assert shape(quirks, Override(effort=effort), has_tools=has_tools) == said


@pytest.mark.parametrize(
    ("wire_id", "override", "said"),
    [
        ("some/model", Override(max_output_tokens=9), {"max_tokens": 9}),
        ("gpt-5.4", Override(max_output_tokens=9), {"max_completion_tokens": 9}),
        ("openai/o3", Override(max_output_tokens=9), {"max_completion_tokens": 9}),
        ("gpt-4o", Override(max_output_tokens=9), {"max_tokens": 9}),
        ("some/model", Override(temperature=0.2), {"temperature": 0.2}),
        ("some/model", Override(temperature=0.0), {"temperature": 0.0}),
        ("gpt-5.4", Override(temperature=0.2), {}),
        ("gpt-5.4", Override(temperature=1.0), {"temperature": 1.0}),
        ("claude-opus-4-7", Override(temperature=1.0), {}),
        ("anthropic/claude-opus-4.10", Override(temperature=0.2), {}),
        ("claude-opus-5", Override(temperature=0.2), {}),
        ("anthropic/claude-sonnet-5", Override(temperature=0.2), {}),
        ("claude-fable-5-20270101", Override(temperature=0.2), {}),
        ("us.anthropic.claude-sonnet-5-v1:0", Override(temperature=0.2), {}),
        ("claude-opus-4-6", Override(temperature=0.2), {"temperature": 0.2}),
        ("claude-opus-4-20250514", Override(temperature=0.2), {"temperature": 0.2}),
        ("claude-sonnet-4.5", Override(temperature=0.2), {"temperature": 0.2}),
        (
            "claude-sonnet-4.5",
            Override(effort="high", temperature=0.2),
            {"reasoning_effort": "high"},
        ),
        (
            "claude-sonnet-4.5",
            Override(effort="none", temperature=0.2),
            {"reasoning_effort": "none", "temperature": 0.2},
        ),
    ],
)
def test_limits_and_temperatures_are_said_as_the_model_takes_them(
    wire_id: str, override: Override, said: dict[str, object]
) -> None:
    assert shape(quirks_of(wire_id), override, has_tools=False) == said


@pytest.mark.parametrize(
    ("wire_id", "sends_back"),
    [
        ("deepseek-reasoner", True),
        ("deepseek-ai/DeepSeek-V3.2", True),
        ("deepseek/deepseek-v4-pro", True),
        ("moonshotai/kimi-k2-thinking", True),
        ("kimi-k2.5", True),
        ("deepseek-ai/DeepSeek-R1", False),
        ("deepseek-v3.1", False),
        ("gpt-5.4", False),
        ("some/model", False),
    ],
)
def test_what_was_thought_is_sent_back_to_those_who_want_it(
    wire_id: str, sends_back: bool
) -> None:
    assert quirks_of(wire_id).sends_reasoning_back is sends_back


def test_extras_come_last_and_take_the_place_of_what_they_name() -> None:
    extras: dict[str, object] = {
        "model": "other/model",
        "reasoning": {"max_tokens": 5},
        "temperature": None,
        "max_tokens": 7,
        "provider": {"order": ["a"]},
    }
    override = Override("low", max_output_tokens=9, temperature=1.0, extras=extras)

    said = shape(quirks_of("gpt-5.4"), override, has_tools=True)

    assert said == {name: extras[name] for name in extras if name != "model"}


anything = st.builds(
    Override,
    st.sampled_from(["", OMIT, *EFFORTS]),
    st.none() | st.integers(1, 10**6),
    st.none() | st.floats(0, 2),
    st.dictionaries(st.sampled_from([*PROTECTED, "top_p", "reasoning"]), st.none()),
)
wire_ids = st.sampled_from(
    ["some/model", "gpt-5.4", "gpt-5-pro", "claude-opus-5", "kimi-k2.5"]
)


@given(wire_ids, st.sampled_from(["", OPENROUTER]), anything, st.booleans())
def test_no_shape_touches_what_is_asked_or_says_one_thing_twice(
    wire_id: str, host: str, override: Override, has_tools: bool
) -> None:
    quirks = quirks_of(wire_id, host)

    said = shape(quirks, override, has_tools=has_tools)

    assert not PROTECTED & said.keys()
    assert not {"reasoning", "reasoning_effort"} <= said.keys()
    assert not {"max_tokens", "max_completion_tokens"} <= said.keys()
    assert list(said) == list(shape(quirks, override, has_tools=has_tools))
    assert shape(Quirks(), Override(), has_tools=has_tools) == {}
