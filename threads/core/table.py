"""The table of errors: every code we can name, and what points to it.

A row says what the code means; the sets and patterns below it say which names,
words and statuses lead there. Nothing else in the source may decide what an
error means.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from threads.core.endings import Condition, Ending, KeyEffect, Verdict
from threads.core.reasons import Reason

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
    "model_length": Ending.LENGTH,
    "content_filter": Ending.CONTENT_FILTER,
}
"""Finish reasons that end an answer; the last ones are other dialects' words."""

BLOCKING_FINISH_REASONS = {
    "sensitive",
    "safety",
    "prohibited_content",
    "blocklist",
    "spii",
}


@dataclass(frozen=True, slots=True)
class Error:
    """One row: what a code means."""

    code: str
    condition: Condition
    sentence_key: str
    transient: bool = False
    ending: Ending = Ending.FAULTED
    key_effect: KeyEffect = KeyEffect.NONE


_PROVIDER, _REQUEST, _ACCOUNT = (
    Condition.PROVIDER,
    Condition.REQUEST,
    Condition.ACCOUNT_KEY,
)
_CONFIG, _NETWORK, _UNKNOWN = Condition.OUR_CONFIG, Condition.NETWORK, Condition.UNKNOWN

ERRORS = {
    error.code: error
    for error in (
        Error("stalled_before_start", _PROVIDER, "stream.stalled_start", True, Ending.STALLED),
        Error("stalled_mid_answer", _PROVIDER, "stream.stalled_mid", True, Ending.STALLED),
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
        Error("request_rejected", _REQUEST, "request.rejected"),
        Error("provider_config_error", _CONFIG, "config.model_settings"),
        Error("http_401", _ACCOUNT, "account.key_rejected", key_effect=KeyEffect.BAD),
        Error("missing_key", _CONFIG, "config.no_key"),
        Error("quota_exhausted", _ACCOUNT, "account.no_credit", key_effect=KeyEffect.EXHAUSTED),
        Error("budget_exceeded", _ACCOUNT, "account.budget", key_effect=KeyEffect.EXHAUSTED),
        Error("key_forbidden", _ACCOUNT, "account.forbidden", key_effect=KeyEffect.BAD),
        Error("http_403", _UNKNOWN, "provider.refused"),
        Error("http_409", _PROVIDER, "provider.refused"),
        Error("region_restricted", _CONFIG, "config.region"),
        Error("model_not_found", _CONFIG, "config.model_missing"),
        Error("http_3xx", _CONFIG, "config.endpoint"),
        Error("http_408", _PROVIDER, "provider.timeout", transient=True),
        Error("http_429", _PROVIDER, "provider.rate_limited", transient=True),
        Error("overloaded", _PROVIDER, "provider.overloaded", transient=True),
        Error("http_5xx", _PROVIDER, "provider.error", transient=True),
        Error("http_other", _UNKNOWN, "provider.refused"),
        Error("connect_failed", _NETWORK, "net.unreachable", transient=True),
        Error("connect_config", _CONFIG, "config.endpoint"),
    )
}  # fmt: skip

NAMES = {
    "quota_exhausted": (
        "insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded", "organization_usage_limit_exceeded", "payment_required",
        "insufficient_credits", "insufficient_balance", "billing_error", "billing_not_active",
        "usage_limit_reached", "plan_window_day", "plan_window_week",
    ),
    "budget_exceeded": ("budget_exceeded", "openrouter_in_flight_budget", "budget"),
    "request_blocked": (
        "content_policy_violation", "content_filter", "refusal", "guardrail_blocked",
        "responsibleaipolicyviolation", "data_inspection_failed", "moderation_blocked",
    ),
    "context_too_long": (
        "context_length_exceeded", "input_too_large", "token_limit_exceeded", "string_too_long",
        "exceed_context_size_error", "request_too_large",
    ),
    "http_401": ("invalid_api_key", "authentication_error", "authentication", "unauthenticated"),
    "http_429": (
        "rate_limit_exceeded", "rate_limit_error", "rate_limited", "slow_down", "tpm_limit_exceeded",
        "capacity_exhausted", "too_many_concurrent_requests", "resource_exhausted",
    ),
    "overloaded": (
        "provider_overloaded", "overloaded_error", "server_is_overloaded", "temporarily_unavailable",
        "credit_check_failed", "unavailable_error", "overloaded",
    ),
    "http_5xx": (
        "server_error", "internal_server_error", "internalservererror", "internal_error", "api_error",
        "upstream_error", "unmapped", "provider_unavailable", "timeout",
    ),
    "model_not_found": (
        "model_not_found", "no_endpoints", "model_deprecated", "free_variant_ended",
        "privacy_restricted", "constraint_filtered", "wrong_endpoint", "model_unavailable_on_route",
    ),
    "provider_config_error": ("unsupported_parameter", "unsupported_value"),
    "region_restricted": ("region_restricted", "unsupported_country_region_territory"),
}  # fmt: skip
"""Codes and types as gateways write them, lower case."""

WEAK_NAMES = {
    "request_rejected": (
        "invalid_request_error", "invalid_request", "invalid_prompt", "unprocessable", "validation",
        "tool_use_failed", "bad_request",
    ),
    "http_403": ("permission_denied", "permission_error", "forbidden"),
    "model_not_found": ("not_found", "not_found_error"),
}  # fmt: skip
"""Names so general that wording and status are heard first."""

AUTH_OUTAGES = ("platform_maintenance", "auth_backend_unavailable")
"""A 401 with one of these says nothing of the key: the gateway could not look."""

CODE_OF_NAME = {name: code for code, names in NAMES.items() for name in names}
CODE_OF_WEAK_NAME = {name: code for code, names in WEAK_NAMES.items() for name in names}

OPEN_STATUSES = frozenset({None, 400, 402, 403, 404, 413, 422, 429})
"""Statuses that leave the meaning open, so that wording is read."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Words that point to a code, for these statuses only."""

    code: str
    statuses: frozenset[int | None]
    pattern: re.Pattern[str]


def _wording(code: str, statuses: tuple[int | None, ...], *patterns: str) -> Wording:
    return Wording(code, frozenset(statuses), re.compile("|".join(patterns)))


WORDINGS = (
    _wording(
        "context_too_long", (None, 400, 413, 422),
        r"prompt is too long", r"maximum context length", r"context (?:length|window|size)",
        r"too many tokens", r"reduce the length", r"input token count exceeds", r"request (?:entity )?too large",
    ),
    _wording(
        "provider_config_error", (None, 400, 422),
        r"unsupported (?:parameter|value)", r"'stream_options' is unsupported", r"reasoning_effort",
        r"must contain the word .?json", r"must be passed back",
    ),
    _wording("model_not_found", (None, 400, 404), r"not a valid model", r"model .{0,80}(?:not found|does not exist)"),
    _wording("http_401", (None, 400, 403), r"missing authentication header", r"(?:invalid|incorrect) api key"),
    _wording(
        "key_forbidden", (403,),
        r"key limit", r"\bkey\b.{0,80}exceeded", r"organization.{0,20}hold", r"insufficient permissions",
    ),
    _wording("budget_exceeded", (402, 429), r"budget .{0,40}exceeded", r"spending budget"),
    _wording(
        "quota_exhausted", (None, 402, 403, 429),
        r"insufficient .{0,20}(?:balance|credit|quota)", r"exceeded your current quota", r"(?:can|could) only afford",
        r"per[- ]day", r"daily .{0,30}cap", r"usage limit", r"out of credits",
    ),
    _wording("region_restricted", (403,), r"\bcountry\b", r"\bregion\b"),
    _wording(
        "request_blocked", (None, 400, 403),
        r"\bblocked\b", r"guardrail", r"moderation", r"\bflagged\b", r"redaction", r"\bpii\b",
        r"prompt injection", r"content (?:management )?policy",
    ),
    _wording(
        "connect_config", (None,),
        r"name or service not known", r"nodename nor servname", r"certificate verify failed",
        r"no address associated", r"temporary failure in name resolution", r"invalid url", r"unsupported ?protocol",
    ),
    _wording(
        "connect_failed", (None,),
        r"connection error", r"cannot connect", r"connection reset", r"socket hang up", r"econn(?:reset|refused)",
        r"ssl routines", r"tls alert", r"fetch failed", r"remote protocol",
    ),
    _wording("http_429", (None,), r"rate.?limit", r"too many requests"),
    _wording("overloaded", (None,), r"overloaded", r"(?:currently|temporarily) unavailable"),
    _wording("http_408", (None,), r"timed? ?out"),
)  # fmt: skip
"""In order; the first whose words and status fit decides.

Words make something transient only where there is neither status nor name: the
last four rows hold for no status alone.
"""


CAPS = re.compile(r"daily .{0,30}\bcap\b|budget .{0,40}exceeded")
"""Words of a 429 that no waiting cures, whatever its code says (C7)."""


def by_name(
    reason: Reason, status: int | None, headers: Mapping[str, str], words: str = ""
) -> Error | None:
    """Find the row that a code, a type or a gateway's own header names.

    A name that means "try again" is not believed beside a status that says the
    request itself was refused, nor "slow down" beside words of a spent allowance.
    """
    refused = status is not None and 400 <= status < 500 and status not in (408, 429)
    for name in reason.names:
        code = "http_429" if name.startswith("throttling") else CODE_OF_NAME.get(name)
        if code == "http_429" and CAPS.search(words):
            code = "budget_exceeded" if "budget" in words else "quota_exhausted"
        if code is not None and not (refused and ERRORS[code].transient):
            return ERRORS[code]
    if headers.get("x-nr-guardrails") == "blocked":
        return ERRORS["request_blocked"]
    if headers.get("x-nr-limit-source") == "budget":
        return ERRORS["budget_exceeded"]
    if headers.get("x-nr-auth-reason") in AUTH_OUTAGES:
        return ERRORS["http_5xx"]
    return None


def by_weak_name(reason: Reason) -> Error | None:
    """Find the row of a name that says little, when nothing else spoke."""
    for name in reason.names:
        if (code := CODE_OF_WEAK_NAME.get(name)) is not None:
            return ERRORS[code]
    return None


def by_wording(words: str, status: int | None, *, moderated: bool) -> Error | None:
    """Find the row that the words point to, where the status leaves it open.

    `words` is lower case. 408, 429 and 5xx are never a block, whatever they say.
    """
    if status not in OPEN_STATUSES:
        return None
    if moderated and status in (None, 400, 403):
        return ERRORS["request_blocked"]
    for wording in WORDINGS:
        if status in wording.statuses and wording.pattern.search(words):
            return ERRORS[wording.code]
    return None


def unreachable(words: str) -> Error:
    """Find the row of a connection that never was; `words` is lower case.

    Only words of a wrong address count: an exception may quote what a stranger
    on that port sent.
    """
    configured = next(w for w in WORDINGS if w.code == "connect_config")
    found = configured.pattern.search(words)
    return ERRORS["connect_config" if found else "connect_failed"]


def by_status(status: int | None) -> Error | None:
    """Find the row of a status."""
    if status is None:
        return None
    exact = {
        400: "request_rejected", 401: "http_401", 402: "quota_exhausted", 403: "http_403", 404: "model_not_found",
        408: "http_408", 409: "http_409", 413: "context_too_long", 422: "request_rejected", 429: "http_429",
        503: "overloaded", 529: "overloaded",
    }.get(status)  # fmt: skip
    if exact is not None:
        return ERRORS[exact]
    if status >= 500:
        return ERRORS["http_5xx"]
    return ERRORS["http_3xx"] if status < 400 else None
