"""The JSON of requests that models want in shapes of their own."""

import pytest

from tests.fakegateway import DONE, FakeGateway, Script, chunk, reply
from tests.gateway.calling import AGAIN, PROMPT, called, request_to
from threads.core.faults import Condition
from threads.core.quirks import Override

WHOLE = Script(chunk(content="Yes."), chunk(finish="stop"), DONE)
TOOL: dict[str, object] = {
    "type": "function",
    "function": {"name": "look", "parameters": {}},
}
ASKED = {
    "messages": [{"role": "user", "content": PROMPT}],
    "stream": True,
    "stream_options": {"include_usage": True},
}


@pytest.mark.parametrize(
    ("model", "tools", "override", "said"),
    [
        ("some-model", [TOOL], Override(), {}),
        ("openai/gpt-5.4", [TOOL], Override(), {"reasoning_effort": "none"}),
        ("openai/gpt-5.4", [], Override(), {}),
        ("gpt-5-pro", [TOOL], Override(), {}),
        (
            "gpt-5.4",
            [TOOL],
            Override("high", 500, 0.5, {"seed": 7, "stream": False, "model": "x"}),
            {"reasoning_effort": "high", "max_completion_tokens": 500, "seed": 7},
        ),
        (
            "some-model",
            [],
            Override("", 500, 0.5, {"stream_options": {"include_usage": False}}),
            {
                "max_tokens": 500,
                "temperature": 0.5,
                "stream_options": {"include_usage": False},
            },
        ),
    ],
    ids=range(6),
)
async def test_a_request_says_what_its_model_needs_and_the_ledger_says_so(
    gateway: FakeGateway,
    model: str,
    tools: list[dict[str, object]],
    override: Override,
    said: dict[str, object],
) -> None:
    gateway.play(WHOLE)

    request = request_to(gateway.base_url, model=model, tools=tools, override=override)
    record = (await called(request)).record

    (sent,) = gateway.requests
    offered = {"tools": tools} if tools else {}
    assert sent.json == {"model": model} | ASKED | offered | said
    extras = sorted({"seed", "stream_options"} & override.extras.keys())
    named = {name: value for name, value in said.items() if name not in extras}
    named |= {"extras": extras} if extras else {}
    named |= (
        {}
        if "stream_options" in extras
        else {"stream_options": ASKED["stream_options"]}
    )
    assert record.request_shape == named | {"messages": 1, "tools": len(tools)}  # fmt: skip


async def test_a_call_that_is_tried_again_has_the_same_shape(
    gateway: FakeGateway,
) -> None:
    override = Override("low", 500, 1.0, {"seed": 7})
    request = request_to(
        gateway.base_url, model="gpt-5.4", tools=[TOOL], override=override
    )
    gateway.play(Script(chunk()), WHOLE)

    tried = await called(request, retry=AGAIN)

    first, second = gateway.requests
    assert first.body == second.body
    assert len({repr(record.request_shape) for record in tried.records}) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "property 'stream_options' is unsupported"}),
        (422, {"message": "stream_options: Extra inputs are not permitted"}),
        (
            400,
            {
                "message": "Function tools with reasoning_effort are not supported for "
                "gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.",
                "type": "invalid_request_error",
                "param": "reasoning_effort",
                "code": None,
            },
        ),
        (
            400,
            {
                "message": "Unsupported value: 'reasoning_effort' does not support "
                "'none' with this model.",
                "type": "invalid_request_error",
            },
        ),
        (400, {"message": "Unsupported parameter: 'max_tokens'", "code": None}),
        (400, {"message": "max_tokens is too large: 900000."}),
        (
            400,
            {
                "message": "max_tokens: 900000 > 64000, which is the maximum allowed "
                "number of output tokens for this model"
            },
        ),
        (
            400,
            {
                "message": "`temperature` is deprecated for this model.",
                "type": "invalid_request_error",
            },
        ),
    ],
    ids=range(8),
)
async def test_a_parameter_that_is_refused_is_a_setting_and_nothing_is_sent_again(
    gateway: FakeGateway, status: int, error: dict[str, object]
) -> None:
    gateway.play(reply(status, {"error": error}), WHOLE)

    verdict = (await called(request_to(gateway.base_url), retry=AGAIN)).verdict

    assert (verdict.code, verdict.condition) == (
        "provider_config_error",
        Condition.OUR_CONFIG,
    )
    assert verdict.sentence_key == "config.model_settings"
    assert len(gateway.requests) == 1
