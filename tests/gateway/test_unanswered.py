"""Endings before anything was shown, and text that shares its chunk with an end."""

import pytest

from tests.fakegateway import (
    DONE,
    EVENT_STREAM,
    JSON,
    Close,
    FakeGateway,
    Head,
    Reset,
    Script,
    chunk,
    frame,
    reply,
)
from tests.gateway.calling import answered
from threads.core.faults import Condition, Ending

STOP = chunk(finish="stop")
BOOM = {"code": 502, "message": "boom"}
WHOLE_ANSWER = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}
HTML = "<html><title>Welcome to our portal</title></html>"

UNANSWERED = {
    "an HTML page": (
        Script(HTML, headers={"content-type": "text/html"}),
        "not_a_stream",
        Ending.FAULTED,
    ),
    "an HTML page called a stream": (Script(HTML), "not_a_stream", Ending.FAULTED),
    "a whole answer as JSON": (
        reply(200, WHOLE_ANSWER),
        "not_a_stream",
        Ending.FAULTED,
    ),
    "broken JSON": (
        Script('{"choices": [', headers=JSON),
        "not_a_stream",
        Ending.FAULTED,
    ),
    "nothing, and no stream": (
        Script(headers={}, framing="length"),
        "not_a_stream",
        Ending.FAULTED,
    ),
    "an error as JSON": (reply(200, {"error": BOOM}), "http_5xx", Ending.FAULTED),
    "an error as pretty JSON": (
        Script('{\n "error": {\n  "code": 429\n }\n}', headers=JSON),
        "http_429",
        Ending.FAULTED,
    ),
    "plain text under a gzip header": (
        Script(
            chunk(content="Half"), headers=EVENT_STREAM | {"content-encoding": "gzip"}
        ),
        "transport_decode",
        Ending.TRUNCATED,
    ),
    "a stream of nothing": (Script(), "truncated", Ending.TRUNCATED),
    "comments, then the end": (
        Script(": PROCESSING\n\n: PROCESSING\n\n"),
        "truncated",
        Ending.TRUNCATED,
    ),
    "a reset after the head": (
        Script(Head(), Reset()),
        "truncated",
        Ending.TRUNCATED,
    ),
    "a close after the head": (
        Script(Head(), Close()),
        "truncated",
        Ending.TRUNCATED,
    ),
    "[DONE] alone": (Script(DONE), "empty_completion", Ending.EMPTY),
    "a finish reason alone": (Script(STOP, DONE), "empty_completion", Ending.EMPTY),
    "white space alone": (
        Script(chunk(content=" \n"), STOP, DONE),
        "empty_completion",
        Ending.EMPTY,
    ),
    "usage alone": (
        Script(STOP, chunk(usage={"prompt_tokens": 1, "completion_tokens": 0}), DONE),
        "empty_completion",
        Ending.EMPTY,
    ),
    "the limit reached while thinking": (
        Script(chunk(reasoning="hm"), chunk(finish="length"), DONE),
        "empty_at_limit",
        Ending.EMPTY,
    ),
    "everything filtered": (
        Script(chunk(finish="content_filter"), DONE),
        "request_blocked",
        Ending.BLOCKED,
    ),
    "a lone error object": (
        Script(frame({"error": BOOM})),
        "http_5xx",
        Ending.FAULTED,
    ),
    "a block inside the stream": (
        Script(frame({"error": {"code": 403, "message": "blocked: PII detected"}})),
        "request_blocked",
        Ending.BLOCKED,
    ),
}


@pytest.mark.parametrize(
    ("script", "code", "ending"), UNANSWERED.values(), ids=UNANSWERED
)
async def test_an_end_without_an_answer_is_never_a_silent_one(
    gateway: FakeGateway, script: Script, code: str, ending: Ending
) -> None:
    called = await answered(gateway, script)

    assert (called.verdict.code, called.verdict.ending) == (code, ending)
    assert called.verdict.sentence_key
    assert called.shown.strip() == ""
    assert called.record.code == code
    assert called.record.ending == ending.value
    assert len(gateway.requests) == 1


async def test_a_page_in_place_of_a_stream_is_our_configuration(
    gateway: FakeGateway,
) -> None:
    called = await answered(
        gateway, Script(HTML, headers={"content-type": "text/html"})
    )

    assert called.verdict.condition is Condition.OUR_CONFIG
    assert called.verdict.provider_reason == "Welcome to our portal"


@pytest.mark.parametrize(
    "last",
    [
        chunk(content=" tail", error=BOOM),
        chunk(content=" tail", finish="error", error=BOOM),
        chunk(content=" tail", finish="error"),
        chunk(content=" tail", finish="stop"),
        chunk(content=" tail", finish="eos_weird"),
    ],
    ids=["error", "finish error and error", "finish error", "stop", "unknown"],
)
async def test_text_in_the_last_chunk_is_never_lost(
    gateway: FakeGateway, last: bytes
) -> None:
    called = await answered(gateway, Script(chunk(content="Half"), last, DONE))

    assert called.shown == called.ended.text == "Half tail"


async def test_the_providers_words_and_name_reach_the_record(
    gateway: FakeGateway,
) -> None:
    error = {
        "code": 502,
        "message": "Provider returned error",
        "metadata": {
            "raw": '{"message": "CUDA out of memory"}',
            "provider_name": "P\n",
        },
    }

    called = await answered(gateway, Script(frame({"error": error})))

    assert called.record.provider == "P"
    assert called.record.provider_reason == (
        "CUDA out of memory · Provider returned error"
    )


async def test_the_provider_that_the_chunks_name_stands_where_the_error_names_none(
    gateway: FakeGateway,
) -> None:
    called = await answered(
        gateway, Script(chunk(content="Half", provider="Q"), frame({"error": BOOM}))
    )

    assert called.record.provider == "Q"
    assert called.record.model_served == "fake-model"


async def test_names_that_cannot_be_stored_are_made_fit(gateway: FakeGateway) -> None:
    script = Script(
        b'data: {"model": "a\\u0000b\\ud800\\nc", "provider": "p\\u0000",'
        b' "choices": [{"index": 0, "delta": {"content": "x"},'
        b' "finish_reason": "odd\\u0000", "native_finish_reason": "\\ud800"}]}\n\n'
    )

    record = (await answered(gateway, script)).record

    assert record.model_served == "ab\ufffd c"
    assert record.provider == "p"
    assert (record.finish_reason, record.native_finish_reason) == ("odd", "\ufffd")
