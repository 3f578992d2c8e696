"""What answers, and responses that are none, are made of: many dialects, many ills."""

import json
from collections.abc import Callable, Mapping
from typing import TypeAlias

from tests.fakescript import DONE, chunk, frame, tool_call

WORDS = (
    "Half",
    " a ",
    "日本",
    "👩\u200d👧",
    "\n\n",
    "data: x",
    '"}',
    "\u2028",
    "é",
    "  ",
)
THOUGHTS = ("hm", " 思う ", "so\n")
TAGGED = ("<thi", "nk>", "hm", "</thi", "nk>", "\n", "Well", "<think>", "</think>")
HALVES = ("\ud83d", "\ude00", "\ud83d\ude00", "a")
USAGE = chunk(usage={"prompt_tokens": 3, "completion_tokens": 5})


def _escaped(**delta: object) -> bytes:
    value = {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    return b"data: " + json.dumps(value).encode() + b"\r\n\r\n"


def _in_lines(**delta: object) -> bytes:
    value = json.dumps({"choices": [{"delta": delta}]}, indent=0)
    return (
        b"".join(b"data: %b\r\n" % line.encode() for line in value.split("\n"))
        + b"\r\n"
    )


def _choice(**choice: object) -> bytes:
    return frame({"id": "x", "model": "m", "choices": [{"index": 0, **choice}]})


Say: TypeAlias = Callable[[str], bytes]
SAY: Mapping[str, Say] = {
    "content": lambda word: chunk(content=word),
    "escaped": lambda word: _escaped(content=word),
    "lines": lambda word: _in_lines(content=word),
    "parts": lambda word: _choice(delta={"content": [{"type": "text", "text": word}]}),
    "message": lambda word: _choice(message={"content": word}),
    "refusal": lambda word: _choice(delta={"refusal": word}, finish_reason=""),
    "rich": lambda word: chunk(content=word, provider="P", usage={"completion_tokens": 1}),
}  # fmt: skip
THINK: Mapping[str, Say] = {
    "reasoning_content": lambda thought: chunk(reasoning=thought),
    "reasoning": lambda thought: _choice(delta={"reasoning": thought}),
    "parts": lambda thought: _choice(delta={"content": [{"thinking": thought}]}),
}
CALL, MORE = (
    tool_call(0, call_id="a", name="f", arguments='{"q":'),
    tool_call(0, arguments="1}"),
)
CALLS: Mapping[str, tuple[bytes, ...]] = {
    "none": (),
    "in two": (chunk(tool_calls=[CALL]), chunk(tool_calls=[MORE])),
    "at once": (chunk(tool_calls=[CALL, MORE, tool_call(1, call_id="b", name="g", arguments="{}")]),),
    "no index": (_choice(delta={"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"q": 1}}}]}),),
    "legacy": (_choice(delta={"function_call": {"name": "f", "arguments": "{}"}}),),
    "cut": (chunk(tool_calls=[CALL]),),
    "odd": (_choice(delta={"tool_calls": {"function": None}}), _choice(delta={"tool_calls": [5, {}]})),
}  # fmt: skip
ENDS: Mapping[str, tuple[bytes, ...]] = {
    "whole": (chunk(finish="stop"), USAGE, DONE),
    "no done": (chunk(finish="stop"),),
    "no finish": (DONE,),
    "length": (chunk(finish="length"), DONE),
    "filter": (chunk(finish="content_filter"), DONE),
    "tools": (chunk(finish="tool_calls"), USAGE, DONE),
    "twice": (chunk(finish="stop"), chunk(finish="stop"), DONE),
    "nothing": (),
    "error": (chunk(finish="error"), DONE),
    "unknown": (chunk(finish="odd_end"), DONE),
    "number": (_choice(delta={}, finish_reason=7), DONE),
    "loud": (chunk(finish="STOP"), b"data:[done] \n\n"),
}

HARMLESS = (
    b": PROCESSING\n\n", b":\n", b"event: ping\n\n", b"retry: 3000\n\n", b"id: 7\n\n", b"data:\n\n", b"\n\n",
    b"event: message\n", b"\r\n", chunk(), frame({"id": "x", "choices": []}), USAGE, b": HTTP_STATUS/200\n",
    _choice(delta=None), _choice(delta={"content": None, "tool_calls": None}),
)  # fmt: skip
BOOM = {"code": 502, "message": "boom"}
HARMFUL = (
    frame({"choices": [{"index": 1, "delta": {"content": "other"}}]}),
    frame({"error": BOOM}), frame({"error": "plain words"}), frame({"error": {}}), frame({"error": [1]}),
    frame({"detail": "Internal"}), frame({"message": "CUDA", "code": 500}), frame({"object": "error", "message": "m"}),
    b"event: error\n" + frame({"code": 500}), b"event: error\ndata: words\n\n", b"error: words\n", b": HTTP_STATUS/400\n",
    chunk(content="tail", finish="error", error=BOOM), chunk(content="tail", finish="stop", error=BOOM),
    _choice(delta={"content": "t"}, error=BOOM), _choice(finish_reason="error", native_finish_reason="X"),
    frame(None), frame(5), frame([]), frame("text"), frame({}), frame({"choices": None}), frame({"choices": [None, 5]}),
    b"data: {no json\n\n", b"data: \xff\n\n", b"data: " + b"[" * 100_000 + b"\n\n", b"data: " + b"1" * 5000 + b"\n\n",
    b"data: {\ndata: }\n\n", b'data: {"a": NaN, "choices": [{"delta": {"content": 1e999}}]}\n\n', b"\xef\xbb\xbf",
    b'{"error": {"code": 500, "message": "boom"}}\n', b"<html>Bad gateway</html>\n", b"upstream connect error\n",
    b'data: {"choices": [{"delta": {"cont\n{"error": "in a frame"}\n\n', b"event: error\n",
    b'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}\n\n', b"data: " + b"x" * 70_000,
    frame({"base_resp": {"status_code": 1002, "status_msg": "slow"}, "choices": None}), _choice(finish_reason={"a": 1}),
    frame({"error": BOOM, "usage": {"prompt_tokens": -1, "completion_tokens": 2**70}, "model": "\0m\n", "provider": 5}),
)  # fmt: skip
BODIES = (
    b"", b"{}", b"[]", b"null", b'"words"', b"<html><title>502</title></html>", b"no healthy upstream", b"\xff\0\xfe",
    json.dumps({"error": BOOM}).encode(), json.dumps({"error": {"code": "insufficient_quota"}}).encode(),
    json.dumps({"detail": [{"loc": ["body"], "msg": "no", "input": "x"}]}).encode(), b'{"error": "blocked"}',
    json.dumps({"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}).encode(),
    json.dumps([{"error": {"message": "listed", "status": "UNAVAILABLE"}}]).encode(), b"[" * 50_000, b"9" * 6000,
    b'{"error": {"message": "\\ud83d\\u0000", "code": 1e999}}', b'{"error": {"code": NaN, "retry_after": Infinity}}',
)  # fmt: skip

STATUSES = (
    *(100, 101, 103, 200, 201, 202, 203, 204, 205, 206, 299, 300, 301, 302, 304, 307, 308, 400, 401, 402, 403, 404),
    *(408, 409, 413, 418, 422, 425, 429, 451, 499, 500, 501, 502, 503, 504, 520, 524, 529, 599, 600, 999),
)  # fmt: skip
TYPES = (
    "text/event-stream", "text/event-stream; charset=utf-8", "application/json", "text/html; charset=iso-8859-1",
    "text/plain; charset=utf-16", "text/html; charset=zlib", "text/html; charset=base64", "text/html; charset=idna",
    "text/html; charset=undefined", "text/html; charset=punycode", "application/x-ndjson", "", ";;;", "nonsense",
)  # fmt: skip
HEADERS = (
    ("x-request-id", "req_1"), ("x-request-id", "r" * 300), ("cf-ray", "caf\xe9"), ("set-cookie", "a=b; expires=x; max-age=q"),
    ("content-encoding", "gzip"), ("content-encoding", "deflate"), ("content-encoding", "br"), ("content-encoding", "zstd"),
    ("content-encoding", "gzip, gzip"), ("content-encoding", "x-gzip"), ("content-encoding", "odd"),
    ("location", "http://[::1"), ("location", "ftp://x/"), ("location", "/elsewhere"), ("location", "\xff"),
    ("retry-after-ms", "1"), ("retry-after", "x"), ("retry-after", "-1"), ("retry-after", "999999"), ("retry-after", "nan"),
    ("x-should-retry", "false"), ("x-should-retry", "true"), ("x-nr-guardrails", "blocked"), ("connection", "close"),
    ("x-ratelimit-reset", "soon"), ("transfer-encoding", "odd"), ("content-length", "7"), ("date", "never"),
)  # fmt: skip

BITS = (
    b"\0",
    b"\xff",
    b"\xe2\x80",
    b"\n",
    b"\r",
    b"\n\n",
    b"data: ",
    b'"',
    b"{",
    b"\xef\xbb\xbf",
    b"\\",
)
LEFTOVERS = (b"", b"", b"\r\n", DONE, b"<html>", b"0\r\n\r\n", b"HTTP/1.1 ", b"\0" * 9)
"""Bytes behind the end of a response, before the next request is sent."""
