"""What must become of a round: worked out from what the gateway sent, and nothing else.

Written from the requirements (D2 to D22, E1 to E9, X2), not from the code: it knows
no journal, no frames and no decision function.
"""

from dataclasses import dataclass, field

from tests.rounds.drivengateway import Exchange

TRANSIENT = frozenset(
    {
        *("stalled_before_start", "stalled_mid_answer", "truncated"),
        *("http_5xx", "http_429", "finish_error", "overloaded", "connect_failed"),
    }
)
BROKEN = frozenset({"stalled", "truncated"})
WHOLE = frozenset({"completed", "length"})


@dataclass(frozen=True, slots=True)
class Rules:
    """The policy of a round; times in seconds."""

    retries: int
    waits: tuple[float, ...]
    window: float
    keeps: bool
    is_buffered: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A tool call that the gateway sent, and what has to become of it."""

    id: str
    name: str
    state: str


@dataclass(slots=True)
class Try:
    """One attempt: what the gateway sent in it, and how it ended."""

    call: int
    number: int
    began_at: float
    exchanges: list[Exchange]
    pieces: list[str] = field(default_factory=list)
    thoughts: str = ""
    chunks: int = 0
    tools: list[Asked] = field(default_factory=list)
    usage: tuple[int, int] | None = None
    finish: str = ""
    ending: str = ""
    code: str = ""
    asked_wait: float | None = None
    waited: float = 0.0
    decision: str = "none"
    reasons: frozenset[str] = frozenset()
    is_vague: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def is_readable(self) -> bool:
        return bool(self.text.strip())

    @property
    def name(self) -> str:
        return f"{self.call}.{self.number}"


class Expected:
    """One round: its attempts, what stands on the page, and what must stand at the end."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.tries: list[Try] = []
        self.generation = 0
        self.text = ""
        self.thoughts = ""
        self.withdrawn: dict[int, str] = {}
        self._before = ("", "")
        self._was_read = ("", "")
        self._is_bare = False
        self._last_thoughts = ""
        self._ended_at = 0.0
        self._is_over = False

    @property
    def now(self) -> Try:
        return self.tries[-1]

    @property
    def of_call(self) -> list[Try]:
        """The attempts of the call under way."""
        return [each for each in self.tries if each.call == self.now.call]

    def begin(self, exchange: Exchange, *, is_next_call: bool) -> Try:
        """An attempt's first request arrived."""
        call, number = 1, 1
        if self.tries:
            call = self.now.call + is_next_call
            number = 1 if is_next_call else self.now.number + 1
        began = Try(call, number, exchange.received_at, [exchange])
        if number > 1:
            began.waited = exchange.received_at - self._ended_at
        self.tries.append(began)
        self._before = (self.text, self.thoughts)
        return began

    # What the gateway sends.

    def say(self, piece: str) -> None:
        self.now.chunks += 1
        self.now.pieces.append(piece)
        if not self.rules.is_buffered:
            self._show(piece)

    def think(self, piece: str) -> None:
        self.now.chunks += 1
        self.now.thoughts += piece
        if not self.rules.is_buffered:
            self.thoughts += piece
            self._last_thoughts = self.thoughts

    def _show(self, piece: str) -> None:
        if self.text == self._before[0] and self.text:
            self.text += "\n\n"
        self.text += piece
        if self.text[len(self._before[0]) :].strip():
            self._is_bare = False

    # How an attempt ends.

    def end(self, code: str, at: float) -> frozenset[str]:
        """End the attempt; says what may follow: "over", "again" or "call"."""
        now, self._ended_at = self.now, at
        if now.finish:
            code = self._whole_code(now)
        now.code = code
        now.ending = _ending(code)
        if now.ending in WHOLE:
            now.reasons = frozenset({"whole"})
            self._show_held(now)
            is_asking = now.tools and now.ending == "completed"
            return frozenset({"call"} if is_asking and now.call < 8 else {"over"})
        return self._after_cut(now, at)

    def refuse(self, code: str, at: float) -> frozenset[str]:
        """End the attempt by a refusal: the SDK's own tries are over as well."""
        follows = self.end(code, at)
        self.now.ending = "refused"
        self.now.reasons |= {"refused"}
        return follows - {"again"} or frozenset({"over"})

    def _whole_code(self, now: Try) -> str:
        if now.is_readable or now.tools:
            return {"length": "output_limit"}.get(now.finish, "")
        return {"length": "empty_at_limit"}.get(now.finish, "empty_completion")

    def _after_cut(self, now: Try, at: float) -> frozenset[str]:
        rules, reasons = self.rules, set[str]()
        if now.code not in TRANSIENT:
            reasons.add("not_transient")
        if now.tools:
            reasons.add("tool_call")
        if rules.retries == 0:
            reasons.add("switched_off")
        if now.number > rules.retries:
            reasons.add("exhausted")
        if rules.keeps and now.is_readable and not rules.is_buffered:
            reasons.add("cut_kept")
        low, high = self.wait
        elapsed = at - self.of_call[0].began_at
        may_fit = elapsed + low <= rules.window
        if elapsed + high > rules.window:
            asked = now.asked_wait is not None and now.asked_wait >= low
            late = {"asked_to_wait"} if asked else set[str]()
            if now.asked_wait is None or now.asked_wait < high:
                late.add("window")
            now.reasons = frozenset(reasons or late)
        else:
            now.reasons = frozenset(reasons)
        if reasons or not may_fit:
            return frozenset({"over"})
        return frozenset({"again"} | ({"over"} if now.reasons else set()))

    @property
    def wait(self) -> tuple[float, float]:
        """The bounds of the wait after the attempt under way."""
        step = self.rules.waits[min(self.now.number, len(self.rules.waits)) - 1]
        asked = self.now.asked_wait or 0.0
        return max(step * 0.9, asked), max(step * 1.1, asked)

    def goes_on(self) -> None:
        """The attempt is tried again: what it showed is taken back."""
        now = self.now
        now.reasons = frozenset()
        is_shown = not self.rules.is_buffered
        now.decision = "regenerate" if now.is_readable and is_shown else "reissue"
        if is_shown and (now.text or now.thoughts):
            if not self._is_bare:
                self._was_read = (self.text, self.thoughts)
            self.text, self.thoughts = self._before
            self.generation += 1
            self.withdrawn[self.generation] = now.name
            self._is_bare = True

    def _show_held(self, now: Try) -> None:
        """Buffered, an answer is shown once it is whole."""
        if self.rules.is_buffered:
            self.thoughts += now.thoughts
            if now.text:
                self._show(now.text)

    # How the round ends.

    def close(self, *, is_stopped: bool = False) -> None:
        """The round is over: let the last text that was read stand (X2)."""
        if self._is_over:
            return
        self._is_over = True
        if self.rules.is_buffered:
            self._show_last_held(is_stopped=is_stopped)
        elif self._is_bare:
            text, thoughts = self._was_read
            if text == self.text:
                thoughts = self.thoughts or self._last_thoughts
            if (text, thoughts) != (self.text, self.thoughts):
                self.generation += 1
                self.text, self.thoughts = text, thoughts

    def _show_last_held(self, *, is_stopped: bool) -> None:
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
