"""The attempts of a round, as the gateway that played them knows them."""

from dataclasses import dataclass, field

from tests.rounds.drivengateway import Exchange

BROKEN = frozenset({"stalled", "truncated"})
CUT = BROKEN | {"faulted"}
WHOLE = frozenset({"completed", "length"})


@dataclass(frozen=True, slots=True)
class Rules:
    """The policy of a round; times in seconds."""

    retries: int = 2
    waits: tuple[float, ...] = (1.0, 2.0)
    window: float = 60.0
    keeps: bool = False
    is_buffered: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A tool call that the gateway sent, and what has to become of it."""

    id: str
    name: str
    state: str
    has_arguments: bool = True


@dataclass(slots=True)
class Try:
    """One attempt: what the gateway sent in it, and how it ended."""

    call: int
    number: int
    began_at: float
    exchanges: list[Exchange]
    waited: float = 0.0
    pieces: list[str] = field(default_factory=list)
    thoughts: str = ""
    chunks: int = 0
    tools: list[Asked] = field(default_factory=list)
    usage: tuple[int, int] | None = None
    finish: str = ""
    ending: str = ""
    code: str = ""
    asked_wait: float | None = None
    decision: str = "none"
    reasons: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def is_readable(self) -> bool:
        return bool(self.text.strip())

    @property
    def name(self) -> str:
        return f"{self.call}.{self.number}"
