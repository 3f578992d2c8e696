"""What a gateway sends is bounded: in length, in number, and in how it unfolds."""

import gzip
import tracemalloc
import zlib

import pytest

from tests.fakegateway import (
    DONE,
    EVENT_STREAM,
    FakeGateway,
    Script,
    Stall,
    chunk,
    reply,
)
from tests.gateway.calling import answered
from threads.core.faults import Ending
from threads.gateway.transport import SLICE, Inflater
from threads.gateway.wire import LONGEST_FRAME, STRAY_LENGTH, Observed, SseFilter

HALF = chunk(content="Half")
STOP = chunk(finish="stop")
MIB = b"x" * 2**20


def filtered(*pieces: bytes) -> tuple[bytes, Observed]:
    observed = Observed()
    wire = SseFilter(observed)
    out = b"".join([wire.feed(piece) for piece in pieces])
    return out + wire.finish(), observed


ENDLESS = {
    "a line of data": [b"data: " + MIB] + [MIB] * 8,
    "a line that is no field": [MIB] * 9,
    "a comment": [b": "] + [MIB] * 9,
    "lines of one event": [b"data: " + MIB + b"\n"] * 9,
    "small lines of one event": [b"data: 12345678901234567890\n" * 10_000] * 40,
    "one whole line": [b"data: " + MIB * 9 + b"\n\n"],
    "single bytes": [b"data: " + MIB * 8, *([b"y"] * 100)],
}


@pytest.mark.parametrize("pieces", ENDLESS.values(), ids=ENDLESS)
def test_what_never_ends_is_given_up(pieces: list[bytes]) -> None:
    out, observed = filtered(b"data: 1\n\n", *pieces, b"\n\ndata: 2\n\n")

    assert observed.too_long
    assert out == b"data: 1\n\n"
    assert len(observed.stray) <= STRAY_LENGTH


def test_the_longest_frame_is_still_read() -> None:
    line = b"data: " + b"x" * (LONGEST_FRAME - 6)

    out, observed = filtered(line, b"\n\n")

    assert not observed.too_long
    assert out == line + b"\n\n"


def test_many_small_events_are_no_long_one() -> None:
    _, observed = filtered(*[(b"data: " + MIB + b"\n\n")] * 20)

    assert (observed.too_long, observed.frames) == (False, 20)


def test_comments_and_strays_take_no_room() -> None:
    pieces = [
        b": " + b"c" * 1000 + b"\n" + b"s" * 1000 + b"\nerror\n" for _ in range(50)
    ]
    observed = Observed()
    wire = SseFilter(observed)
    tracemalloc.start()
    for _ in range(200):
        for piece in pieces:
            wire.feed(piece)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert observed.comments == 10_000
    assert len(observed.stray) == STRAY_LENGTH
    assert size < 2 * STRAY_LENGTH + 10_000


@pytest.mark.parametrize(
    "sign", [b"data: " + MIB, MIB, b": " + MIB], ids=["data", "stray", "comment"]
)
async def test_an_endless_line_is_unreadable_and_lets_go_of_the_connection(
    gateway: FakeGateway, sign: bytes
) -> None:
    called = await answered(gateway, Script(HALF, sign, *([MIB] * 9), Stall()))

    assert called.verdict.code == "stream_unreadable"
    assert called.verdict.ending is Ending.FAULTED
    assert called.shown == "Half"
    await gateway.requests[0].wait_closed()


async def test_an_endless_line_after_the_answer_changes_nothing(
    gateway: FakeGateway,
) -> None:
    called = await answered(
        gateway, Script(HALF, STOP, b"data: " + MIB, *([MIB] * 9), Stall())
    )

    assert called.verdict.ending is Ending.COMPLETED


def inflated(encoding: str, *pieces: bytes) -> list[bytes]:
    inflater = Inflater(encoding)
    return [part for piece in pieces for part in inflater.feed(piece)]


def test_a_bomb_unfolds_slice_by_slice() -> None:
    parts = inflated("gzip", gzip.compress(b"\0" * 50_000_000))

    assert sum(len(part) for part in parts) == 50_000_000
    assert max(len(part) for part in parts) <= SLICE


@pytest.mark.parametrize("size", [0, 1, SLICE - 1, SLICE, SLICE + 1, 3 * SLICE])
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate", "raw deflate", ""])
def test_everything_is_inflated_at_once(size: int, encoding: str) -> None:
    text = bytes(i % 251 for i in range(size))
    packed = {
        "gzip": gzip.compress(text),
        "x-gzip": gzip.compress(text[: size // 2]) + gzip.compress(text[size // 2 :]),
        "deflate": zlib.compress(text),
        "raw deflate": zlib.compress(text, wbits=-15),
        "": text,
    }[encoding]

    assert b"".join(inflated(encoding.removeprefix("raw "), packed)) == text


async def test_a_compressed_bomb_is_given_up(gateway: FakeGateway) -> None:
    bomb = gzip.compress(b"data: " + b"x" * 200_000_000)
    script = Script(bomb, Stall(), headers=EVENT_STREAM | {"content-encoding": "gzip"})

    called = await answered(gateway, script)

    assert called.verdict.code == "stream_unreadable"


async def test_a_refusal_that_unfolds_is_read_only_so_far(
    gateway: FakeGateway,
) -> None:
    bomb = gzip.compress(b"x" * 200_000_000)
    script = Script(bomb, status=400, headers={"content-encoding": "gzip"})

    called = await answered(gateway, script)

    assert called.verdict.code == "http_400"
    assert len(called.record.provider_reason) == 300


@pytest.mark.parametrize(
    "encoding", ["br", "zstd", "compress", "gzip, gzip", "br, gzip"]
)
async def test_a_compression_that_was_not_asked_for_is_not_guessed_at(
    gateway: FakeGateway, encoding: str
) -> None:
    headers = EVENT_STREAM | {"content-encoding": encoding}

    called = await answered(gateway, Script(HALF, STOP, DONE, headers=headers))

    assert called.verdict.code == "transport_decode"
    assert called.verdict.ending is Ending.TRUNCATED
    assert not called.verdict.transient


@pytest.mark.parametrize("encoding", ["identity", "utf-8", "none", "", "identity, "])
async def test_an_encoding_that_is_none_hides_nothing(
    gateway: FakeGateway, encoding: str
) -> None:
    headers = EVENT_STREAM | {"content-encoding": encoding}

    called = await answered(gateway, Script(HALF, STOP, DONE, headers=headers))

    assert called.verdict.ending is Ending.COMPLETED


@pytest.mark.parametrize(
    "encoding", ["br", "zstd", "gzip, gzip", "deflate", "utf-8", "odd"]
)
async def test_a_refusal_is_one_however_its_body_is_packed(
    gateway: FakeGateway, encoding: str
) -> None:
    script = reply(
        403, {"error": {"message": "no"}}, headers={"content-encoding": encoding}
    )

    called = await answered(gateway, script)

    assert (called.verdict.code, called.record.http_status) == ("http_403", 403)
    assert called.record.provider_reason == "no"


@pytest.mark.parametrize(
    "charset",
    [
        *("utf-8", "UTF-8", "latin-1", "gbk", "utf-16", "utf-7", "rot13", "hex", "zip"),
        *("idna", "punycode", "undefined", "unicode_escape", '"utf-8"', "", "nonsense"),
    ],
)
async def test_a_refusal_is_one_in_whatever_charset_it_claims_to_be(
    gateway: FakeGateway, charset: str
) -> None:
    script = Script(
        '{"error": {"message": "no"}}',
        status=403,
        headers={"content-type": f"application/json; charset={charset}"},
    )

    called = await answered(gateway, script)

    assert (called.verdict.code, called.record.http_status) == ("http_403", 403)
    assert called.record.provider_reason == "no"


async def test_a_refusal_in_bytes_of_something_else_gives_no_reason(
    gateway: FakeGateway,
) -> None:
    called = await answered(gateway, Script(b"\xff\xfe\xfa\x80" * 50, status=403))

    assert called.verdict.code == "http_403"
    assert called.record.provider_reason == ""
