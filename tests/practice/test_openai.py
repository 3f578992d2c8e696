"""The practice gateway through the SDK that a site reaches it with."""

from collections.abc import AsyncIterator

import openai
import pytest

from tests.loopback import loopback_client
from threads.practice.models import PRACTICE_MODELS


@pytest.fixture
async def sdk(base_url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=base_url,
        api_key="practice",
        max_retries=0,
        http_client=loopback_client(),
    ) as sdk:
        yield sdk


async def heard(sdk: openai.AsyncOpenAI, model: str) -> tuple[str, list[str]]:
    """The text and the finish reasons of one streamed answer."""
    text, reasons = "", []
    stream = await sdk.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "Hello"}], stream=True
    )
    async with stream:
        async for chunk in stream:
            for choice in chunk.choices:
                text += choice.delta.content or ""
                if choice.finish_reason:
                    reasons.append(str(choice.finish_reason))
    return text, reasons


async def test_the_sdk_lists_the_models(sdk: openai.AsyncOpenAI) -> None:
    listed = [model.id async for model in sdk.models.list()]

    assert listed == [model.wire_id for model in PRACTICE_MODELS]


async def test_the_sdk_hears_a_whole_answer(sdk: openai.AsyncOpenAI) -> None:
    text, reasons = await heard(sdk, "practice/steady")

    assert text.startswith('You wrote "Hello"')
    assert reasons == ["stop"]


@pytest.mark.parametrize("model", ["practice/truncate", "practice/not-a-stream"])
async def test_some_bad_endings_look_clean_to_the_sdk(
    sdk: openai.AsyncOpenAI, model: str
) -> None:
    _, reasons = await heard(sdk, model)

    assert reasons == []


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("practice/reset", openai.APIConnectionError),
        ("practice/cut-always", openai.APIConnectionError),
        ("practice/error-chunk", openai.APIError),
        ("practice/error-first", openai.APIError),
        ("practice/blocked", openai.APIError),
        ("practice/garbled", ValueError),
        ("practice/rate-limited", openai.RateLimitError),
        ("practice/refused", openai.BadRequestError),
        ("practice/too-long", openai.BadRequestError),
        ("practice/key-rejected", openai.AuthenticationError),
        ("practice/no-credit", openai.APIStatusError),
        ("practice/nobody", openai.NotFoundError),
    ],
)
async def test_the_sdk_raises_the_others(
    sdk: openai.AsyncOpenAI, model: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await heard(sdk, model)


async def test_a_rate_limit_says_how_long_to_wait(
    sdk: openai.AsyncOpenAI,
) -> None:
    with pytest.raises(openai.RateLimitError) as caught:
        await heard(sdk, "practice/rate-limited")

    assert caught.value.response.headers["retry-after"] == "1"
