"""A refused POST: read, redacted, and asked again only where the SDK does."""

import gzip
import json

import pytest

from tests.fakegateway import (
    DONE,
    JSON,
    Close,
    FakeGateway,
    Head,
    Reset,
    Script,
    Stall,
    chunk,
    reply,
)
from tests.gateway.calling import KEY, Called, answered, called, request_to
from threads.core.faults import Condition, Ending, KeyEffect
from threads.gateway import transport
from threads.gateway.clients import close_clients

AT_ONCE = {"retry-after-ms": "1"}
"""Spares the tests the SDK's back-off."""

ANSWER = Script(chunk(content="Half"), chunk(finish="stop"), DONE)
BAD = {"error": {"message": "bad", "input": "canary"}}


@pytest.mark.parametrize(
    ("status", "requests", "code"),
    [
        (400, 1, "http_400"),
        (401, 1, "http_401"),
        (402, 1, "quota_exhausted"),
        (403, 1, "http_403"),
        (404, 1, "model_not_found"),
        (413, 1, "context_too_long"),
        (418, 1, "http_other"),
        (422, 1, "http_422"),
        (408, 3, "http_408"),
        (409, 3, "http_409"),
        (429, 3, "http_429"),
        (500, 3, "http_5xx"),
        (502, 3, "http_5xx"),
        (503, 3, "overloaded"),
        (529, 3, "overloaded"),
    ],
)
async def test_a_refusal_is_asked_again_by_the_sdk_alone_and_counted(
    gateway: FakeGateway, status: int, requests: int, code: str
) -> None:
    called = await answered(
        gateway, reply(status, {"error": {"message": "no"}}, headers=AT_ONCE)
    )

    assert len(gateway.requests) == requests
    assert called.record.transport_retries == requests - 1
    assert called.record.retry_decision == ("transport" if requests > 1 else "none")
    assert called.verdict.ending is Ending.REFUSED
    assert (called.record.code, called.record.http_status) == (code, status)
    assert called.record.outcome == "refused"
    assert called.record.attempt == 1


async def test_a_refusal_that_passes_is_no_fault(gateway: FakeGateway) -> None:
    called = await answered(gateway, reply(503, BAD, headers=AT_ONCE), ANSWER)

    assert called.verdict.ending is Ending.COMPLETED
    assert called.record.transport_retries == 1
    first, second = gateway.requests
    assert first.body == second.body


async def test_a_wait_longer_than_the_sdk_allows_is_not_waited(
    gateway: FakeGateway,
) -> None:
    called = await answered(gateway, reply(429, BAD, headers={"retry-after": "7139"}))

    assert len(gateway.requests) == 1
    assert called.verdict.code == "http_429"
    assert called.verdict.retry_after_seconds == 7139.0


@pytest.mark.parametrize("code", ["insufficient_quota", "credit_balance_exhausted"])
async def test_a_429_about_money_is_not_transient(
    gateway: FakeGateway, code: str
) -> None:
    called = await answered(
        gateway, reply(429, {"error": {"code": code}}, headers=AT_ONCE)
    )

    assert called.verdict.code == "quota_exhausted"
    assert called.verdict.key_effect is KeyEffect.EXHAUSTED
    assert not called.verdict.transient


def body_of(body: bytes | str, **headers: str) -> Script:
    return Script(body, status=400, headers=JSON | headers, framing="length")


BODIES = {
    "an object": (reply(400, BAD), "bad"),
    "a list": (reply(400, [{"message": "bad"}]), "bad"),
    "a string": (reply(400, "bad"), "bad"),
    "no JSON": (body_of("bad"), "bad"),
    "a page": (body_of("<html><h1>bad</h1></html>"), "bad"),
    "nothing": (body_of(""), ""),
    "null": (body_of("null"), ""),
    "compressed": (
        body_of(
            gzip.compress(json.dumps(BAD).encode()), **{"content-encoding": "gzip"}
        ),
        "bad",
    ),
    "not compressed as claimed": (
        body_of(json.dumps(BAD), **{"content-encoding": "gzip"}),
        "bad",
    ),
    "less than promised": (
        Script(
            json.dumps(BAD),
            Close(),
            status=400,
            headers=JSON | {"content-length": "999"},
            framing="length",
        ),
        "bad",
    ),
    "cut by a reset": (Script(Head(), Reset(), status=400), ""),
    "of absurd depth": (body_of("[" * 100_000), "[" * 299 + "…"),
    "of another alphabet": (body_of(b"b\xe4d"), "b\ufffdd"),
}


@pytest.mark.parametrize(("script", "reason"), BODIES.values(), ids=BODIES)
async def test_every_error_body_is_read_as_far_as_it_goes(
    gateway: FakeGateway, script: Script, reason: str
) -> None:
    called = await answered(gateway, script)

    assert called.verdict.code == "http_400"
    assert called.record.provider_reason == reason
    assert called.record.http_status == 400


async def test_an_error_body_that_never_ends_is_not_read_for_ever(
    gateway: FakeGateway,
) -> None:
    endless = Script(*(["x" * 65_536] * 64), Stall(), status=400)

    called = await answered(gateway, endless)

    assert called.verdict.code == "http_400"
    assert len(called.record.provider_reason) == 300
    await gateway.requests[0].wait_closed()


async def test_an_error_body_that_never_comes_does_not_hide_its_status(
    gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "REFUSAL_SECONDS", 0.1)

    called = await answered(gateway, Script(Head(), Stall(), status=403))

    assert called.verdict.code == "http_403"
    await gateway.requests[0].wait_closed()


@pytest.mark.parametrize(
    "script",
    [
        reply(401, {"error": {"message": f"Incorrect API key provided: {KEY}."}}),
        reply(401, {"error": {"message": f"Authorization: Bearer {KEY}"}}),
        reply(401, {"error": {"message": "no", "metadata": {"provider_name": KEY}}}),
        Script(f"<html><title>{KEY}</title>", status=401),
        Script(chunk(content="x"), 'data: {"error": "' + KEY + '"}\n\n'),
    ],
    ids=["message", "header", "provider", "page", "streamed"],
)
async def test_a_key_that_the_upstream_echoes_is_taken_out(
    gateway: FakeGateway, script: Script
) -> None:
    called = await answered(gateway, script)

    assert KEY not in repr(called.verdict)
    assert KEY not in repr(called.record)


async def test_the_key_that_we_sent_is_in_no_value_of_ours(
    gateway: FakeGateway,
) -> None:
    request = request_to(gateway.base_url)
    gateway.play(ANSWER)

    result = await called(request)

    assert gateway.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(request)
    assert KEY not in repr(result)


async def test_a_redirect_is_not_followed(gateway: FakeGateway) -> None:
    async with FakeGateway() as elsewhere:
        location = {"location": elsewhere.base_url + "/chat/completions"}
        for status in (301, 302, 307, 308):
            called = await answered(gateway, reply(status, {}, headers=location))

            assert called.verdict.code == "http_3xx"
            assert called.verdict.condition is Condition.OUR_CONFIG

        assert len(gateway.requests) == 4
        assert elsewhere.accepted == 0


def is_unreachable(called: Called, code: str) -> bool:
    record = called.record
    assert record.http_status is None
    assert record.stream_state == "failed_before_display"
    return record.code == code and called.verdict.ending is Ending.REFUSED


async def test_a_refused_connection_is_the_network(gateway: FakeGateway) -> None:
    async with FakeGateway() as gone:
        base_url = gone.base_url

    result = await called(request_to(base_url))

    assert is_unreachable(result, "connect_failed")
    assert result.verdict.condition is Condition.NETWORK
    assert result.record.transport_retries == 2


@pytest.mark.parametrize(
    "script",
    [
        Script(Close(), framing="raw"),
        Script(Reset(), framing="raw"),
        Script("request blocked: too many requests\r\n\r\n", framing="raw"),
    ],
    ids=["close", "reset", "nonsense"],
)
async def test_a_connection_without_an_answer_is_the_network(
    gateway: FakeGateway, script: Script
) -> None:
    result = await answered(gateway, script)

    assert is_unreachable(result, "connect_failed")
    assert len(gateway.requests) == 3


@pytest.mark.parametrize(
    "base_url",
    ["", "no-address", "http://", "ftp://host/v1", "http://host:99999/v1", "http://[:"],
)
async def test_an_address_that_is_none_is_our_configuration(base_url: str) -> None:
    result = await called(request_to(base_url))

    assert is_unreachable(result, "connect_config")
    assert not result.verdict.transient


async def test_a_key_that_no_header_can_carry_is_a_fault_and_no_exception(
    gateway: FakeGateway,
) -> None:
    for key in ("sk-é-4711", "sk-4711\nx: y"):
        result = await called(request_to(gateway.base_url, key=key))

        assert result.verdict.ending is Ending.REFUSED
        assert key not in repr(result)
        await close_clients()
    assert gateway.requests == []
