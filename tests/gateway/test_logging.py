"""One warning for each fault, with its marker; and never a word of what was said."""

import logging

import pytest

from tests.fakegateway import (
    DONE,
    FakeGateway,
    Reset,
    Script,
    Stall,
    chunk,
    frame,
    reply,
)
from tests.gateway.calling import KEY, PATIENT, PROMPT, answered, called, request_to
from threads.gateway.calls import CallBounds

ANSWER, THOUGHT, REASON = "canary-answer", "canary-thought", "canary-reason"
HALF = chunk(content=ANSWER)
BOUNDS = CallBounds(first_data_seconds=30, idle_seconds=1)
BLOCK = {"error": {"code": 403, "message": f"{REASON} blocked"}}

FAULTS = {
    "stall": (Script(HALF, Stall()), "PROVIDER_STREAM_STALLED"),
    "reset": (Script(HALF, Reset()), "PROVIDER_STREAM_TRUNCATED"),
    "cut": (Script(HALF), "PROVIDER_STREAM_TRUNCATED"),
    "error": (
        Script(HALF, frame({"error": {"code": 502, "message": REASON}})),
        "PROVIDER_STREAM_FAULTED",
    ),
    "finish error": (Script(HALF, chunk(finish="error")), "PROVIDER_STREAM_FAULTED"),
    "unreadable": (
        Script(HALF, f"data: {ANSWER}\n\n"),
        "PROVIDER_STREAM_FAULTED",
    ),
    "page": (Script(f"<p>{REASON}"), "PROVIDER_STREAM_FAULTED"),
    "empty": (Script(chunk(reasoning=THOUGHT), DONE), "PROVIDER_STREAM_EMPTY"),
    "streamed block": (Script(frame(BLOCK)), "PROVIDER_REFUSED"),
    "refusal": (
        reply(400, {"error": {"message": f"{REASON} {KEY}", "input": PROMPT}}),
        "PROVIDER_REFUSED",
    ),
    "refusal, retried": (
        reply(500, {"error": REASON}, headers={"retry-after-ms": "1"}),
        "PROVIDER_REFUSED",
    ),
}


LIBRARIES = ("openai", "openai._base_client", "httpx2", "httpcore2", "asyncio")


@pytest.fixture(autouse=True)
def _everyone_talks(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("", "threads", *LIBRARIES):
        caplog.set_level(logging.DEBUG, logger=name)


def ours(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [r for r in caplog.records if r.name.startswith("threads.")]


@pytest.mark.parametrize(("script", "marker"), FAULTS.values(), ids=FAULTS)
async def test_a_fault_is_one_warning_with_its_marker_and_without_content(
    gateway: FakeGateway,
    caplog: pytest.LogCaptureFixture,
    script: Script,
    marker: str,
) -> None:
    result = await answered(gateway, script, bounds=BOUNDS)

    (record,) = ours(caplog)
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(f"{marker} code={result.record.code} ")
    assert f"host={result.record.host} " in record.getMessage()
    assert "model=some-model " in record.getMessage()
    assert_silent(caplog)


def assert_silent(caplog: pytest.LogCaptureFixture) -> None:
    """Look at every record of every library, with its arguments."""
    said = "\n".join(f"{r.getMessage()} {r.args!r}" for r in caplog.records)
    for canary in (PROMPT, ANSWER, THOUGHT, REASON, KEY):
        assert canary not in said


async def test_a_whole_answer_is_no_warning_and_leaves_no_word(
    gateway: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    await answered(
        gateway,
        Script(chunk(reasoning=THOUGHT), HALF, chunk(finish="stop"), DONE),
        bounds=PATIENT,
    )

    assert any(record.name.startswith("openai") for record in caplog.records)
    assert ours(caplog) == []
    assert_silent(caplog)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_an_answer_with_a_note_is_no_warning(
    gateway: FakeGateway, caplog: pytest.LogCaptureFixture, finish: str
) -> None:
    await answered(gateway, Script(HALF, chunk(finish=finish), DONE))

    assert ours(caplog) == []


async def test_an_unreachable_gateway_is_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await called(request_to("http://user:canary-password@127.0.0.1:1/v1"))

    (record,) = ours(caplog)
    assert record.getMessage().startswith("PROVIDER_REFUSED code=connect_failed ")
    assert "host=127.0.0.1:1 " in record.getMessage()
    assert "canary-password" not in caplog.text


async def test_what_a_gateway_calls_itself_cannot_forge_a_log_line(
    gateway: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    name = "P\nWARNING forged"

    await answered(gateway, Script(chunk(content="x", provider=name)))
    await answered(
        gateway, reply(400, {"error": {"metadata": {"provider_name": name}}})
    )

    messages = [record.getMessage() for record in ours(caplog)]
    assert len(messages) == 2
    assert all("provider=P WARNING forged" in message for message in messages)
    assert not any("\n" in message for message in messages)
