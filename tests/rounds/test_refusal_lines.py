"""A refusal is one warning in the log, ours, whatever else the libraries do (C3)."""

import logging

import pytest

from tests.canaries import KEY, PROMPT, REASON
from tests.fakegateway import FakeGateway, Script, frame, reply
from tests.rounds.helpers import answered
from tests.rounds.keys import keyed
from threads.models import CallAttempt, Gateway, Thread

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]

STATUSES = (302, 400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 503, 529)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Every warning and error of the run, whoever wrote it."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING
    ]


def refused(status: int, reason: str) -> Script:
    error = {"message": reason, "metadata": {"provider_name": "Some Provider"}}
    return reply(status, {"error": error}, headers={"retry-after-ms": "1"})


@pytest.mark.parametrize("status", STATUSES)
async def test_a_refusal_is_one_warning_with_its_facts(
    thread: Thread,
    gateway: FakeGateway,
    key: str,
    caplog: pytest.LogCaptureFixture,
    status: int,
) -> None:
    gateway.play(refused(status, f"{REASON} {KEY}"))

    cell = await answered(thread, await keyed(gateway), PROMPT)

    (line,) = warnings_in(caplog)
    host = gateway.base_url.removeprefix("http://").removesuffix("/v1")
    assert line.startswith(f"PROVIDER_REFUSED code={cell.code} status={status} ")
    assert f" model=some/model host={host} provider=Some Provider " in line
    assert line.endswith(" reason=given")
    attempt = await CallAttempt.objects.aget()
    assert attempt.provider_reason.startswith(REASON)
    assert KEY not in attempt.provider_reason


async def test_a_refusal_without_a_reason_says_so(
    thread: Thread,
    gateway: FakeGateway,
    key: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway.play(Script(status=400, headers={}, framing="length"))

    await answered(thread, await keyed(gateway), PROMPT)

    (line,) = warnings_in(caplog)
    assert line.endswith(" reason=not given")


@pytest.mark.parametrize("code", [400, 401, 402, 403, 404, 429, 502])
async def test_a_streamed_error_is_one_warning(
    thread: Thread,
    gateway: FakeGateway,
    key: str,
    caplog: pytest.LogCaptureFixture,
    code: int,
) -> None:
    gateway.play(Script(frame({"error": {"code": code, "message": REASON}})))

    cell = await answered(thread, await keyed(gateway), PROMPT)

    (line,) = warnings_in(caplog)
    assert line.startswith("PROVIDER_")
    assert f" code={cell.code} " in line


async def test_a_round_that_is_refused_before_sending_is_one_warning(
    thread: Thread,
    gateway: FakeGateway,
    key: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway.play(refused(401, REASON))
    model = await keyed(gateway)
    await answered(thread, model, PROMPT)
    caplog.clear()

    await answered(thread, model, PROMPT)

    slug = (await Gateway.objects.aget(pk=model.gateway_id)).slug
    assert warnings_in(caplog) == [
        f"KEY_REJECTED gateway={slug} model=some/model code=http_401 status=401 sent=no"
    ]
