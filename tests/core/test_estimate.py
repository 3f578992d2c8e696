"""Estimated tokens: a rule of thumb, which is never zero for a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threads.core.estimate import (
    TOKENS_A_MESSAGE,
    tokens_in,
    tokens_of_messages,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("four", 1),
        ("fours", 2),
        ("a" * 400, 100),
        ("日本語", 2),
        ("日本語" * 100, 200),
        ("four日本語", 3),
    ],
)
def test_letters_make_tokens(text: str, tokens: int) -> None:
    assert tokens_in(text) == tokens


@given(st.text(min_size=1), st.text())
def test_a_text_is_never_nothing_and_more_text_is_never_less(
    text: str, more: str
) -> None:
    assert 1 <= tokens_in(text) <= tokens_in(text + more)


def test_messages_count_with_their_roles_and_tool_calls() -> None:
    question = {"role": "user", "content": "a" * 40}
    asking = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}],
    }

    assert tokens_of_messages([]) == 0
    assert tokens_of_messages([question]) == TOKENS_A_MESSAGE + 1 + 10
    assert tokens_of_messages([question, asking]) == (
        tokens_of_messages([question]) + TOKENS_A_MESSAGE + 3 + 1 + 1 + 1
    )
