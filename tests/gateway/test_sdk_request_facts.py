"""What the raw SDK does today with addresses and requests, fact by fact.

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
    Script,
    Stall,
    chunk,
    reply,
)
from tests.gateway.rawsdk import opened, plain, typed
from tests.loopback import NO_CERTIFICATES, loopback_client

HALF = chunk(content="Half")
STOP = chunk(finish="stop")


@pytest.mark.parametrize("status", [201, 203, 206])
async def test_any_success_is_a_stream(
    gateway: FakeGateway, sdk: AsyncOpenAI, status: int
) -> None:
    """Puts in doubt: that `TappedTransport` goes by `is_success`."""
    gateway.play(Script(HALF, STOP, DONE, status=status))
    chunks: list[object] = []

    await plain(sdk, chunks)

    assert len(chunks) == 2


async def test_our_way_asks_for_an_event_stream(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Would retire: the `accept` header in `GatewayClient.open`."""
    gateway.play(Script(HALF, STOP, DONE))

    await typed(sdk, [])
    await plain(sdk, [])

    accepted = [request.headers["accept"] for request in gateway.requests]
    assert accepted == ["application/json", "text/event-stream"]


async def test_a_timeout_is_a_connection_error_too(gateway: FakeGateway) -> None:
    """Puts in doubt: the order of the `except` clauses around a request."""
    gateway.play(Script(Stall()))
    async with AsyncOpenAI(
        base_url=gateway.base_url,
        api_key="sk-raw",
        http_client=loopback_client(),
        timeout=httpx2.Timeout(5, read=0.05),
        max_retries=0,
    ) as sdk:
        with pytest.raises(openai.APITimeoutError) as caught:
            await opened(sdk)

    assert isinstance(caught.value, openai.APIConnectionError)


def test_an_address_that_is_none_is_refused_when_the_client_is_made() -> None:
    """Would retire: building `GatewayClient._sdk` at the first request only."""
    with pytest.raises(httpx2.InvalidURL):
        AsyncOpenAI(base_url="http://localhost:notaport/v1", api_key="sk-raw")


async def test_an_unknown_protocol_is_a_connection_error_with_its_cause() -> None:
    """Puts in doubt: that `connect_config` is read off the chain of causes."""
    async with AsyncOpenAI(
        base_url="gopher://localhost/v1",
        api_key="sk-raw",
        http_client=loopback_client(),
        max_retries=0,
    ) as sdk:
        with pytest.raises(openai.APIConnectionError) as caught:
            await opened(sdk)

    assert isinstance(caught.value.__cause__, httpx2.UnsupportedProtocol)


async def test_messages_that_are_no_text_are_refused_before_anything_is_sent(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Puts in doubt: that a `UnicodeEncodeError` to UTF-8 is a bug of ours."""
    with pytest.raises(UnicodeEncodeError) as caught:
        await sdk.post("/chat/completions", body={"a": "\ud800"}, cast_to=object)

    assert caught.value.encoding == "utf-8"
    assert gateway.requests == []


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


async def test_proxies_of_the_environment_are_used_unless_the_client_forbids_it(
    gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would retire: `trust_env=False` in `GatewayClient`."""
    monkeypatch.setenv("HTTP_PROXY", gateway.base_url.removesuffix("/v1"))
    gateway.play(Script(HALF, STOP, DONE))
    chunks: list[object] = []

    async with AsyncOpenAI(
        base_url="http://gateway.test/v1",
        api_key="sk-raw",
        http_client=openai.DefaultAsyncHttpx2Client(verify=NO_CERTIFICATES),
    ) as sdk:
        await plain(sdk, chunks)

    assert len(chunks) == 2
    assert gateway.requests[0].path == "http://gateway.test/v1/chat/completions"


async def test_headers_that_the_environment_names_are_sent_to_every_gateway(
    gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Says: an operator's `OPENAI_CUSTOM_HEADERS` reach all of our gateways."""
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-title: chat")
    gateway.play(Script(HALF, STOP, DONE))

    async with AsyncOpenAI(
        base_url=gateway.base_url, api_key="sk-raw", http_client=loopback_client()
    ) as sdk:
        await plain(sdk, [])

    assert gateway.requests[0].headers["x-title"] == "chat"
