"""The ledger row of an attempt: what was asked, what came, and how far it got."""

from datetime import UTC, datetime

import pytest

from tests.fakegateway import (
    DONE,
    EVENT_STREAM,
    FakeGateway,
    Reset,
    Script,
    chunk,
    frame,
)
from tests.gateway.calling import KEY, PROMPT, answered, called, request_to
from threads.gateway.client import Endpoint

HALF = chunk(content="Half")
STOP = chunk(finish="stop")
ERROR = frame({"error": {"code": 502, "message": "boom"}})


@pytest.mark.parametrize(
    ("script", "state", "committed", "done"),
    [
        (Script(HALF, STOP, DONE), "complete", True, True),
        (Script(HALF, STOP), "complete", True, False),
        (Script(HALF, Reset()), "partial", True, False),
        (Script(chunk(reasoning="hm"), Reset()), "partial", False, False),
        (Script(chunk(), Reset()), "failed_before_display", False, False),
        (Script(ERROR), "failed_before_display", False, False),
    ],
    ids=["complete", "no [DONE]", "partial", "thought", "role only", "error"],
)
async def test_the_state_says_how_far_the_stream_got(
    gateway: FakeGateway, script: Script, state: str, committed: bool, done: bool
) -> None:
    record = (await answered(gateway, script)).record

    assert record.stream_state == state
    assert record.output_committed is committed
    assert record.done_received is done


async def test_a_whole_attempt_is_recorded_in_full(gateway: FakeGateway) -> None:
    before = datetime.now(UTC)
    gateway.play(
        Script(
            ": PROCESSING\n\n",
            chunk(),
            chunk(content="Half", provider="P"),
            frame({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop",
                                "native_finish_reason": "end_turn"}]}),
            chunk(usage={"prompt_tokens": 3, "completion_tokens": 5}),
            DONE,
            headers=EVENT_STREAM | {"x-request-id": "req_1"},
        )
    )  # fmt: skip

    record = (await called(request_to(gateway.base_url))).record

    assert (record.call, record.attempt) == (1, 1)
    assert record.model_requested == "some-model"
    assert (record.model_served, record.provider) == ("fake-model", "P")
    assert record.host == gateway.base_url.split("/")[2]
    assert (record.ending, record.outcome) == ("completed", "completed")
    assert record.request_id == "req_1"
    assert (record.comments_seen, record.chunks_received) == (1, 4)
    assert record.silent_updates == 1
    assert (record.finish_reason, record.native_finish_reason) == ("stop", "end_turn")
    assert (record.input_tokens, record.output_tokens) == (3, 5)
    assert record.usage_source == "provider"
    assert (record.transport_retries, record.wait_ms) == (0, 0)
    assert before <= record.started_at <= datetime.now(UTC)
    times = (record.first_data_ms, record.first_output_ms, record.last_update_ms)
    assert None not in times
    assert list(times) == sorted(times, key=lambda value: value or 0)


async def test_unknown_usage_is_not_zero(gateway: FakeGateway) -> None:
    record = (await answered(gateway, Script(HALF, STOP, DONE))).record

    assert (record.input_tokens, record.output_tokens) == (None, None)
    assert record.usage_source == "unknown"


@pytest.mark.parametrize(
    ("usages", "counts"),
    [
        ([{"prompt_tokens": 1, "completion_tokens": 1}, None], (1, 1)),
        (
            [
                {"prompt_tokens": 1, "completion_tokens": 1},
                {"prompt_tokens": 1, "completion_tokens": 9},
            ],
            (1, 9),
        ),
        ([{"prompt_tokens": True, "completion_tokens": 5}], (None, 5)),
        ([{"prompt_tokens": -1, "completion_tokens": 5}], (None, 5)),
        ([{"prompt_tokens": 10**30, "completion_tokens": 5}], (None, 5)),
        ([{"prompt_tokens": "3", "completion_tokens": 5}], (None, 5)),
    ],
    ids=range(6),
)
async def test_the_last_usage_counts_as_far_as_it_is_one(
    gateway: FakeGateway,
    usages: list[dict[str, object] | None],
    counts: tuple[int | None, int | None],
) -> None:
    ends = [chunk(content="x", usage=usage) for usage in usages]

    record = (await answered(gateway, Script(*ends, STOP, DONE))).record

    assert (record.input_tokens, record.output_tokens) == counts


@pytest.mark.parametrize("sends_usage", [True, False])
async def test_the_request_says_what_we_want_and_no_more(
    gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch, sends_usage: bool
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-environment")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-the-environment")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    gateway.play(Script(HALF, STOP, DONE))

    await called(request_to(gateway.base_url, sends_usage=sends_usage))

    (request,) = gateway.requests
    options = {"stream_options": {"include_usage": True}} if sends_usage else {}
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert (
        request.json
        == {
            "model": "some-model",
            "messages": [{"role": "user", "content": PROMPT}],
            "stream": True,
        }
        | options
    )
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["accept"] == "text/event-stream"
    assert request.headers["accept-encoding"] == "identity"
    assert "of-the-environment" not in repr(request.headers)


async def test_the_same_request_gives_the_same_bytes(gateway: FakeGateway) -> None:
    gateway.play(Script(HALF, STOP, DONE))

    for _ in range(2):
        await called(request_to(gateway.base_url))

    first, second = gateway.requests
    assert first.body == second.body


@pytest.mark.parametrize(
    ("base_url", "host", "is_local"),
    [
        ("http://127.0.0.1:8080/v1", "127.0.0.1:8080", True),
        ("http://localhost/v1", "localhost", True),
        ("http://[::1]:1/v1", "[::1]:1", True),
        ("http://192.168.1.9/v1", "192.168.1.9", True),
        ("http://ollama:11434/v1", "ollama:11434", True),
        ("http://box.local/v1", "box.local", True),
        ("https://api.openai.com/v1", "api.openai.com", False),
        ("https://me:secret@example.com/v1", "example.com", False),
        ("https://8.8.8.8/v1", "8.8.8.8", False),
        ("https://localhost.example.com/v1", "localhost.example.com", False),
    ],
)
def test_an_endpoint_shows_its_host_and_knows_whether_it_is_ours(
    base_url: str, host: str, is_local: bool
) -> None:
    endpoint = Endpoint(base_url, "sk-hidden")

    assert (endpoint.host, endpoint.is_local) == (host, is_local)
    assert "sk-hidden" not in repr(endpoint)
