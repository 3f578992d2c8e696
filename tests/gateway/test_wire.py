"""The filter between socket and SDK: any cut of the bytes gives the same frames."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tests.core.properties import steady
from threads.gateway.wire import STRAY_LENGTH, Observed, SseFilter


def filtered(*pieces: bytes) -> tuple[bytes, Observed]:
    observed = Observed()
    wire = SseFilter(observed)
    out = b"".join([wire.feed(piece) for piece in pieces])
    return out + wire.finish(), observed


BODIES: list[tuple[bytes, list[tuple[str, bytes]]]] = [
    (b"data: 1\n\n", [("", b"1")]),
    (b"data:1\n\n", [("", b"1")]),
    (b"data:  1\n\n", [("", b" 1")]),
    (b"data: 1\r\n\r\n", [("", b"1")]),
    (b"data: 1\r\r", [("", b"1")]),
    (b"data: 1\r\n\n", [("", b"1")]),
    (b"\xef\xbb\xbfdata: 1\n\n", [("", b"1")]),
    (b"data: 1\ndata: 2\n\n", [("", b"1\n2")]),
    (b"event: error\ndata: 1\n\ndata: 2\n\n", [("error", b"1"), ("", b"2")]),
    (b"event: ping\n\ndata: 1\n\n", [("", b"1")]),
    (b"id: 7\nretry: 5\ndata: 1\n\n", [("", b"1")]),
    (b": hello\n\ndata: 1\n\n", [("", b"1")]),
    (b"data: 1\n: hello\ndata: 2\n\n", [("", b"1\n2")]),
    (b'data: {"a": 1}\ndata: {"b": 2}\n\n', [("", b'{"a": 1}'), ("", b'{"b": 2}')]),
    (b'data: {"a":\ndata: {"b": 2}}\n\n', [("", b'{"a":\n{"b": 2}}')]),
    (b"\n\n\ndata: 1\n\n\n", [("", b"1")]),
    (b"data:\n\ndata: \n\ndata\n\n", []),
    (b"data: 1\n", []),
    (b"data: 1", []),
    (b"", []),
    (b"data: 1\n\ndata: [DONE]\n\ndata: 2\n\n", [("", b"1")]),
    (b"data: 1\ndata: [DONE]\n\n", [("", b"1")]),
    (b"data: 1\n[DONE]\n", [("", b"1")]),
    (b'{"error": 1}\n', [("error", b'{"error": 1}')]),
    (b'{"error": 1}', [("error", b'{"error": 1}')]),
    (b"error: no\n", [("error", b"no")]),
    (b"error:\n", []),
    (b'data: 1\n{"error": 1}\n\n', [("", b"1"), ("error", b'{"error": 1}')]),
    (b'data: {"a\n{"error": 1}\n\n', [("error", b'{"error": 1}')]),
    (b'data: [DONE]\n\n{"error": 1}\nerror: x\n', []),
    (b"data: a\xe2\x80\xa8b\x0bc\x85d\n\n", [("", b"a\xe2\x80\xa8b\x0bc\x85d")]),
]


@cases(("body", "frames"), BODIES)
def test_frames_are_what_the_specification_calls_events(
    body: bytes, frames: list[tuple[str, bytes]]
) -> None:
    out, observed = filtered(body)

    assert list(observed.handed) == frames
    assert observed.frames == len(frames)
    assert observed.ended
    assert out.replace(b"data: [DONE]\n\n", b"") == b"".join(
        b"".join(b"data: " + line + b"\n" for line in data.split(b"\n")) + b"\n"
        for _, data in frames
    )


@cases("body", [body for body, _ in BODIES])
def test_a_body_may_come_byte_by_byte(body: bytes) -> None:
    assert filtered(*(body[i : i + 1] for i in range(len(body)))) == filtered(body)


@pytest.mark.parametrize(
    "done", [b"[DONE]", b" [DONE] ", b"[done]", b"[DONE] bye", b'"[DONE]"']
)
def test_done_is_noted_and_ends_what_is_handed_on(done: bytes) -> None:
    out, observed = filtered(b"data: " + done + b"\n\ndata: 2\n\n: bye\n\n")

    assert out == b"data: [DONE]\n\n"
    assert (observed.done, observed.frames, observed.comments) == (True, 0, 1)


@pytest.mark.parametrize(
    ("comment", "status"),
    [
        (b":HTTP_STATUS/429", 429),
        (b": HTTP_STATUS/503 ", 503),
        (b":HTTP_STATUS/200", None),
        (b":HTTP_STATUS/", None),
        (b":HTTP_STATUS/abc", None),
        (b":HTTP_STATUS/" + b"9" * 5000, None),
        (b": OPENROUTER PROCESSING", None),
    ],
    ids=range(7),
)
def test_a_comment_may_name_a_status(comment: bytes, status: int | None) -> None:
    out, observed = filtered(comment + b"\n\n")

    assert (out, observed.comments, observed.http_status) == (b"", 1, status)


@pytest.mark.parametrize(
    ("body", "stray"),
    [
        (b"<html>\n<p>hi", b"<html>\n<p>hi\n"),
        (b'{"detail": "x"}', b'{"detail": "x"}\n'),
        (b'{"error": null}\n', b'{"error": null}\n'),
        (b'{"error": {"code"', b'{"error": {"code"\n'),
        (b"data: 1\n\nInternal error\n", b"Internal error\n"),
        (b"data: 1\n\nevent: x\nid: 1\nretry: 2\n: c\n\n", b""),
    ],
    ids=range(6),
)
def test_what_is_no_event_stream_is_kept_for_the_diagnosis(
    body: bytes, stray: bytes
) -> None:
    _, observed = filtered(body)

    assert bytes(observed.stray) == stray


@pytest.mark.parametrize(
    "ending", [b"data: [DONE]\n", b"data: [DONE]", b"[DONE]", b"[done]\n"]
)
def test_done_needs_no_blank_line(ending: bytes) -> None:
    out, observed = filtered(b"data: 1\n\n" + ending)

    assert out == b"data: 1\n\ndata: [DONE]\n\n"
    assert (observed.done, observed.frames) == (True, 1)


@pytest.mark.parametrize(
    ("comment", "remark"),
    [
        (b': {"error": 1}', b'{"error": 1}'),
        (b":error 500", b"error 500"),
        (b": Error: slow", b"Error: slow"),
        (b": OPENROUTER PROCESSING", b""),
        (b': {"ping": 1}', b""),
        (b": no error", b""),
    ],
)
def test_a_comment_that_speaks_of_an_error_is_kept_and_handed_to_nobody(
    comment: bytes, remark: bytes
) -> None:
    out, observed = filtered(comment + b"\n\n: error again\n\n")

    assert out == b""
    assert observed.remark == remark or (
        not remark and observed.remark == b"error again"
    )
    assert len(observed.stray) == 0


def test_only_so_much_of_a_page_is_kept() -> None:
    _, observed = filtered(*[b"x" * 1000 + b"\n"] * 100)

    assert len(observed.stray) == STRAY_LENGTH


stream_bytes = st.lists(
    st.sampled_from(
        [
            *(b"data: ", b"data:", b"event: error", b"id: 1", b"retry: 9", b"data"),
            *(
                b": hi",
                b": error",
                b"error: x",
                b'{"error": 1}',
                b"[DONE]",
                b'{"a":"',
                b'"}',
                "é🙂".encode(),
                b" ",
                b"<p>",
            ),
            *(b"\n", b"\n\n", b"\r\n", b"\r", b"\r\n\r\n", b"\xef\xbb\xbf", b"\xff"),
        ]
    ),
    max_size=30,
).map(b"".join)


@st.composite
def cut_streams(draw: st.DrawFn) -> list[bytes]:
    """A body and some cut of it, empty pieces and single bytes among them."""
    body = draw(stream_bytes)
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=40)))
    return [
        body[start:end]
        for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)
    ]


@steady
@given(cut_streams())
def test_the_cut_of_the_bytes_makes_no_difference(pieces: list[bytes]) -> None:
    assert filtered(*pieces) == filtered(b"".join(pieces))


@steady
@given(stream_bytes)
def test_one_byte_at_a_time_makes_no_difference(body: bytes) -> None:
    assert filtered(*(body[i : i + 1] for i in range(len(body)))) == filtered(body)


@steady
@given(stream_bytes)
def test_what_is_handed_on_passes_the_filter_unchanged(body: bytes) -> None:
    out, _ = filtered(body)

    assert filtered(out)[0] == out
