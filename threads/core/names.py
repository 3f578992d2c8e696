"""From the names that an error carries to a row: codes, types, gateways' headers.

Sources: OpenRouter's `error_type` and `availability.code`, OpenAI's and Anthropic's
codes and types, nRouter's codes and `x-nr-*` headers, and what other gateways were
seen to send. Names are compared without case and punctuation.
"""

import re
from collections.abc import Iterator, Mapping

from threads.core.endings import KeyEffect
from threads.core.reasons import Reason
from threads.core.table import ERRORS, Error

NAMES = {
    "quota_exhausted": (
        "insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded", "organization_usage_limit_exceeded", "payment_required",
        "insufficient_credits", "insufficient_balance", "insufficient_funds", "insufficient_user_quota",
        "billing_error", "billing_not_active", "billing_hard_limit_reached", "usage_limit_reached",
        "usage_limit_exceeded", "exceeded_current_quota", "arrearage", "pre_consume_token_quota_failed",
        "allocation_quota_free_tier_only", "base_resp_1008", "base_resp_2056",
    ),
    "budget_exceeded": ("budget_exceeded", "openrouter_in_flight_budget", "in_flight_budget_exhausted"),
    "request_blocked": (
        "content_policy_violation", "content_filter", "content_filtered", "refusal", "guardrail_blocked",
        "guardrail_intervened", "responsible_ai_policy_violation", "data_inspection_failed",
        "moderation_blocked", "image_content_policy_violation", "sensitive_words_detected",
        "base_resp_1026", "base_resp_1027",
    ),
    "context_too_long": (
        "context_length_exceeded", "context_window_exceeded", "input_too_large", "token_limit_exceeded",
        "tokens_limit_reached", "string_too_long", "string_above_max_length", "exceed_context_size",
        "request_too_large", "payload_too_large",
    ),
    "bad_tool_schema": ("invalid_function_parameters", "invalid_tool_schema"),
    "provider_config_error": (
        "unsupported_parameter", "unsupported_value", "unknown_parameter", "not_supported",
        "max_output_tokens_too_large", "fallback_not_allowed", "guardrail_not_found", "extra_forbidden",
    ),
    "http_400": (
        "invalid_image", "invalid_image_format", "unsupported_image_format", "invalid_base64_image",
    ),
    "http_401": (
        "invalid_api_key", "incorrect_api_key", "wrong_api_key", "api_key_invalid", "authentication",
        "invalid_authentication", "unauthenticated", "unauthorized", "auth_error", "expired_key",
        "invalid_token", "token_expired", "token_not_found_in_db", "account_deactivated",
        "base_resp_1004", "base_resp_2049",
    ),
    "http_403.account": ("organization_hold", "account_hold", "team_hold", "org_web_search_disabled"),
    "auth_backend_unavailable": ("auth_backend_unavailable", "platform_maintenance"),
    "http_429": (
        "rate_limit_exceeded", "rate_limit", "rate_limited", "rate_limit_reached", "slow_down",
        "tpm_limit_exceeded", "capacity_exhausted", "too_many_requests", "too_many_concurrent_requests",
        "resource_exhausted", "throttled", "base_resp_1002", "base_resp_1039", "base_resp_1041",
        "base_resp_2045",
    ),
    "overloaded": (
        "provider_overloaded", "overloaded", "server_is_overloaded", "engine_overloaded",
        "model_overloaded", "temporarily_unavailable", "credit_check_failed", "service_unavailable",
        "unavailable", "over_capacity", "no_capacity", "at_capacity", "capacity_exceeded",
        "service_tier_capacity_exceeded", "model_at_capacity", "server_overloaded", "service_overloaded",
        "server_busy", "model_busy", "system_busy", "model_not_ready",
    ),
    "http_408": ("request_timeout", "model_timeout", "base_resp_1001"),
    "http_5xx": (
        "server_error", "internal_server_error", "internal_error", "internal_failure", "api_error",
        "upstream_error", "model_stream_error", "unmapped",
        "provider_unavailable", "bad_gateway", "gateway_timeout", "timeout", "deadline_exceeded",
        "generation", "incomplete_generation", "base_resp_1000", "base_resp_1013", "base_resp_1024",
        "base_resp_1033",
    ),
    "model_not_found": (
        "model_not_found", "unknown_model", "unavailable_model", "invalid_model", "no_endpoints",
        "model_deprecated", "model_decommissioned", "free_variant_ended", "privacy_restricted",
        "constraint_filtered", "wrong_endpoint", "model_unavailable_on_route",
        "model_unavailable_upstream", "deployment_not_found",
    ),
    "region_restricted": ("region_restricted", "unsupported_country_region_territory"),
}  # fmt: skip
"""Row to the names that lead to it."""

WEAK_NAMES = {
    "http_400": (
        "invalid_request", "invalid_prompt", "invalid_argument", "invalid_parameter", "invalid_value",
        "bad_request", "validation", "tool_use_failed", "json_validate_failed", "precondition_failed",
        "failed_precondition", "out_of_range", "max_tokens_exceeded", "base_resp_2013",
    ),
    "http_422": ("unprocessable", "unprocessable_entity"),
    "http_403": ("forbidden",),
    "http_403.account": ("permission_denied", "permission_error", "access_denied"),
    "model_not_found": ("not_found", "resource_not_found"),
}  # fmt: skip
"""Names so general that wording and status are heard first."""

FAMILIES = (
    ("throttling", "http_429"),
    ("plan_", "quota_exhausted"),
    ("image_", "http_400"),
    ("key_", "http_403.key"),
)
"""Beginnings that are enough, where the whole name is no row of its own."""

OF_ONE_USE = re.compile(r"model|route")
"""In a `key_…` name: the key may not be used here, and is good elsewhere."""

LIMIT_SOURCES = {
    "budget": "budget_exceeded",
    "openrouter_in_flight_budget": "budget_exceeded",
    "openrouter_key_limit": "budget_exceeded",
    "openrouter_credits": "quota_exhausted",
    "plan_window_day": "quota_exhausted",
    "plan_window_week": "quota_exhausted",
    "plan_allowance_exhausted": "quota_exhausted",
    "plan_required": "quota_exhausted",
    "plan_window_h8": "http_429.key",
    "plan": "http_429.key",
    "key": "http_429.key",
    "team": "http_429.key",
    "user": "http_429.key",
    "capacity": "http_429",
}
"""Whose limit was reached: `metadata.limit_source`, or `x-nr-limit-source`."""

GUARDRAILS = {"blocked": "request_blocked", "unavailable": "overloaded"}
"""`x-nr-guardrails`; its other values come with answers that were served."""

OF_OTHERS = frozenset({408, 424, 425, 429})
"""Statuses among the refusals that are no fault of what was asked."""

SPENT = frozenset({"quota_exhausted", "budget_exceeded"})
_THROTTLED = KeyEffect.THROTTLED


def plain(name: str) -> str:
    """Write a name without case, punctuation and "Error": `RateLimitError`,
    `rate_limit_error` and `RATE-LIMIT` are one."""
    squeezed = re.sub(r"[^a-z0-9]+", "", name.lower())
    for ending in ("exception", "error"):
        squeezed = squeezed.removesuffix(ending) or squeezed
    return squeezed


ROW_OF_NAME = {plain(name): row for row, names in NAMES.items() for name in names}
ROW_OF_WEAK_NAME = {
    plain(name): row for row, names in WEAK_NAMES.items() for name in names
}


def row_of(name: str) -> Error | None:
    """Find the row of one name; None where it says nothing by itself."""
    row = ROW_OF_NAME.get(plain(name))
    if row is None:
        row = next((row for begin, row in FAMILIES if name.startswith(begin)), None)
    if row == "http_403.key" and OF_ONE_USE.search(name):
        row = "http_403.account"
    return None if row is None else ERRORS[row]


def by_name(
    reason: Reason, status: int | None, headers: Mapping[str, str]
) -> Error | None:
    """Find the row that a code, a type or a gateway's own header names.

    The most specific name that can be believed decides; but "spent", wherever it
    stands, is heard before "slow down" (C7).
    """
    rows = [row for row in _named(reason, status, headers) if _is_believed(row, status)]
    if not rows:
        return None
    if rows[0].code == "http_429":
        spent = next((row for row in rows if row.code in SPENT), None)
        of_the_key = next((row for row in rows if row.key_effect is _THROTTLED), None)
        return spent or of_the_key or rows[0]
    return rows[0]


def _named(
    reason: Reason, status: int | None, headers: Mapping[str, str]
) -> Iterator[Error]:
    for name in reason.names:
        if (row := row_of(name)) is not None:
            yield row
    source = reason.limit_source or headers.get("x-nr-limit-source", "")
    if source in LIMIT_SOURCES and status in (None, 402, 429):
        yield ERRORS[LIMIT_SOURCES[source]]
    if (posture := headers.get("x-nr-guardrails", "")) in GUARDRAILS:
        yield ERRORS[GUARDRAILS[posture]]
    if (row := row_of(headers.get("x-nr-auth-reason", ""))) is not None:
        yield row


def _is_believed(row: Error, status: int | None) -> bool:
    """Tell whether a name can be true beside this status.

    "Try again" is not believed beside a refusal of the request itself, unless the
    gateway could only not look who asks; 408 and 429 are never a block (B5); and a
    401 is about the key, whatever a name says that is also used with 403.
    """
    if status is None:
        return True
    if 400 <= status < 500 and status not in OF_OTHERS and row.transient:
        return row.code == "auth_backend_unavailable"
    if row.code == "request_blocked":
        return status not in (408, 429)
    return not (row.code == "http_403" and status == 401)


def by_weak_name(reason: Reason) -> Error | None:
    """Find the row of a name that says little, for when nothing else spoke."""
    for name in reason.names:
        if (row := ROW_OF_WEAK_NAME.get(plain(name))) is not None:
            return ERRORS[row]
    return None
