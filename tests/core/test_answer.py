"""Tool calls and usage of one attempt, put together from fragments."""

import pytest

from threads.core.answer import Accumulator, ToolCallAssembler
from threads.core.events import (
    Envelope,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
    UsageReport,
    UsageSource,
)

Fragment = tuple[int | None, str | None, str | None, str | dict[str, object] | None]
"""Index, id, name, arguments."""


def assembled(*fragments: Fragment) -> tuple[ToolCall, ...]:
    assembler = ToolCallAssembler()
    for fragment in fragments:
        assembler.feed(ToolCallDelta(*fragment))
    return assembler.finish()


@pytest.mark.parametrize(
    ("fragments", "calls"),
    [
        pytest.param(
            [(0, "a", "f", ""), (0, None, None, '{"q":'), (0, None, None, "1}")],
            [("a", "f", '{"q":1}')],
            id="usual",
        ),
        pytest.param(
            [
                (0, "a", "f", ""),
                (1, "b", "g", ""),
                (0, None, None, '{"q":1}'),
                (1, None, None, '{"q":'),
                (1, None, None, "2}"),
            ],
            [("a", "f", '{"q":1}'), ("b", "g", '{"q":2}')],
            id="interleaved",
        ),
        pytest.param(
            [
                (0, "a", "f", '{"q":1}'),
                (0, "b", "g", ""),
                (1, None, None, '{"q":'),
                (1, None, None, "2}"),
            ],
            [("a", "f", '{"q":1}'), ("b", "g", '{"q":2}')],
            id="the second call at the first one's index, its arguments at their own",
        ),
        pytest.param(
            [(0, "a", "f", '{"q":1}'), (0, "b", "f", '{"q":2}')],
            [("a", "f", '{"q":1}'), ("b", "f", '{"q":2}')],
            id="same index, different ids",
        ),
        pytest.param(
            [
                (0, "a", "f", '{"q":'),
                (0, None, None, "1}"),
                (0, "b", "f", '{"q":'),
                (0, None, None, "2}"),
            ],
            [("a", "f", '{"q":1}'), ("b", "f", '{"q":2}')],
            id="same index, different ids, in fragments",
        ),
        pytest.param(
            [(0, "a", "f", ""), (0, "x", None, '{"q":'), (0, "y", None, "1}")],
            [("a", "f", '{"q":1}')],
            id="a new id on every fragment",
        ),
        pytest.param(
            [(None, "a", "f", '{"q":'), (None, None, None, "1}")],
            [("a", "f", '{"q":1}')],
            id="no index",
        ),
        pytest.param(
            [(None, "a", "f", "{}"), (None, "b", "g", "{}")],
            [("a", "f", "{}"), ("b", "g", "{}")],
            id="no index, two calls",
        ),
        pytest.param(
            [
                (None, "a", "f", '{"q":'),
                (None, "b", "g", '{"q":'),
                (None, "a", None, "1}"),
                (None, "b", None, "2}"),
            ],
            [("a", "f", '{"q":1}'), ("b", "g", '{"q":2}')],
            id="no index, interleaved by id",
        ),
        pytest.param(
            [(None, None, "f", '{"q":1}'), (None, None, "f", '{"q":2}')],
            [("call_1", "f", '{"q":1}'), ("call_2", "f", '{"q":2}')],
            id="neither index nor id",
        ),
        pytest.param(
            [(0, None, "f", {"q": 1}), (0, None, "g", {})],
            [("call_1", "f", '{"q": 1}'), ("call_2", "g", "{}")],
            id="objects at one index without ids",
        ),
        pytest.param(
            [
                (0, "a", "f", ""),
                (0, "a", "f", '{"q":'),
                (0, "a", "f", "1}"),
                (0, "a", "f", ""),
            ],
            [("a", "f", '{"q":1}')],
            id="name and id on every fragment",
        ),
        pytest.param(
            [(0, None, "f", '{"q":'), (0, None, "f", "1}")],
            [("call_1", "f", '{"q":1}')],
            id="name on every fragment, no id",
        ),
        pytest.param(
            [(0, "a", None, None), (0, None, "f", "{}")],
            [("a", "f", "{}")],
            id="the name comes later",
        ),
        pytest.param(
            [(0, "a", "f", ""), (1, "a", None, '{"q":1}')],
            [("a", "f", '{"q":1}')],
            id="an id that goes on at another index",
        ),
        pytest.param(
            [(0, "a", "f", "{}"), (1, "a", "g", "{}")],
            [("a", "f", "{}"), ("a_2", "g", "{}")],
            id="one id for two calls",
        ),
        pytest.param(
            [(0, "a", "f", '{"q":1}'), (0, "a", "f", '{"q":1}')],
            [("a", "f", '{"q":1}')],
            id="the whole call twice",
        ),
        pytest.param(
            [(0, "a", "f", {"q": 1}), (0, "a", "f", {"q": 1})],
            [("a", "f", '{"q": 1}')],
            id="the whole call twice, as an object",
        ),
        pytest.param(
            [(0, "a", "get_", None), (0, None, "time", None), (0, None, None, "{}")],
            [("a", "get_time", "{}")],
            id="a name in pieces",
        ),
        pytest.param(
            [(0, "a", "get", None), (0, "a", "get_time", None), (0, "a", None, "{}")],
            [("a", "get_time", "{}")],
            id="a name that grows",
        ),
        pytest.param([(0, "a", "f", None)], [("a", "f", "{}")], id="no arguments"),
        pytest.param([(0, "a", "f", " \n")], [("a", "f", "{}")], id="blank arguments"),
        pytest.param(
            [(3, "a", "f", "{}"), (1, "b", "g", "{}")],
            [("a", "f", "{}"), ("b", "g", "{}")],
            id="in the order of their beginning",
        ),
    ],
)
def test_fragments_become_calls(
    fragments: list[Fragment], calls: list[tuple[str, str, str]]
) -> None:
    found = assembled(*fragments)

    assert [(call.id, call.name, call.arguments) for call in found] == calls
    assert [call.problem for call in found] == [""] * len(calls)


@pytest.mark.parametrize(
    ("fragment", "problem"),
    [
        ((0, "a", "f", '{"q":'), "the arguments are not complete JSON"),
        ((0, "a", "f", "{}{}"), "the arguments are not complete JSON"),
        ((0, "a", "f", "[" * 100_000), "the arguments are not complete JSON"),
        ((0, "a", "f", "[1]"), "the arguments are not a JSON object"),
        ((0, "a", "f", '"text"'), "the arguments are not a JSON object"),
        ((0, "a", "f", '{"q": NaN}'), "the arguments are not complete JSON"),
        ((0, "a", "f", "true"), "the arguments are not a JSON object"),
        ((0, "a", None, "{}"), "the call names no tool"),
    ],
    ids=range(8),
)
def test_a_call_that_must_not_run_says_why(fragment: Fragment, problem: str) -> None:
    (call,) = assembled(fragment)

    assert call.problem == problem


def test_ids_names_and_arguments_can_be_stored_and_sent() -> None:
    (call,) = assembled((0, "a\0\ud83d", "f\0", {"q": "\ud83d"}))

    assert (call.id, call.name) == ("a\ufffd", "f")
    assert call.arguments == '{"q": "\ufffd"}'


def test_an_id_of_nothing_but_nul_is_replaced() -> None:
    (call,) = assembled((0, "\0", "f", "{}"))

    assert call.id == "call_1"


def test_an_assembler_is_true_once_anything_came() -> None:
    assembler = ToolCallAssembler()

    assert not assembler
    assembler.feed(ToolCallDelta(0, None, None, None))
    assert assembler


def test_text_and_reasoning_add_up() -> None:
    answer = Accumulator()

    for event in (
        TextDelta("Hel"),
        ReasoningDelta("hm"),
        Envelope("m"),
        TextDelta("lo 🙂"),
    ):
        answer.feed(event)

    assert (answer.text, answer.text_length) == ("Hello 🙂", 7)
    assert (answer.reasoning, answer.reasoning_length) == ("hm", 2)


def test_the_last_usage_wins_and_none_is_not_zero() -> None:
    answer = Accumulator()

    assert answer.usage == Usage(None, None, UsageSource.UNKNOWN)
    answer.feed(UsageReport(3, 1))
    answer.feed(UsageReport(3, 9))
    assert answer.usage == Usage(3, 9, UsageSource.PROVIDER)
