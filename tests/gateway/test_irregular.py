"""Errors where no event is: on lines that are no fields, in comments, in torn frames."""

import json

import pytest

from tests.fakegateway import (
    DONE,
    EVENT_STREAM,
    JSON,
    Close,
    FakeGateway,
    Reset,
    Script,
    Stall,
    chunk,
    frame,
)
from tests.gateway.calling import answered
from threads.core.faults import Condition, Ending
from threads.gateway.calls import CallBounds

HALF = chunk(content="Half")
STOP = chunk(finish="stop")
SLOW = {"error": {"code": 429, "message": "slow"}}
LINE = json.dumps(SLOW).encode()
PRETTY = json.dumps(SLOW, indent=2).encode()
TORN = HALF[:-30]
HURRIED = CallBounds(first_data_seconds=30, idle_seconds=1)

FAULTS = {
    "a bare line": Script(HALF, LINE + b"\n"),
    "a bare line without an end": Script(HALF, LINE),
    "a bare line, then [DONE]": Script(HALF, LINE + b"\n\n", DONE),
    "a bare line, then a finish reason": Script(HALF, LINE + b"\n\n", STOP, DONE),
    "a bare line, then a reset": Script(HALF, LINE + b"\n", Reset()),
    "a bare line, then silence": Script(HALF, LINE + b"\n", Stall()),
    "a bare line, cut": Script(HALF, LINE + b"\n", Close()),
    "pretty lines": Script(HALF, PRETTY),
    "pretty lines, then a reset": Script(HALF, PRETTY + b"\n", Reset()),
    "pretty lines, then silence": Script(HALF, PRETTY + b"\n", Stall()),
    "an error field": Script(HALF, b"error: " + LINE + b"\n\n"),
    "an error field in capitals": Script(HALF, b"ERROR:" + LINE + b"\n\n"),
    "an error field in words": Script(HALF, b"error: 429 Too Many Requests\n\n"),
    "a comment": Script(HALF, b": " + LINE + b"\n\n"),
    "a comment, then a reset": Script(HALF, b":" + LINE + b"\n\n", Reset()),
    "a comment, then silence": Script(HALF, b":" + LINE + b"\n\n", Stall()),
    "a comment in words": Script(HALF, b": error 429: slow\n\n"),
    "a status in a comment": Script(HALF, b":HTTP_STATUS/429\n\n"),
    "a status in a comment, then a reset": Script(
        HALF, b":HTTP_STATUS/429\n\n", Reset()
    ),
    "a status beside an error": Script(
        HALF, b"event:error\n:HTTP_STATUS/429\n" + b'data:{"message":"slow"}\n\n'
    ),
    "written into an unfinished event": Script(
        HALF, TORN + b"\ndata: " + LINE + b"\n\n"
    ),
    "a bare line in an unfinished event": Script(HALF, TORN + b"\n" + LINE + b"\n\n"),
    "a bare line after a whole event": Script(HALF[:-1] + LINE + b"\n\n"),
    "an event with an error, untitled": Script(HALF, frame(SLOW)),
    "an event with an error, titled": Script(HALF, b"event: error\n" + frame(SLOW)),
    "an event of another skin": Script(
        HALF, frame({"type": "response.failed", "response": SLOW})
    ),
    "an event that says error": Script(HALF, frame({"type": "error", "code": 429})),
    "a list of errors": Script(HALF, frame({"errors": [{"status": "429"}]})),
    "an error of Groq's": Script(HALF, frame({"choices": [], "x_groq": SLOW})),
    "a message and a status": Script(HALF, frame({"msg": "slow", "status": 429})),
}


@pytest.mark.parametrize("script", FAULTS.values(), ids=FAULTS)
async def test_an_error_beside_the_events_is_one(
    gateway: FakeGateway, script: Script
) -> None:
    called = await answered(gateway, script, bounds=HURRIED)

    assert (called.verdict.code, called.verdict.ending) == ("http_429", Ending.FAULTED)
    assert called.verdict.transient
    assert called.shown == called.ended.text == "Half"
    assert len(gateway.requests) == 1


WHOLE = {
    "a comment": Script(b": " + LINE + b"\n\n", HALF, STOP, DONE),
    "a comment, and [DONE] alone": Script(HALF, b": " + LINE + b"\n\n", DONE),
    "a comment that says error": Script(b": error 500\n\n", HALF, STOP, DONE),
    "a status in a comment": Script(b":HTTP_STATUS/500\n\n", HALF, STOP, DONE),
    "a status of 200": Script(HALF, b":HTTP_STATUS/200\n\n", STOP),
    "an error after the finish reason": Script(HALF, STOP, frame(SLOW), DONE),
    "a bare line after the finish reason": Script(HALF, STOP, LINE + b"\n\n", DONE),
    "a bare line after [DONE]": Script(HALF, DONE + LINE + b"\n\n"),
    "pretty lines after [DONE]": Script(HALF, DONE + PRETTY),
    "an error field after [DONE]": Script(HALF, DONE + b"error: 500\n\n"),
    "an event after [DONE]": Script(HALF, DONE + frame(SLOW)),
    "a page after [DONE]": Script(HALF, DONE + b"<html><h1>502</h1>"),
    "a null error on a bare line": Script(HALF, b'{"error": null}\n', STOP, DONE),
    "an odd line": Script(HALF, b"see you\n", STOP, DONE),
    "an event that pings": Script(HALF, frame({"type": "ping"}), STOP, DONE),
    "a usage line that is no event": Script(HALF, b'{"usage": {}}\n', STOP),
}


@pytest.mark.parametrize("script", WHOLE.values(), ids=WHOLE)
async def test_a_whole_answer_stays_whole(gateway: FakeGateway, script: Script) -> None:
    called = await answered(gateway, script)

    assert called.verdict.ending is Ending.COMPLETED
    assert called.shown == "Half"


DONES = {
    "small letters": b"data: [done]\n\n",
    "no space": b"data:[DONE]\n\n",
    "spaces": b"data:   [DONE]  \n\n",
    "quotes": b'data: "[DONE]"\n\n',
    "no field": b"[DONE]\n\n",
    "no blank line": b"data: [DONE]\n",
    "no line end": b"data: [DONE]",
    "no field, no line end": b"[DONE]",
    "carriage returns": b"data: [DONE]\r\n\r\n",
    "an event's name": b"event: done\ndata: [DONE]\n\n",
    "more behind": b"data: [DONE] bye\n\n",
}


@pytest.mark.parametrize("done", DONES.values(), ids=DONES)
async def test_done_is_proof_in_every_writing(
    gateway: FakeGateway, done: bytes
) -> None:
    called = await answered(gateway, Script(HALF, done))

    assert called.verdict.ending is Ending.COMPLETED
    assert called.record.done_received
    assert called.shown == "Half"


async def test_done_ends_an_event_that_lacks_its_blank_line(
    gateway: FakeGateway,
) -> None:
    called = await answered(gateway, Script(HALF[:-1] + DONE))

    assert called.verdict.ending is Ending.COMPLETED
    assert called.shown == "Half"


@pytest.mark.parametrize("after", [DONE, STOP + DONE], ids=["[DONE]", "finish"])
async def test_what_follows_an_unreadable_event_in_one_piece_proves_nothing(
    gateway: FakeGateway, after: bytes
) -> None:
    called = await answered(gateway, Script(HALF + b"data: {no json\n\n" + after))

    assert called.verdict.code == "stream_unreadable"
    assert called.shown == "Half"


IN_PLACE_OF_A_STREAM = {
    "json": JSON,
    "an event stream": EVENT_STREAM,
    "a page": {"content-type": "text/html"},
    "text": {"content-type": "text/plain"},
    "bytes": {"content-type": "application/octet-stream"},
    "json lines": {"content-type": "application/x-ndjson"},
    "nothing": {},
}

BODIES = {
    "an error": (LINE, "http_429"),
    "an error, pretty": (PRETTY, "http_429"),
    "an error after lines": (b'{"id": 1}\n{"id": 2}\n' + LINE + b"\n", "http_429"),
    "an error in a list": (b"[" + LINE + b"]", "http_429"),
    "an error in a choice": (
        json.dumps({"choices": [{"finish_reason": "error", **SLOW}]}).encode(),
        "http_429",
    ),
    "a failed choice": (
        b'{"choices": [{"finish_reason": "error", "message": {"content": "x"}}]}',
        "finish_error",
    ),
    "an error beside choices": (
        json.dumps({"choices": [{"message": {"content": "x"}}], **SLOW}).encode(),
        "http_429",
    ),
    "a page": (b"<html><h1>Welcome</h1></html>", "not_a_stream"),
    "an error page": (b"<html><h1>502 Bad Gateway</h1></html>", "not_a_stream"),
    "words": (b"upstream connect error", "not_a_stream"),
    "a whole answer": (
        b'{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}',
        "not_a_stream",
    ),
    "a list of models": (b'{"object": "list", "data": []}', "not_a_stream"),
    "null": (b"null", "not_a_stream"),
    "a number": (b"5", "not_a_stream"),
    "an empty list": (b"[]", "not_a_stream"),
}


@pytest.mark.parametrize(("body", "code"), BODIES.values(), ids=BODIES)
async def test_what_comes_in_place_of_a_stream_is_read_whatever_it_is_called(
    gateway: FakeGateway, body: bytes, code: str
) -> None:
    for headers in IN_PLACE_OF_A_STREAM.values():
        called = await answered(gateway, Script(body, headers=headers))

        assert (headers, called.verdict.code) == (headers, code)
        assert called.verdict.ending is Ending.FAULTED
        # Text that shares its JSON with an error is kept.
        assert called.shown in ("", "x")


@pytest.mark.parametrize("status", [200, 201, 202, 203, 206])
@pytest.mark.parametrize(
    "headers", IN_PLACE_OF_A_STREAM.values(), ids=IN_PLACE_OF_A_STREAM
)
async def test_a_stream_is_read_whatever_it_is_called(
    gateway: FakeGateway, headers: dict[str, str], status: int
) -> None:
    script = Script(b"retry: 5\n\n", HALF, STOP, DONE, headers=headers, status=status)

    called = await answered(gateway, script)

    assert called.verdict.ending is Ending.COMPLETED
    assert called.shown == "Half"
    assert called.record.done_received


async def test_a_status_without_a_body_is_no_stream(gateway: FakeGateway) -> None:
    called = await answered(gateway, Script(status=204, headers={}, framing="length"))

    assert called.verdict.code == "not_a_stream"
    assert called.verdict.condition is Condition.OUR_CONFIG


@pytest.mark.parametrize("status", [300, 303, 304, 305, 399])
async def test_other_redirections_are_our_configuration(
    gateway: FakeGateway, status: int
) -> None:
    called = await answered(
        gateway, Script(status=status, headers={}, framing="length")
    )

    assert called.verdict.code == "http_3xx"
    assert len(gateway.requests) == 1


async def test_what_a_line_between_the_events_says_is_shown(
    gateway: FakeGateway,
) -> None:
    called = await answered(gateway, Script(HALF, b"upstream error: read ECONNRESET\n"))

    assert called.verdict.code == "truncated"
    assert called.record.provider_reason == "upstream error: read ECONNRESET"


async def test_a_frame_of_words_that_speak_of_an_error_is_one(
    gateway: FakeGateway,
) -> None:
    called = await answered(
        gateway, Script(HALF, b"data: [ERROR] upstream timed out\n\n")
    )

    assert called.verdict.code == "http_408"
    assert called.record.provider_reason == "[ERROR] upstream timed out"


async def test_a_torn_line_is_not_taken_for_words(gateway: FakeGateway) -> None:
    called = await answered(gateway, Script(HALF, b'ent": "my secret"}}]}\n'))

    assert called.verdict.code == "truncated"
    assert "secret" not in called.record.provider_reason
