"""What the raw SDK does today with requests and refusals, fact by fact.

As in test_sdk_facts.py: each test says which code of ours a change would retire, or
put in doubt.
"""

import httpx2
import openai
import pytest
from openai import AsyncOpenAI, omit

from tests.fakegateway import (
    DONE,
    FakeGateway,
    Head,
    Reset,
    Script,
    chunk,
    frame,
    reply,
)
from tests.gateway.rawsdk import plain, typed
from tests.loopback import NO_CERTIFICATES, loopback_client

HALF = chunk(content="Half")
STOP = chunk(finish="stop")
BOOM = {"code": 502, "message": "boom"}
AT_ONCE = {"retry-after-ms": "1"}


@pytest.mark.parametrize(
    ("status", "requests"),
    [
        *((400, 1), (401, 1), (402, 1), (403, 1), (404, 1), (413, 1), (422, 1)),
        *((408, 3), (409, 3), (429, 3), (500, 3), (503, 3)),
    ],
)
async def test_the_sdk_retries_these_refusals_and_no_others(
    gateway: FakeGateway, sdk: AsyncOpenAI, status: int, requests: int
) -> None:
    """Puts in doubt: `TRANSPORT_RETRIES`, and that we have no second ladder."""
    gateway.play(reply(status, {"error": BOOM}, headers=AT_ONCE))

    with pytest.raises(openai.APIStatusError) as caught:
        await plain(sdk, [])

    assert caught.value.status_code == status
    assert len(gateway.requests) == requests


async def test_a_streamed_error_is_never_retried(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Puts in doubt: `transport_retries` as the count of refused POSTs alone."""
    gateway.play(Script(frame({"error": BOOM})))

    with pytest.raises(openai.APIError):
        await typed(sdk, [])

    assert len(gateway.requests) == 1


async def test_a_refusal_says_only_its_top_message_and_keeps_only_its_error(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Would retire: `_refused_body`."""
    error = {"message": "Provider returned error", "metadata": {"raw": "the cause"}}
    gateway.play(reply(400, {"error": error, "user_id": "u"}))

    with pytest.raises(openai.BadRequestError) as caught:
        await plain(sdk, [])

    assert str(caught.value) == "Error code: 400 - Provider returned error"
    assert caught.value.body == error
    assert caught.value.response.json() == {"error": error, "user_id": "u"}


async def test_a_refusals_broken_body_escapes_as_the_transports_own_error(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Would retire: what `_BoundedStream` swallows."""
    gateway.play(Script(Head(), Reset(), status=400))

    with pytest.raises(httpx2.ReadError):
        await plain(sdk, [])


async def test_a_redirect_is_followed_unless_the_client_forbids_it(
    gateway: FakeGateway,
) -> None:
    """Would retire: `follow_redirects=False` in `GatewayClient`."""
    async with FakeGateway() as elsewhere:
        location = {"location": elsewhere.base_url + "/chat/completions"}
        gateway.play(reply(307, {}, headers=location))
        elsewhere.play(Script(HALF, STOP, DONE))
        chunks: list[object] = []
        async with AsyncOpenAI(
            base_url=gateway.base_url,
            api_key="sk-raw",
            http_client=openai.DefaultAsyncHttpx2Client(
                trust_env=False, verify=NO_CERTIFICATES
            ),
        ) as sdk:
            await plain(sdk, chunks)

    assert len(chunks) == 2
    assert len(elsewhere.requests) == 1


async def test_organisation_and_project_of_the_environment_are_sent(
    gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would retire: `NO_ACCOUNT_HEADERS`."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-env")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-env")
    gateway.play(Script(HALF, STOP, DONE))
    async with AsyncOpenAI(
        base_url=gateway.base_url, api_key="sk-raw", http_client=loopback_client()
    ) as sdk:
        await plain(sdk, [])
        await plain(
            sdk.with_options(
                default_headers={
                    "OpenAI-Organization": omit,  # type: ignore[dict-item]
                    "OpenAI-Project": omit,  # type: ignore[dict-item]
                }
            ),
            [],
        )

    first, second = gateway.requests
    assert first.headers["openai-organization"] == "org-env"
    assert first.headers["openai-project"] == "proj-env"
    assert not {"openai-organization", "openai-project"} & set(second.headers)
