"""Refusals as gateways word them, and the code that each is to get."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """An error as a gateway words it, and what it is to mean."""

    status: int
    error: Mapping[str, object]
    code: str


def said(words: str, **more: object) -> dict[str, object]:
    return {"message": words, **more}


def named(code: str, **more: object) -> dict[str, object]:
    return {"message": "Provider returned error", "code": code, **more}


def typed(kind: str, **more: object) -> dict[str, object]:
    return {"message": "Provider returned error", "type": kind, **more}


ROWS = [
    # Too long.
    *(
        Row(400, named(code), "context_too_long")
        for code in (
            "context_length_exceeded",
            "input_too_large",
            "token_limit_exceeded",
            "string_too_long",
        )
    ),
    Row(400, typed("exceed_context_size_error"), "context_too_long"),
    Row(400, said("prompt is too long: 5 > 4"), "context_too_long"),
    Row(400, said("This model's maximum context length is 8192"), "context_too_long"),
    Row(400, said("Too many tokens"), "context_too_long"),
    Row(400, said("Please reduce the length of the messages"), "context_too_long"),
    Row(400, said("The input token count exceeds the maximum"), "context_too_long"),
    Row(413, said("Request Entity Too Large"), "context_too_long"),
    Row(413, said("no words we know"), "context_too_long"),
    # Rejected, reason as given.
    Row(400, said("max_tokens must be positive"), "request_rejected"),
    Row(422, said("Unprocessable"), "request_rejected"),
    Row(400, typed("invalid_request_error"), "request_rejected"),
    Row(400, named("invalid_prompt"), "request_rejected"),
    Row(400, named("tool_use_failed"), "request_rejected"),
    # Our configuration of the model.
    Row(400, named("unsupported_parameter"), "provider_config_error"),
    Row(400, named("unsupported_value"), "provider_config_error"),
    Row(400, said("Unsupported parameter: 'x'"), "provider_config_error"),
    Row(
        422,
        said("property 'stream_options' is unsupported"),
        "provider_config_error",
    ),
    Row(400, said("set reasoning_effort to 'none'"), "provider_config_error"),
    Row(
        400,
        said("'messages' must contain the word 'json'"),
        "provider_config_error",
    ),
    Row(400, said("reasoning_content must be passed back"), "provider_config_error"),
    # Blocks.
    Row(400, named("content_policy_violation"), "request_blocked"),
    Row(400, typed("refusal"), "request_blocked"),
    Row(400, typed("guardrail_blocked"), "request_blocked"),
    Row(
        400,
        named("content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}),
        "request_blocked",
    ),
    Row(400, named("data_inspection_failed"), "request_blocked"),
    Row(403, said("Request blocked: PII detected"), "request_blocked"),
    Row(403, said("Your input was flagged"), "request_blocked"),
    Row(403, said("requires moderation"), "request_blocked"),
    Row(403, said("stopped by a guardrail"), "request_blocked"),
    Row(403, said("prompt injection suspected"), "request_blocked"),
    Row(
        403,
        said("no", metadata={"reasons": ["violence"], "flagged_input": "x"}),
        "request_blocked",
    ),
    # The key.
    Row(401, said("User not found"), "http_401"),
    Row(401, named("invalid_api_key"), "http_401"),
    Row(401, typed("authentication_error"), "http_401"),
    Row(400, said("Invalid API key"), "http_401"),
    Row(403, said("Incorrect API key provided: sk-…"), "http_401"),
    # The account.
    Row(402, said("Payment Required"), "quota_exhausted"),
    Row(402, said("You can only afford 12 tokens"), "quota_exhausted"),
    *(
        Row(429, named(code), "quota_exhausted")
        for code in (
            "insufficient_quota",
            "credit_balance_exhausted",
            "organization_spend_limit_exceeded",
            "project_spend_limit_exceeded",
            "organization_usage_limit_exceeded",
            "billing_not_active",
            "plan_window_day",
            "plan_window_week",
        )
    ),
    Row(402, named("insufficient_credits"), "quota_exhausted"),
    Row(402, typed("billing_error"), "quota_exhausted"),
    Row(429, typed("usage_limit_reached"), "quota_exhausted"),
    Row(429, said("Rate limit exceeded: free-models-per-day"), "quota_exhausted"),
    Row(
        429,
        named("rate_limit_exceeded", message="daily gateway request cap reached"),
        "quota_exhausted",
    ),
    Row(402, said("Your monthly budget was exceeded"), "budget_exceeded"),
    Row(429, named("budget_exceeded"), "budget_exceeded"),
    Row(
        402,
        said("wait", metadata={"limit_source": "openrouter_in_flight_budget"}),
        "budget_exceeded",
    ),
    # Refused, by whom and why.
    Row(403, said("Key limit exceeded (monthly limit)"), "key_forbidden"),
    Row(403, said("organization is on hold"), "key_forbidden"),
    Row(403, said("insufficient permissions for this"), "key_forbidden"),
    Row(403, named("region_restricted"), "region_restricted"),
    Row(403, said("not available in your country"), "region_restricted"),
    Row(403, named("unsupported_country_region_territory"), "region_restricted"),
    Row(403, said("Forbidden"), "http_403"),
    Row(403, named("permission_denied"), "http_403"),
    Row(409, said("Conflict"), "http_409"),
    Row(418, said("I'm a teapot"), "http_other"),
    Row(307, said("Moved"), "http_3xx"),
    # No such model.
    Row(404, said("Not Found"), "model_not_found"),
    *(
        Row(404, named(code), "model_not_found")
        for code in (
            "model_not_found",
            "no_endpoints",
            "model_deprecated",
            "free_variant_ended",
            "privacy_restricted",
            "constraint_filtered",
            "wrong_endpoint",
            "model_unavailable_on_route",
            "not_found",
        )
    ),
    Row(400, said("'x' is not a valid model ID"), "model_not_found"),
    Row(400, said("The model `x` does not exist"), "model_not_found"),
    # Slow down.
    Row(429, said("Provider returned error"), "http_429"),
    Row(429, said("x is temporarily rate-limited upstream"), "http_429"),
    *(
        Row(429, named(code), "http_429")
        for code in (
            "rate_limit_exceeded",
            "slow_down",
            "tpm_limit_exceeded",
            "capacity_exhausted",
            "too_many_concurrent_requests",
            "RESOURCE_EXHAUSTED",
            "Throttling.RateQuota",
        )
    ),
    # Theirs.
    Row(408, said("Request Timeout"), "http_408"),
    Row(500, said("Internal error"), "http_5xx"),
    Row(502, said("Bad gateway"), "http_5xx"),
    Row(504, said("Gateway timeout"), "http_5xx"),
    Row(524, said("A timeout occurred"), "http_5xx"),
    Row(500, typed("server_error"), "http_5xx"),
    Row(500, named("unmapped"), "http_5xx"),
    Row(502, named("provider_unavailable"), "http_5xx"),
    Row(504, named("timeout"), "http_5xx"),
    Row(503, said("No provider available"), "overloaded"),
    Row(529, typed("overloaded_error", message="Overloaded"), "overloaded"),
    Row(503, named("server_is_overloaded"), "overloaded"),
    Row(503, named("provider_overloaded"), "overloaded"),
    Row(503, named("temporarily_unavailable"), "overloaded"),
    Row(503, named("credit_check_failed"), "overloaded"),
    # These never are a block, whatever they say.
    Row(408, said("blocked by policy while waiting"), "http_408"),
    Row(429, said("Too many requests: you are blocked"), "http_429"),
    Row(429, named("rate_limit_exceeded", message="blocked"), "http_429"),
    Row(500, said("content policy service: request blocked"), "http_5xx"),
    Row(503, said("no provider left (2 blocked by settings)"), "overloaded"),
    # A router in between.
    Row(
        400,
        said(
            "Provider returned error",
            metadata={"raw": '{"error":{"message":"prompt is too long"}}'},
        ),
        "context_too_long",
    ),
]
