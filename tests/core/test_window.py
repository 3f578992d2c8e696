"""What is left of a conversation that is too long is still a conversation."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threads.core.window import TooLong, fit

SYSTEM: dict[str, Any] = {"role": "system", "content": "s"}
USER: dict[str, Any] = {"role": "user", "content": "u"}
ANSWER: dict[str, Any] = {"role": "assistant", "content": "a"}


def asking(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": each} for each in ids]}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "r"}


OLDER = [USER, asking("1", "2"), result("1"), result("2"), ANSWER, USER, ANSWER]
NOW = [USER, asking("3"), result("3")]
WHOLE = [SYSTEM, *OLDER, *NOW]


@pytest.mark.parametrize(
    ("room", "first", "left_out", "too_long"),
    [
        (11, 1, 0, None),
        (10, 6, 5, None),
        (6, 6, 5, None),
        (5, 8, 7, None),
        (4, 8, 7, None),
        (3, 8, 7, TooLong.RESULTS),
        (1, 8, 7, TooLong.RESULTS),
        (0, 8, 7, TooLong.SITE),
        (-9, 8, 7, TooLong.SITE),
    ],
)
def test_whole_exchanges_go_the_oldest_first(
    room: int, first: int, left_out: int, too_long: TooLong | None
) -> None:
    chosen = fit(WHOLE, [1] * len(WHOLE), room=room)

    assert chosen.places == (0, *range(first, len(WHOLE)))
    assert (chosen.left_out, chosen.too_long) == (left_out, too_long)


@pytest.mark.parametrize(
    ("sizes", "blamed"),
    [
        ([5, 1, 30, 1], TooLong.MESSAGE),
        ([5, 1, 1, 30], TooLong.RESULTS),
        ([30, 1, 1, 1], TooLong.SITE),
    ],
)
def test_it_is_said_what_is_too_long(sizes: list[int], blamed: TooLong) -> None:
    messages = [SYSTEM, ANSWER, USER, asking("1")]

    assert fit(messages, sizes, room=20).too_long is blamed


def test_a_conversation_without_a_question_is_left_as_it_is() -> None:
    assert fit([ANSWER, ANSWER], [5, 5], room=1).places == (0, 1)
    assert fit([], [], room=1).places == ()


@st.composite
def exchanges(draw: st.DrawFn, number: int) -> list[dict[str, Any]]:
    messages = [dict(USER, number=number)]
    for call in range(draw(st.integers(0, 2))):
        ids = [f"{number}-{call}-{n}" for n in range(draw(st.integers(1, 3)))]
        messages += [asking(*ids), *map(result, ids)]
    if draw(st.booleans()):
        messages.append(ANSWER)
    return messages


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Some begin with instructions, some in the middle of an answer."""
    messages: list[dict[str, Any]] = []
    if draw(st.booleans()):
        messages.append(SYSTEM)
    if draw(st.booleans()):
        messages.append(ANSWER)
    for number in range(draw(st.integers(1, 5))):
        messages += draw(exchanges(number))
    return messages


@given(st.data())
def test_what_is_left_is_always_well_formed(data: st.DataObject) -> None:
    messages = data.draw(conversations())
    sizes = data.draw(
        st.lists(
            st.integers(0, 9), min_size=len(messages), max_size=len(messages)
        )
    )  # fmt: skip
    room = data.draw(st.integers(-5, sum(sizes) + 1))
    last = max(n for n, message in enumerate(messages) if message["role"] == "user")

    chosen = fit(messages, sizes, room=room)

    left = [messages[place] for place in chosen.places]
    assert list(chosen.places) == sorted(set(chosen.places))
    assert chosen.left_out == len(messages) - len(left)
    asked = [call["id"] for each in left for call in each.get("tool_calls", [])]
    assert asked == [each["tool_call_id"] for each in left if each["role"] == "tool"]
    assert set(range(last, len(messages))) <= set(chosen.places)
    assert left.count(SYSTEM) == messages.count(SYSTEM)
    used = sum(sizes[place] for place in chosen.places)
    assert (used <= room) is (chosen.too_long is None)
    if sum(sizes) <= room:
        assert left == messages
