"""The memory of the models that fail only once."""

from threads.practice.memory import TurnMemory


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_turn_is_recalled_until_it_is_put_back_to_the_first() -> None:
    memory = TurnMemory()

    memory.keep("a", 1)
    kept = memory.recall("a")
    memory.keep("a", 0)

    assert (kept, memory.recall("a"), memory.recall("b")) == (1, 0, 0)
    assert len(memory) == 0


def test_the_oldest_is_forgotten_when_there_are_too_many() -> None:
    memory = TurnMemory(capacity=2)

    for name in ("a", "b", "a", "c"):
        memory.keep(name, 1)

    assert [memory.recall(name) for name in ("a", "b", "c")] == [1, 0, 1]


def test_everything_is_forgotten_in_time() -> None:
    clock = Clock()
    memory = TurnMemory(seconds=10, clock=clock)

    memory.keep("a", 1)
    clock.now = 10
    memory.keep("b", 1)
    at_the_bound = memory.recall("a")
    clock.now = 11

    assert at_the_bound == 1
    assert [memory.recall(name) for name in ("a", "b")] == [0, 1]
    assert len(memory) == 1
