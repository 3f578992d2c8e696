"""What must become of a round: worked out from what the gateway sent, and nothing else.

Written from the requirements (D2 to D22, E1 to E9, X2), not from the code: it knows
no journal, no frames and no decision function.
"""

import copy
import itertools
from dataclasses import replace
from typing import Literal

from tests.rounds.drivengateway import Exchange
from tests.rounds.tries import WHOLE, Asked, Rules, Try

TRANSIENT = frozenset(
    {
        *("stalled_before_start", "stalled_mid_answer", "truncated"),
        *("http_5xx", "http_429", "finish_error", "overloaded", "connect_failed"),
    }
)
MOST_ALIKE, MOST_FAILED_ALIKE, MOST_FAILED = 8, 3, 6
"""How often the same call, the same failing one, and the same failure may come."""

NUMBERS = itertools.count(1)
"""Of rounds: no two calls of a thread have one id."""

Step = Literal["over", "again", "call"]
OVER, CALL = frozenset[Step]({"over"}), frozenset[Step]({"call"})
MAYBE, AGAIN = frozenset[Step]({"over", "again"}), frozenset[Step]({"again"})


class Expected:
    """One round: its attempts, what stands on the page, what must stand at the end."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._number = next(NUMBERS)
        self.tries: list[Try] = []
        self.generation = 0
        self.text = ""
        self.thoughts = ""
        self.withdrawn: dict[int, str] = {}
        self._before = ("", "")
        self._last_thoughts = ""
        # What the last withdrawal left, what was read before it, and whether
        # nothing that can be read has come since.
        self._kept = 0
        self._was_read = ("", "")
        self._is_bare = False
        self._earlier: Expected | None = None
        self._draft: Try | None = None
        self._ended_at = 0.0
        self.ended = ("", "")
        """Ending and code of the round, once it is over."""

    @property
    def now(self) -> Try:
        return self.tries[-1]

    @property
    def of_call(self) -> list[Try]:
        """The attempts of the call under way."""
        return [each for each in self.tries if each.call == self.now.call]

    @property
    def _asks(self) -> bool:
        """The call was whole, and asks for tools."""
        return bool(self.now.tools) and self.now.ending == "completed"

    def copy(self) -> "Expected":
        """Return another one, to follow what may come instead."""
        other, now = copy.copy(self), self.now
        now = replace(now, pieces=list(now.pieces), tools=list(now.tools))
        other.tries = [*self.tries[:-1], now]
        other.withdrawn = dict(self.withdrawn)
        return other

    def begin(self, exchange: Exchange, *, is_next_call: bool) -> None:
        """An attempt's first request arrived."""
        call, number, at = 1, 1, exchange.received_at
        if self.tries:
            call = self.now.call + is_next_call
            number = 1 if is_next_call else self.now.number + 1
        waited = 0.0 if number == 1 else at - self._ended_at
        self.tries.append(Try(call, number, at, [exchange], waited))
        self._before = (self.text, self.thoughts)

    # What the gateway sends.

    def say(self, piece: str) -> None:
        """White space that begins an answer is held back until a word follows."""
        now = self.now
        now.chunks += 1
        was_readable = now.is_readable
        now.pieces.append(piece)
        if now.is_readable and not self.rules.is_buffered:
            self._show(piece if was_readable else now.text)

    def think(self, piece: str) -> None:
        self.now.chunks += 1
        self.now.thoughts += piece
        if not self.rules.is_buffered:
            self.thoughts += piece
            self._last_thoughts = self.thoughts

    def call_tool(self, state: str, *, has_arguments: bool = True) -> Asked:
        self.now.chunks += 1
        call_id = f"call_{self._number}_{self.now.name}_{len(self.now.tools)}"
        self.now.tools.append(Asked(call_id, "calculator", state, has_arguments))
        return self.now.tools[-1]

    def _show(self, piece: str) -> None:
        if self.text == self._before[0] and self.text:
            self.text += "\n\n"
        self.text += piece
        if self.text[len(self._before[0]) :].strip():
            self._is_bare = False

    # How an attempt ends.

    def end(self, code: str, at: float) -> frozenset[Step]:
        """End the attempt; says what may follow."""
        now, self._ended_at = self.now, at
        if now.finish and code != "finish_error":
            code = self._whole_code(now)
        now.code, now.ending = code, _ending(code)
        if now.text and not now.is_readable and not self.rules.is_buffered:
            self._show(now.text)
        if now.ending not in WHOLE:
            return self._after_cut(now, at)
        now.reasons = frozenset({"whole"})
        if self.rules.is_buffered:
            self.thoughts += now.thoughts
            if now.text:
                self._show(now.text)
        if self._asks and self._is_bare:
            # A tool came in the place of what was withdrawn: it does not come back.
            self.generation += 1
            self._is_bare = False
        return CALL if self._asks and not self._circles else OVER

    @property
    def _circles(self) -> str:
        """The code of a round whose model goes round in circles (F7), or nothing.

        Whole calls differ from each other here; those without arguments are alike,
        and so is what is wrong with the ones that are cut.
        """
        bare = cut = 0
        for call in (each for each in self.tries if each.ending == "completed"):
            alike = sum(not tool.has_arguments for tool in call.tools)
            if bare + alike >= MOST_ALIKE:
                return "repeated_tool_call"
            for tool in call.tools:
                bare += not tool.has_arguments
                cut += tool.has_arguments and tool.state == "not_run"
                if bare >= MOST_FAILED_ALIKE:
                    return "repeated_tool_error"
                if cut >= MOST_FAILED:
                    return "repeated_tool_error_any_args"
        return ""

    def refuse(self, code: str, at: float) -> frozenset[Step]:
        """End the attempt by a refusal: the SDK's own tries are over as well."""
        self.end(code, at)
        self.now.ending = "refused"
        self.now.reasons |= {"refused"}
        return OVER

    @staticmethod
    def _whole_code(now: Try) -> str:
        if now.is_readable or now.tools:
            return "output_limit" if now.finish == "length" else ""
        return "empty_at_limit" if now.finish == "length" else "empty_completion"

    def _after_cut(self, now: Try, at: float) -> frozenset[Step]:
        rules = self.rules
        obstacles = {
            "not_transient": now.code not in TRANSIENT,
            "tool_call": bool(now.tools),
            "switched_off": rules.retries == 0,
            "exhausted": now.number > rules.retries,
            "cut_kept": rules.keeps and now.is_readable and not rules.is_buffered,
        }
        reasons = {name for name, holds in obstacles.items() if holds}
        (low, high), left = self.wait, rules.window - (at - self.of_call[0].began_at)
        is_late = high > left
        if not reasons and is_late:
            asked = now.asked_wait or 0.0
            reasons |= {"asked_to_wait"} if asked >= low else set()
            reasons |= {"window"} if asked < high else set()
        now.reasons = frozenset(reasons)
        if not reasons:
            return AGAIN
        return (
            MAYBE if is_late and low <= left and not any(obstacles.values()) else OVER
        )

    @property
    def wait(self) -> tuple[float, float]:
        """The bounds of the wait after the attempt under way."""
        step = self.rules.waits[min(self.now.number, len(self.rules.waits)) - 1]
        asked = self.now.asked_wait or 0.0
        return max(step * 0.9, asked), max(step * 1.1, asked)

    def goes_on(self) -> None:
        """The attempt is tried again: what it showed is taken back."""
        now, is_shown = self.now, not self.rules.is_buffered
        self._draft = now if now.is_readable and is_shown else self._draft
        now.reasons = frozenset()
        now.decision = "regenerate" if now.is_readable and is_shown else "reissue"
        if is_shown and (now.text or now.thoughts):
            self._earlier = self.copy()
            if not self._is_bare:
                self._was_read = (self.text, self.thoughts)
            self.text, self.thoughts = self._before
            self._kept = len(self.text)
            self.generation += 1
            self.withdrawn[self.generation] = now.name
            self._is_bare = True

    # How the round ends.

    def close(
        self, *, is_stopped: bool = False, seen: tuple[int, int] | None = None
    ) -> None:
        """The round is over: let the last text that was read stand (X2).

        `seen` is the generation, and the characters of it, that a tab had shown
        which pressed Stop; what came after that nobody has read.
        """
        if self.rules.is_buffered:
            self._show_last_held(is_stopped=is_stopped)
        before = (self.text, self.thoughts)
        self.ended = (self.now.ending, self.now.code)
        if self._asks and self._circles:
            self.ended = ("interrupted", self._circles)
        if seen is not None:
            self._forget_unseen(*seen)
        if self._is_bare:
            text, thoughts = self._was_read
            if text == self.text:
                thoughts = self.thoughts or self._last_thoughts
            elif self.now.ending in WHOLE and self._draft is not None:
                self.ended = (self._draft.ending, self._draft.code)
            self.text, self.thoughts = text, thoughts
        self.generation += (self.text, self.thoughts) != before

    def _forget_unseen(self, generation: int, length: int) -> None:
        if generation == self.generation:
            text = self.text[: max(length, self._kept)]
            if text != self.text:
                self.text = text
                self._is_bare = generation > 0 and not text[self._kept :].strip()
        elif self._earlier is not None and self._earlier.generation == generation:
            earlier = self._earlier
            earlier._forget_unseen(generation, length)
            stands = earlier._was_read
            if not earlier._is_bare:
                stands = (earlier.text, earlier.thoughts)
            self._was_read, self._is_bare = stands, True

    def _show_last_held(self, *, is_stopped: bool) -> None:
        """Nothing that was streamed is lost, though it never became whole."""
        if self.now.ending in WHOLE:
            return
        readable = [each for each in self.of_call if each.is_readable]
        if readable:
            self._show(readable[-1].text)
        elif not is_stopped and self.now.text:
            self._show(self.now.text)


def _ending(code: str) -> str:
    """The ending that a code stands for."""
    match code:
        case "":
            return "completed"
        case "output_limit":
            return "length"
        case "empty_completion" | "empty_at_limit":
            return "empty"
        case "truncated":
            return "truncated"
        case "stalled_before_start" | "stalled_mid_answer":
            return "stalled"
        case _:
            return "faulted"
