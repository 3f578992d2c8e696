"""Refusals as gateways word them, and the code that each is to get."""

from tests.core.dialects_ours import OURS
from tests.core.row import Row, named, said, typed

THEIRS = [
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
            "model_unavailable_upstream",
            "model_decommissioned",
            "DeploymentNotFound",
            "not_found",
        )
    ),
    Row(400, said("'x' is not a valid model ID"), "model_not_found"),
    Row(400, said("The model `x` does not exist"), "model_not_found"),
    Row(410, said("Gone"), "model_not_found"),
    Row(503, named("model_not_found"), "model_not_found"),
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
    Row(429, typed("ThrottlingException"), "http_429"),
    Row(429, said("You exceeded your limit of 5 requests per minute"), "http_429"),
    *(
        Row(429, said("no", metadata={"limit_source": source}), "http_429", "key")
        for source in ("key", "team", "user", "plan", "plan_window_h8")
    ),
    Row(429, said("no", metadata={"limit_source": "capacity"}), "http_429"),
    Row(429, said("Rate limit exceeded for this API key"), "http_429", "key"),
    Row(429, said("per-key limit of 5 per minute"), "http_429", "key"),
    Row(
        429,
        named("rate_limit_exceeded", message="Your key has a rate limit of 5"),
        "http_429",
        "key",
    ),
    Row(429, said("Rate limit reached in organization on tokens"), "http_429"),
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
    Row(429, typed("engine_overloaded_error"), "overloaded"),
    Row(500, typed("InternalServerError"), "http_5xx"),
    Row(500, named("server"), "http_5xx"),
    Row(500, typed("api_error"), "http_5xx"),
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

ROWS = OURS + THEIRS
