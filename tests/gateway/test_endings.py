"""Each way in which a stream can end, over a real socket."""

import gzip
import zlib

import pytest

from tests.fakegateway import (
    DONE,
    EVENT_STREAM,
    Close,
    FakeGateway,
    Reset,
    Script,
    Stall,
    chunk,
    frame,
)
from tests.gateway.calling import answered
from threads.core.faults import WHOLE, Ending

HALF = chunk(content="Half")
STOP = chunk(finish="stop")
BOOM = {"code": 502, "message": "boom", "metadata": {"provider_name": "P"}}
CUT_EMOJI = chunk(content="Half 🙂")[:-60]


def packed(
    *pieces: bytes, encoding: str = "gzip", members: bool = False, wbits: int = 31
) -> Script:
    """A body that is really compressed: flushed after each piece, or each by itself."""
    headers = EVENT_STREAM | {"content-encoding": encoding}
    if members:
        return Script(*(gzip.compress(piece) for piece in pieces), headers=headers)
    packer = zlib.compressobj(wbits=wbits)
    parts = [
        packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) for piece in pieces
    ]
    return Script(*parts, packer.flush(), headers=headers)


COMPLETE = {
    "the usual end": Script(HALF, STOP, DONE),
    "no [DONE]": Script(HALF, STOP),
    "no finish reason": Script(HALF, DONE),
    "all in one chunk": Script(chunk(content="Half", finish="stop"), DONE),
    "the last chunk twice": Script(HALF, STOP, STOP, DONE),
    "a reset after the finish reason": Script(HALF, STOP, Reset()),
    "a cut after the finish reason": Script(HALF, STOP, Close()),
    "a reset after [DONE]": Script(HALF, STOP, DONE, Reset()),
    "junk after the finish reason": Script(HALF, STOP, b"data: {no json\n\n"),
    "an error after the finish reason": Script(HALF, STOP, frame({"error": BOOM})),
    "chunks after [DONE]": Script(HALF, STOP, DONE, chunk(content=" lost")),
    "no chunked framing": Script(HALF, STOP, DONE, framing="close"),
    "a content length": Script(HALF, STOP, DONE, framing="length"),
    "another content type": Script(HALF, STOP, headers={"content-type": "text/plain"}),
    "frames that carry nothing": Script(
        b"retry: 3000\n\n: hello\n\nevent: ping\n\ndata:\n\n", HALF, b"id: 7\n\n", STOP
    ),
    "a byte order mark": Script(b"\xef\xbb\xbf" + HALF, STOP, DONE),
    "carriage returns": Script((HALF + STOP + DONE).replace(b"\n", b"\r\n")),
    "one byte at a time": Script(
        *(bytes([byte]) for byte in HALF + STOP + DONE),
    ),
    "[done] in small letters": Script(HALF, STOP, b"data: [done]\n\n"),
    "choices that are null": Script(HALF, frame({"choices": None}), STOP, DONE),
    "a null error in a healthy chunk": Script(
        chunk(content="Half", error=None), STOP, DONE
    ),
    "compressed": packed(HALF, STOP, DONE),
    "compressed, flushed as members": packed(HALF, STOP, DONE, members=True),
    "deflated": packed(HALF, STOP, DONE, encoding="deflate", wbits=15),
}


@pytest.mark.parametrize("script", COMPLETE.values(), ids=COMPLETE)
async def test_a_proven_end_is_a_whole_answer(
    gateway: FakeGateway, script: Script
) -> None:
    called = await answered(gateway, script)

    assert called.verdict.ending is Ending.COMPLETED
    assert called.shown == called.ended.text == "Half"
    assert called.record.stream_state == "complete"
    assert (called.record.code, called.record.condition) == ("", "")
    assert len(gateway.requests) == 1


NOTED = {
    "length": (Script(HALF, chunk(finish="length"), DONE), Ending.LENGTH),
    "content_filter": (
        Script(HALF, chunk(finish="content_filter"), DONE),
        Ending.CONTENT_FILTER,
    ),
}


@pytest.mark.parametrize(("script", "ending"), NOTED.values(), ids=NOTED)
async def test_an_answer_cut_by_its_own_rules_is_whole_with_a_note(
    gateway: FakeGateway, script: Script, ending: Ending
) -> None:
    called = await answered(gateway, script)

    assert called.verdict.ending is ending
    assert ending in WHOLE
    assert called.verdict.sentence_key.startswith("answer.")
    assert called.ended.text == "Half"


BAD = {
    # Truncated: the three forms, and where the cut falls.
    "a polite end without proof": (Script(HALF), "truncated"),
    "a polite end inside an event": (Script(HALF, b'data: {"cho'), "truncated"),
    "an event without its blank line": (Script(HALF, STOP[:-1]), "truncated"),
    "an end told by closing": (Script(HALF, framing="close"), "truncated"),
    "a close amid chunks": (Script(HALF, Close()), "truncated"),
    "a close inside a chunk": (Script(HALF, Close(half=b"data: {")), "truncated"),
    "a reset": (Script(HALF, Reset()), "truncated"),
    "a cut inside a character": (
        Script(HALF, Close(half=CUT_EMOJI)),
        "truncated",
    ),
    "a polite end inside a character": (Script(HALF, CUT_EMOJI), "truncated"),
    "less than promised": (
        Script(
            HALF,
            Close(),
            headers=EVENT_STREAM | {"content-length": "999"},
            framing="length",
        ),
        "truncated",
    ),
    "compressed and cut": (
        Script(
            gzip.compress(HALF + STOP)[:-20],
            headers=EVENT_STREAM | {"content-encoding": "gzip"},
        ),
        "truncated",
    ),
    # Faulted: what says failure.
    "an error object": (Script(HALF, frame({"error": BOOM})), "http_5xx"),
    "an error object and [DONE]": (
        Script(HALF, frame({"error": BOOM}), DONE),
        "http_5xx",
    ),
    "an error object, then an open socket": (
        Script(HALF, frame({"error": BOOM}), Stall()),
        "http_5xx",
    ),
    "an error object with choices": (
        Script(HALF, chunk(finish="error", error=BOOM)),
        "http_5xx",
    ),
    "an error object beside stop": (
        Script(HALF, chunk(finish="stop", error=BOOM), DONE),
        "http_5xx",
    ),
    "an error as a string": (
        Script(HALF, frame({"error": "EngineCore died"})),
        "stream_fault_unknown",
    ),
    "an empty error object": (
        Script(HALF, frame({"error": {}}), DONE),
        "stream_fault_unknown",
    ),
    "a failure without an error key": (
        Script(HALF, frame({"detail": "Internal error", "status": 500})),
        "http_5xx",
    ),
    "an error event": (
        Script(HALF, b"event: error\n" + frame({"message": "CUDA", "code": 500})),
        "http_5xx",
    ),
    "an error event in plain words": (
        Script(HALF, b"event: error\ndata: rate limit reached\n\n"),
        "http_429",
    ),
    "an error inside a choice": (
        Script(
            HALF,
            frame({"choices": [{"index": 0, "finish_reason": "error", "error": BOOM}]}),
        ),
        "http_5xx",
    ),
    "an error line after the frames": (
        Script(HALF, b'{"error": {"code": 502, "message": "boom"}}\n'),
        "http_5xx",
    ),
    "a status in a comment": (
        Script(HALF, b": HTTP_STATUS/429\n\n", frame({"message": "slow"})),
        "http_429",
    ),
    "finish_reason error": (Script(HALF, chunk(finish="error"), DONE), "finish_error"),
    "an unknown finish reason": (
        Script(HALF, chunk(finish="eos_weird"), DONE),
        "finish_unknown",
    ),
    "a frame that is no JSON": (
        Script(HALF, b"data: {no json\n\n", STOP, DONE),
        "stream_unreadable",
    ),
    "a frame that is no UTF-8": (
        Script(HALF, b'data: "\xff"\n\n', STOP, DONE),
        "stream_unreadable",
    ),
    "a frame of absurd depth": (
        Script(HALF, b"data: " + b"[" * 100_000 + b"\n\n"),
        "stream_unreadable",
    ),
    "a number of absurd length": (
        Script(HALF, b'data: {"created": ' + b"1" * 5000 + b"}\n\n"),
        "stream_unreadable",
    ),
    "a frame that is a number": (Script(HALF, b"data: 5\n\n"), "stream_fault_unknown"),
}


@pytest.mark.parametrize(("script", "code"), BAD.values(), ids=BAD)
async def test_a_bad_end_after_text_is_named_and_keeps_the_text(
    gateway: FakeGateway, script: Script, code: str
) -> None:
    called = await answered(gateway, script)

    assert called.verdict.code == code
    assert called.verdict.ending is (
        Ending.TRUNCATED if code == "truncated" else Ending.FAULTED
    )
    assert called.shown == called.ended.text == "Half"
    assert called.record.stream_state == "partial"
    assert called.record.outcome == "faulted"
    assert len(gateway.requests) == 1
