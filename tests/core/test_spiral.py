"""When a model goes round in circles with its tools (requirement F7)."""

import pytest

from threads.core.spiral import Spiral


def test_the_eighth_call_of_the_same_is_one_too_many() -> None:
    spiral = Spiral()
    alike = ['{"a": 1, "b": 2}', '{"b":2,"a":1}'] * 4

    found = [spiral.ask("look", arguments) for arguments in alike]

    assert found[:7] == [None] * 7
    assert found[7] is not None
    assert (found[7].code, found[7].transient) == ("repeated_tool_call", False)
    assert found[7].params == {"tool": "look"}


def test_the_third_failure_of_the_same_call_is_one_too_many() -> None:
    spiral = Spiral()

    found = [spiral.fail("look", '{"a": 1}', "no such thing") for _ in range(3)]

    assert found[:2] == [None, None]
    assert found[2] is not None
    assert found[2].code == "repeated_tool_error"


def test_the_sixth_same_failure_of_any_call_is_one_too_many() -> None:
    spiral = Spiral()

    found = [spiral.fail("look", f'{{"a": {n}}}', "refused") for n in range(6)]

    assert found[:5] == [None] * 5
    assert found[5] is not None
    assert found[5].code == "repeated_tool_error_any_args"


@pytest.mark.parametrize("fails", [False, True])
def test_117_calls_that_differ_are_work(fails: bool) -> None:
    spiral = Spiral()

    for n in range(117):
        assert spiral.ask("look", f'{{"page": {n}}}') is None
        if fails:
            assert spiral.fail("look", f'{{"page": {n}}}', f"page {n} is gone") is None


def test_what_different_tools_are_asked_is_counted_apart() -> None:
    spiral = Spiral()

    for n in range(7):
        assert spiral.ask("look", "{}") is None
        assert spiral.ask("find", "{}") is None
        assert spiral.fail(f"tool {n // 2}", "{}", "down") is None
