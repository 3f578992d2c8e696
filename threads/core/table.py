"""The table of errors: every code that we can name, and what it means.

A row says what a code means; `threads.core.names` and `threads.core.wordings` say
which names and words lead to it. Nothing else in the source may decide what an
error means (tests/core/test_one_classifier.py looks for a second place).

A code has one spelling and stands for one thing that happened. Where one code has
several rows, the same thing happened and something beside it differs: whose limit
a 429 is, what a 403 was about, whether the line was kept open before a stall, what
makes a conversation too long that we measured before it was sent. Two
codes stand near each other and are not the same: `connect_failed` is our own
connection to the gateway, `provider_network_error` the gateway's to its provider.
"""

from dataclasses import dataclass

from threads.core.endings import Condition, Ending, KeyEffect, Verdict

COMPLETED = Verdict("", Ending.COMPLETED, Condition.UNKNOWN)

FINISH_REASONS = {
    "stop": Ending.COMPLETED,
    "tool_calls": Ending.COMPLETED,
    "function_call": Ending.COMPLETED,
    "end_turn": Ending.COMPLETED,
    "eos": Ending.COMPLETED,
    "eos_token": Ending.COMPLETED,
    "stop_sequence": Ending.COMPLETED,
    "tool_use": Ending.COMPLETED,
    "length": Ending.LENGTH,
    "max_tokens": Ending.LENGTH,
    "max_output_tokens": Ending.LENGTH,
    "model_length": Ending.LENGTH,
    "content_filter": Ending.CONTENT_FILTER,
}
"""Finish reasons that end an answer; the later ones are other dialects' words."""

BLOCKING_FINISH_REASONS = frozenset(
    {
        "sensitive",
        "safety",
        "prohibited_content",
        "blocklist",
        "spii",
        "recitation",
        "image_safety",
        "guardrail_intervened",
        "refusal",
    }
)
"""Finish reasons by which a provider's own rules ended an answer."""

FAILING_NATIVE_REASONS = frozenset({"error", "network_error"})
"""Native finish reasons that belie a "stop" without any output (A11)."""


@dataclass(frozen=True, slots=True)
class Error:
    """One row: what a code means. `case` tells rows of one code apart."""

    code: str
    condition: Condition
    sentence_key: str
    transient: bool = False
    ending: Ending = Ending.FAULTED
    key_effect: KeyEffect = KeyEffect.NONE
    case: str = ""

    @property
    def name(self) -> str:
        """The key of the row in `ERRORS`: its code, and its case after a dot."""
        return f"{self.code}.{self.case}" if self.case else self.code


_PROVIDER, _REQUEST, _ACCOUNT = (
    Condition.PROVIDER,
    Condition.REQUEST,
    Condition.ACCOUNT_KEY,
)
_CONFIG, _NETWORK, _UNKNOWN = Condition.OUR_CONFIG, Condition.NETWORK, Condition.UNKNOWN
_BUG = Condition.OUR_BUG
_BAD, _EXHAUSTED, _THROTTLED = KeyEffect.BAD, KeyEffect.EXHAUSTED, KeyEffect.THROTTLED

ERRORS = {
    error.name: error
    for error in (
        Error("stalled_before_start", _PROVIDER, "stream.stalled_start", True, Ending.STALLED),
        Error("stalled_before_start", _PROVIDER, "stream.stalled_start_open", True, Ending.STALLED, case="open"),
        Error("stalled_mid_answer", _PROVIDER, "stream.stalled_mid", True, Ending.STALLED),
        Error("stalled_mid_answer", _PROVIDER, "stream.stalled_mid_open", True, Ending.STALLED, case="open"),
        Error("truncated", _NETWORK, "stream.truncated", True, Ending.TRUNCATED),
        Error("transport_decode", _NETWORK, "stream.unreadable", ending=Ending.TRUNCATED),
        Error("finish_error", _PROVIDER, "stream.faulted", transient=True),
        Error("finish_unknown", _UNKNOWN, "stream.unknown_end"),
        Error("stream_unreadable", _PROVIDER, "stream.unreadable"),
        Error("stream_fault_unknown", _UNKNOWN, "stream.faulted_neutral"),
        Error("not_a_stream", _CONFIG, "config.endpoint"),
        Error("empty_completion", _PROVIDER, "stream.empty", ending=Ending.EMPTY),
        Error("empty_at_limit", _REQUEST, "stream.empty_at_limit", ending=Ending.EMPTY),
        Error("output_limit", _REQUEST, "answer.cut_length", ending=Ending.LENGTH),
        Error("content_filter", _REQUEST, "answer.filtered", ending=Ending.CONTENT_FILTER),
        Error("answer_blocked", _REQUEST, "answer.filtered"),
        Error("request_blocked", _REQUEST, "request.blocked", ending=Ending.BLOCKED),
        Error("context_too_long", _REQUEST, "request.too_long"),
        Error("context_too_long", _REQUEST, "request.message_too_long", case="message"),
        Error("context_too_long", _REQUEST, "request.results_too_long", case="results"),
        Error("context_too_long", _CONFIG, "config.model_settings", case="site"),
        Error("http_400", _REQUEST, "request.rejected"),
        Error("http_422", _REQUEST, "request.rejected"),
        Error("bad_history", _BUG, "internal.request_shape"),
        Error("bad_tool_schema", _BUG, "internal.request_shape"),
        Error("provider_config_error", _CONFIG, "config.model_settings"),
        Error("http_401", _ACCOUNT, "account.key_rejected", key_effect=_BAD),
        Error("http_401", _CONFIG, "config.no_key", case="no_key"),
        Error("auth_backend_unavailable", _PROVIDER, "provider.error", transient=True),
        Error("missing_key", _CONFIG, "config.no_key"),
        Error("quota_exhausted", _ACCOUNT, "account.no_credit", key_effect=_EXHAUSTED),
        Error("budget_exceeded", _ACCOUNT, "account.budget", key_effect=_EXHAUSTED),
        Error("http_403", _UNKNOWN, "provider.refused"),
        Error("http_403", _ACCOUNT, "account.forbidden", key_effect=_BAD, case="key"),
        Error("http_403", _ACCOUNT, "account.forbidden", case="account"),
        Error("region_restricted", _CONFIG, "config.region"),
        Error("model_not_found", _CONFIG, "config.model_missing"),
        Error("http_3xx", _CONFIG, "config.endpoint"),
        Error("http_408", _PROVIDER, "provider.timeout", transient=True),
        Error("http_409", _PROVIDER, "provider.refused"),
        Error("http_429", _PROVIDER, "provider.rate_limited", transient=True),
        Error("http_429", _ACCOUNT, "provider.rate_limited", True, key_effect=_THROTTLED, case="key"),
        Error("overloaded", _PROVIDER, "provider.overloaded", transient=True),
        Error("http_5xx", _PROVIDER, "provider.error", transient=True),
        Error("http_other", _UNKNOWN, "provider.refused"),
        Error("provider_network_error", _NETWORK, "net.unreachable", transient=True),
        Error("connect_failed", _NETWORK, "net.unreachable", transient=True),
        Error("connect_config", _CONFIG, "config.endpoint"),
    )
}  # fmt: skip
"""Rows by name. `http_429.key` is the one row on the account that passes by
waiting: a limit per minute does, whoever set it."""

CODES = frozenset(error.code for error in ERRORS.values())

UNKNOWN_CODES = frozenset({"stream_fault_unknown", "finish_unknown", "http_other"})
"""Codes that say only that something failed. Never transient; each is an alarm for
the operator, since it wants a row of this table (A3, D20)."""

FINAL_SENTENCE, PASSING_ROW = "provider.refused", "overloaded"
"""What a row becomes whose gateway says, in so many words, that waiting does not
help, or that it does (`availability.retryable`): a sentence and its verdict never
disagree on sending again (B6)."""

_BY_STATUS = {
    400: "http_400", 401: "http_401", 402: "quota_exhausted", 403: "http_403", 404: "model_not_found",
    408: "http_408", 409: "http_409", 410: "model_not_found", 413: "context_too_long", 422: "http_422",
    429: "http_429", 503: "overloaded", 529: "overloaded",
}  # fmt: skip


def by_status(status: int | None) -> Error | None:
    """Find the row of a status; None where a status says nothing."""
    if status is None:
        return None
    if (exact := _BY_STATUS.get(status)) is not None:
        return ERRORS[exact]
    if 500 <= status < 600:
        return ERRORS["http_5xx"]
    return ERRORS["http_3xx"] if 300 <= status < 400 else None
