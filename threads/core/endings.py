"""The taxonomy: how a call may end, whose condition that is, what it means."""

from dataclasses import dataclass, field
from enum import StrEnum


class Ending(StrEnum):
    """How a call, or the round that made it, ended (requirement A1)."""

    COMPLETED = "completed"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    STALLED = "stalled"
    TRUNCATED = "truncated"
    FAULTED = "faulted"
    BLOCKED = "blocked"
    REFUSED = "refused"
    EMPTY = "empty"
    STOPPED = "stopped"
    # Of a round only: our own cap, our own failure, a worker that died.
    INTERRUPTED = "interrupted"


class Condition(StrEnum):
    """Whose condition a bad ending is (requirement B1)."""

    PROVIDER = "provider"
    ACCOUNT_KEY = "account_key"
    REQUEST = "request"
    OUR_CONFIG = "our_config"
    OUR_BUG = "our_bug"
    NETWORK = "network"
    UNKNOWN = "unknown"


class KeyEffect(StrEnum):
    """What a verdict says of the key that was used."""

    NONE = "none"
    BAD = "bad"
    EXHAUSTED = "exhausted"
    THROTTLED = "throttled"


WHOLE = frozenset({Ending.COMPLETED, Ending.LENGTH, Ending.CONTENT_FILTER})
"""Endings of an answer: the round is done, perhaps with a note."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one ending means, for everyone who asks: guard, retry, ledger, page."""

    code: str
    ending: Ending
    condition: Condition
    transient: bool = False
    key_effect: KeyEffect = KeyEffect.NONE
    sentence_key: str = ""
    provider: str = ""
    provider_reason: str = ""
    retry_after_seconds: float | None = None
    params: dict[str, str] = field(default_factory=dict)
