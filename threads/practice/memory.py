"""How far a script has come with a request, for the models that fail only once."""

import time
from collections import OrderedDict
from collections.abc import Callable


class TurnMemory:
    """Turns by fingerprint; forgets the oldest beyond `capacity`, and all in time."""

    def __init__(
        self,
        *,
        capacity: int = 1024,
        seconds: float = 900.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._capacity = capacity
        self._seconds = seconds
        self._clock = clock
        self._turns: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._turns)

    def recall(self, fingerprint: str) -> int:
        """The turn that this request has reached; 0 when it is new or forgotten."""
        self._forget_the_old()
        turn, _ = self._turns.get(fingerprint, (0, 0.0))
        return turn

    def keep(self, fingerprint: str, turn: int) -> None:
        """Remember the turn; turn 0 is what a new request has, so it is forgotten."""
        self._turns.pop(fingerprint, None)
        if turn:
            self._turns[fingerprint] = (turn, self._clock())
        self._forget_the_old()

    def _forget_the_old(self) -> None:
        oldest_allowed = self._clock() - self._seconds
        while self._turns:
            fingerprint, (_, kept_at) = next(iter(self._turns.items()))
            if len(self._turns) <= self._capacity and kept_at >= oldest_allowed:
                return
            del self._turns[fingerprint]
