"""Tokens and counts."""

import asyncio

import pytest

from tests.virtualtime import VirtualTimeLoop
from threads.practice.players import Pacer
from threads.practice.wire import encode, estimate_tokens, tokens_of


@pytest.mark.parametrize(
    "text", ["", " ", "\n\n# One\n\n  two  \n", "a" * 50, "日本語の文章です", "x \n"]
)
def test_tokens_put_together_are_the_text(text: str) -> None:
    tokens = list(tokens_of(text))

    assert "".join(tokens) == text
    assert all(len(token.strip()) <= 6 for token in tokens)


def test_tokens_carry_the_space_before_them() -> None:
    assert list(tokens_of("streams end badly")) == ["stream", "s", " end", " badly"]


def test_counts_are_plausible() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("one two three four five six seven eight nine ten") == 13


def test_what_utf8_cannot_carry_becomes_a_question_mark() -> None:
    assert encode({"a": "é\ud83d"}) == '{"a":"é?"}'.encode()


def test_the_pace_is_kept_although_each_wake_up_is_late() -> None:
    async def spent() -> float:
        loop = asyncio.get_running_loop()
        pacer, started = Pacer(0.1), loop.time()
        for _ in range(50):
            await pacer.wait(0.04)
            await asyncio.sleep(0.001)
        return loop.time() - started

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(spent()) == pytest.approx(0.2, abs=0.005)


def test_a_pace_of_nought_never_waits_but_lets_others_run() -> None:
    async def spent() -> tuple[float, list[int]]:
        loop = asyncio.get_running_loop()
        pacer, started, ran = Pacer(0), loop.time(), list[int]()
        loop.call_soon(ran.append, 1)
        for _ in range(50):
            await pacer.wait(1000)
        return loop.time() - started, ran

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(spent()) == (0, [1])
