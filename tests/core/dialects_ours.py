"""Refusals about what was asked, with which key, on whose account."""

from tests.core.row import Row, named, said, typed

OURS = [
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
    Row(
        403,
        said("Input token count + max_tokens must be less than the context length"),
        "context_too_long",
    ),
    Row(
        429,
        {
            "code": "Some resource has been exhausted",
            "error": "Your team has reached its monthly spending limit",
        },
        "quota_exhausted",
    ),
    Row(413, said("Request Entity Too Large"), "context_too_long"),
    Row(413, said("no words we know"), "context_too_long"),
    # Rejected, reason as given.
    Row(400, said("max_tokens must be positive"), "http_400"),
    Row(422, said("Unprocessable"), "http_422"),
    Row(400, typed("invalid_request_error"), "http_400"),
    Row(400, named("invalid_prompt"), "http_400"),
    Row(400, named("tool_use_failed"), "http_400"),
    Row(400, said("Validation: 3 validation errors"), "http_400"),
    Row(412, named("precondition_failed"), "http_400"),
    Row(400, named("max_tokens_exceeded"), "http_400"),
    *(
        Row(status, named(code), "http_400")
        for status, code in (
            (400, "invalid_image"),
            (400, "image_too_large"),
            (400, "image_too_small"),
            (400, "unsupported_image_format"),
            (404, "image_not_found"),
            (400, "image_download_failed"),
            (400, "image_input_unsupported"),
        )
    ),
    Row(
        400,
        said("messages.1.content.0.image.source: image exceeds 5 MB maximum"),
        "http_400",
    ),
    # Our own way of putting it.
    Row(
        400,
        said("tool_use block must have a corresponding tool_result"),
        "bad_history",
    ),
    Row(
        400,
        said(
            "messages.4: `tool_use` ids were found without `tool_result` blocks "
            "immediately after: toolu_01"
        ),
        "bad_history",
    ),
    Row(
        400,
        said(
            "An assistant message with 'tool_calls' must be followed by tool messages "
            "responding to each 'tool_call_id'"
        ),
        "bad_history",
    ),
    Row(
        400,
        said("messages with role 'tool' must be a response to a preceding message"),
        "bad_history",
    ),
    Row(400, said("Conversation roles must alternate user/assistant"), "bad_history"),
    Row(400, said("messages.2: text content must be non-empty"), "bad_history"),
    Row(422, said("Invalid type for 'messages[1].content'"), "bad_history"),
    Row(
        400,
        said("tools.3.custom.input_schema: JSON schema is invalid"),
        "bad_tool_schema",
    ),
    Row(
        400,
        said("Invalid schema for function 'look': None is not valid"),
        "bad_tool_schema",
    ),
    Row(400, named("invalid_function_parameters"), "bad_tool_schema"),
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
    Row(404, said("No endpoints found that support tool use"), "provider_config_error"),
    Row(400, said("model x does not support tools"), "provider_config_error"),
    Row(400, named("max_output_tokens_too_large"), "provider_config_error"),
    Row(400, named("fallback_not_allowed"), "provider_config_error"),
    Row(
        422,
        {
            "detail": [
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "stream_options"],
                    "msg": "Extra inputs are not permitted",
                }
            ]
        },
        "provider_config_error",
    ),
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
    Row(403, said("Denied by your organization's policy"), "request_blocked"),
    Row(400, said("Input data may contain inappropriate content."), "request_blocked"),
    Row(400, said("rejected as a result of our safety system"), "request_blocked"),
    Row(403, said("Request blocked: an API key was found in it"), "request_blocked"),
    Row(403, named("permission_denied", message="blocked"), "request_blocked"),
    Row(400, typed("DataInspectionFailed"), "request_blocked"),
    Row(
        400,
        said("potentially unsafe or sensitive content in input", code="1301"),
        "request_blocked",
    ),
    Row(429, said("余额不足或无可用资源包,请充值。", code="1113"), "quota_exhausted"),
    Row(400, typed("ContentPolicyViolationError"), "request_blocked"),
    # The key.
    Row(401, said("Missing Authentication header"), "http_401", "no_key"),
    Row(401, said("No auth credentials found"), "http_401", "no_key"),
    Row(401, said("You didn't provide an API key."), "http_401", "no_key"),
    Row(400, said("API key not valid. Please pass a valid key."), "http_401"),
    Row(401, typed("AuthenticationError"), "http_401"),
    Row(401, named("auth_backend_unavailable"), "auth_backend_unavailable"),
    Row(503, named("platform_maintenance"), "auth_backend_unavailable"),
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
    Row(402, named("plan_allowance_exhausted"), "quota_exhausted"),
    Row(402, named("plan_required"), "quota_exhausted"),
    Row(400, said("Your credit balance is too low to use it"), "quota_exhausted"),
    Row(403, named("INSUFFICIENT_BALANCE"), "quota_exhausted"),
    Row(
        429,
        typed("insufficient_quota", code="project_spend_limit_exceeded"),
        "quota_exhausted",
    ),
    Row(429, typed("rate_limit_error", code="insufficient_quota"), "quota_exhausted"),
    Row(429, typed("insufficient_quota", code="rate_limit_error"), "quota_exhausted"),
    Row(
        429,
        named("rate_limit_exceeded", metadata={"limit_source": "plan_window_week"}),
        "quota_exhausted",
    ),
    Row(
        402,
        said("no", metadata={"limit_source": "openrouter_credits"}),
        "quota_exhausted",
    ),
    Row(
        402,
        said("no", metadata={"limit_source": "openrouter_key_limit"}),
        "budget_exceeded",
    ),
    Row(
        400,
        said("Budget has been exceeded! Current cost: 1, Max budget: 1"),
        "budget_exceeded",
    ),
    # Refused, by whom and why.
    Row(403, said("Key limit exceeded (monthly limit)"), "http_403", "key"),
    Row(403, said("This API key has been disabled"), "http_403", "key"),
    Row(403, said("the allowance of that key was exceeded"), "http_403", "key"),
    Row(403, named("key_blocked"), "http_403", "key"),
    Row(403, named("key_expired"), "http_403", "key"),
    Row(403, named("key_model_not_allowed"), "http_403", "account"),
    Row(403, named("key_route_not_allowed"), "http_403", "account"),
    Row(403, named("organization_hold"), "http_403", "account"),
    Row(403, said("organization is on hold"), "http_403", "account"),
    Row(403, said("insufficient permissions for this"), "http_403", "account"),
    Row(403, named("region_restricted"), "region_restricted"),
    Row(403, said("not available in your country"), "region_restricted"),
    Row(403, named("unsupported_country_region_territory"), "region_restricted"),
    Row(403, said("Forbidden"), "http_403"),
    Row(403, named("permission_denied"), "http_403", "account"),
    Row(403, typed("permission_error"), "http_403", "account"),
    Row(403, typed("forbidden"), "http_403"),
    Row(400, said("User location is not supported for use"), "region_restricted"),
    Row(409, said("Conflict"), "http_409"),
    Row(418, said("I'm a teapot"), "http_other"),
    Row(307, said("Moved"), "http_3xx"),
]
