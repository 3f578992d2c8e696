"""Another model than the one asked for, or only another way to write it."""

import pytest

from tests.cases import cases
from threads.core.substitution import is_substitute

SAME = [
    ("gpt-5", "gpt-5"),
    ("gpt-5", "GPT-5"),
    ("gpt-5", "gpt-5-2026-01-01"),
    ("openai/gpt-5", "gpt-5"),
    ("gpt-5", "openai/gpt-5"),
    ("openai/gpt-5", "gpt-5-2026-01-01"),
    ("openai/gpt-5", "azure/gpt-5"),
    ("gpt-5-2026-01-01", "gpt-5"),
    ("claude-sonnet-4-latest", "claude-sonnet-4-20260114"),
    ("claude-3-opus", "claude-3-opus@20240229"),
    ("gpt-4", "gpt-4-0613"),
    ("gemini-1.5-pro", "models/gemini-1.5-pro-002"),
    ("some-flash", "some-flash-05-20"),
    ("command-r", "command-r-08-2024"),
    ("deepseek/deepseek-r1:free", "deepseek/deepseek-r1"),
    ("llama3", "llama3:latest"),
    ("llama3:8b", "llama3:8b"),
    ("accounts/fireworks/models/qwen2p5", "qwen2p5"),
    ("openrouter/auto", "anthropic/claude-sonnet-4"),
    ("gpt-5", ""),
    ("", "gpt-5"),
    ("gpt-5", "  "),
]
OTHER = [
    ("gpt-5", "gpt-5-mini"),
    ("gpt-5", "gpt-4o"),
    ("gpt-5-mini", "gpt-5"),
    ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06"),
    ("claude-opus-4", "claude-opus-4-1"),
    ("openai/gpt-5", "openai/gpt-5-mini-2026-01-01"),
    ("llama3:8b", "llama3:70b"),
    ("qwen-2.5-7b", "qwen-2.5-72b"),
    ("a/gpt-5", "a/b"),
    ("gpt-5", "2026-01-01"),
]


@cases(("requested", "served"), SAME)
def test_the_same_model_in_other_words_is_no_substitute(
    requested: str, served: str
) -> None:
    assert not is_substitute(requested, served)


@pytest.mark.parametrize(("requested", "served"), OTHER)
def test_another_model_is_a_substitute(requested: str, served: str) -> None:
    assert is_substitute(requested, served)
