"""What the raw SDK does today with refusals, and when it tries again, fact by fact.

As in test_sdk_facts.py: each test says which code of ours a change would retire, or
put in doubt.
"""

from contextvars import ContextVar

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

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


@pytest.mark.parametrize(
    ("status", "header", "requests"),
    [
        (429, {"retry-after": "121"}, 1),
        (429, {"retry-after-ms": "120001"}, 1),
        (503, {"x-should-retry": "false"}, 1),
        (400, {"x-should-retry": "true"} | AT_ONCE, 3),
    ],
    ids=["over 120 s", "over 120 s in ms", "told not to", "told to"],
)
async def test_headers_of_a_refusal_decide_whether_the_sdk_tries_again(
    gateway: FakeGateway,
    sdk: AsyncOpenAI,
    status: int,
    header: dict[str, str],
    requests: int,
) -> None:
    """Puts in doubt: that no wait of the SDK outlasts the bound of the first data."""
    gateway.play(reply(status, {"error": BOOM}, headers=header))

    with pytest.raises(openai.APIStatusError):
        await plain(sdk, [])

    assert len(gateway.requests) == requests


class CountingTransport(httpx2.AsyncHTTPTransport):
    """Counts what passes, in a context variable, as our transport does."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        passed.get().append(request.headers["x-stainless-retry-count"])
        return await super().handle_async_request(request)


passed: ContextVar[list[str]] = ContextVar("passed")


@pytest.mark.parametrize(
    "script",
    [reply(500, {}, headers=AT_ONCE), Script(Reset())],
    ids=["refused", "reset before the head"],
)
async def test_every_try_passes_the_transport_in_the_context_of_its_call(
    gateway: FakeGateway, script: Script
) -> None:
    """Puts in doubt: `Wire.tries`, and `current_wire` as the way to it (C6)."""
    gateway.play(script, Script(HALF, STOP, DONE))
    counts: list[str] = []
    passed.set(counts)
    async with AsyncOpenAI(
        base_url=gateway.base_url,
        api_key="sk-raw",
        max_retries=2,
        http_client=httpx2.AsyncClient(
            transport=CountingTransport(verify=NO_CERTIFICATES), trust_env=False
        ),
    ) as sdk:
        await plain(sdk, [])

    assert counts == ["0", "1"]


async def test_a_connection_that_breaks_before_the_head_is_tried_again_then_raised(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Puts in doubt: `Arrival.UNREACHABLE`, and whose words it reads."""
    gateway.play(Script(Reset()))

    with pytest.raises(openai.APIConnectionError) as caught:
        await plain(sdk.with_options(max_retries=1), [])

    assert isinstance(caught.value.__cause__, httpx2.ReadError)
    assert not isinstance(caught.value, openai.APIStatusError)
    assert len(gateway.requests) == 2


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


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ({"content-type": "text/html; charset=zlib"}, AssertionError),
        ({"content-type": "text/html; charset=undefined"}, UnicodeError),
        (
            {"content-type": "text/html", "content-encoding": "gzip"},
            httpx2.DecodingError,
        ),
    ],
    ids=["a codec that is none", "a codec that refuses", "no gzip"],
)
async def test_a_refusals_body_is_decoded_as_its_head_says_and_what_fails_escapes(
    gateway: FakeGateway, sdk: AsyncOpenAI, kind: dict[str, str], error: type[Exception]
) -> None:
    """Would retire: what `TappedTransport` takes out of the head of a refusal."""
    gateway.play(Script(b"Bad gateway", status=400, headers=kind, framing="length"))

    with pytest.raises(error) as caught:
        await plain(sdk, [])

    assert not isinstance(caught.value, openai.OpenAIError)


async def test_a_redirect_that_is_not_followed_is_a_refusal(
    gateway: FakeGateway, sdk: AsyncOpenAI
) -> None:
    """Puts in doubt: `http_3xx` as a status like any other (C10)."""
    gateway.play(reply(307, {}, headers={"location": "/elsewhere"}))
    forbidding = loopback_client()
    forbidding.follow_redirects = False

    with pytest.raises(openai.APIStatusError) as caught:
        await plain(sdk.with_options(http_client=forbidding), [])

    await forbidding.aclose()
    assert caught.value.status_code == 307
    assert len(gateway.requests) == 1
