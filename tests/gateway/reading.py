"""What the very bytes of a response can yield, read at leisure and all at once.

The other way to read a stream, for tests to compare with: nothing is incremental,
nothing is guarded, and HTTP is parsed by h11 from one piece. A `Reading` does not say
where a call has to stop; it lists what may stand after each frame.
"""

import json
import re
import zlib
from dataclasses import dataclass, field
from typing import Any

import h11

from threads.core.table import FINISH_REASONS

LINE_END = re.compile(rb"\r\n|\n|\r")
BOM = b"\xef\xbb\xbf"
ANSWERS = ("content", "refusal", "tool_calls", "function_call")
PAYLOADS = (*ANSWERS, "reasoning_content", "reasoning")
LARGEST_HEAD = 100 * 1024


@dataclass(slots=True)
class Reading:
    """Text and reasoning after each frame: the first pair is before any.

    `plain` counts the leading frames that are plainly chunks, `sure` those that have
    to be read; `proof` those up to the first that proves an end, if one does.
    """

    status: int | None = None
    is_whole: bool = False
    texts: list[tuple[str, str]] = field(default_factory=lambda: [("", "")])
    plain: int = 0
    sure: int = 0
    proof: int | None = None
    has_strays: bool = False
    has_tool_calls: bool = False
    has_odd_finish: bool = False
    is_compressed: bool = False


def read(raw: bytes, *, ended: bool) -> Reading:
    """Read a response of which these bytes came; `ended` when no more can."""
    reading = Reading()
    headers, body = _http(raw, ended, reading)
    if reading.status is None or not 200 <= reading.status < 300:
        return reading
    encoding = headers.get("content-encoding", "").strip().lower()
    reading.is_compressed = bool(encoding)
    if encoding in ("gzip", "x-gzip", "deflate"):
        body = _inflated(body)
    _frames(body, reading)
    return reading


def _http(raw: bytes, ended: bool, reading: Reading) -> tuple[dict[str, str], bytes]:
    peer = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)
    peer.send(h11.Request(method="POST", target="/", headers=[("host", "test")]))
    peer.send(h11.EndOfMessage())
    headers: dict[str, str] = {}
    body = b""
    try:
        peer.receive_data(raw)
        if ended:
            peer.receive_data(b"")
        while not reading.is_whole:
            event = peer.next_event()
            if isinstance(event, h11.Response):
                reading.status = event.status_code
                for raw_name, value in event.headers:
                    name, text = raw_name.decode(), value.decode("latin-1")
                    known = headers.get(name)
                    headers[name] = f"{known}, {text}" if known else text
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                reading.is_whole = True
            elif isinstance(event, h11.InformationalResponse):
                if event.status_code == 101:
                    reading.status = 101
                    break
            else:
                break
    except h11.RemoteProtocolError:
        pass
    return headers, body


def _inflated(body: bytes) -> bytes:
    out = b""
    inflate = zlib.decompressobj(wbits=47)
    for position in range(len(body)):
        try:
            out += inflate.decompress(body[position : position + 1])
        except zlib.error:
            break
        if inflate.eof:
            inflate = zlib.decompressobj(wbits=47)
    return out


def _frames(body: bytes, reading: Reading) -> None:
    lines = LINE_END.split(body.removeprefix(BOM))
    data: list[bytes] = []
    state = _State()
    for number, line in enumerate(lines, 1):
        is_data = line.startswith(b"data:")
        value = line[5:].removeprefix(b" ") if is_data else line
        if is_data and value.startswith(b"{") and _is_json(b"\n".join(data)):
            _frame(b"\n".join(data), state, reading)
            data = []
        is_done = value.strip(b" \t\"'")[:6].upper() == b"[DONE]"
        if is_done or not line:
            # An end of the body ends no event, but `[DONE]` does.
            if b"".join(data).strip() and (is_done or number < len(lines)):
                _frame(b"\n".join(data), state, reading)
            data = []
        if is_done:
            if reading.proof is None:
                reading.proof = len(reading.texts) - 1
            break
        if is_data:
            data.append(value)
        elif line.startswith(b"event:") and line[6:].strip() == b"error":
            state.is_odd = True
        elif line and not line.startswith((b":", b"event:", b"id:", b"retry:")):
            state.is_odd = reading.has_strays = True


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@dataclass(slots=True)
class _State:
    content: str = ""
    thoughts: str = ""
    choice: Any = None
    has_deltas: bool = False
    is_odd: bool = False


def _frame(payload: bytes, state: _State, reading: Reading) -> None:
    try:
        chunk = json.loads(payload.decode("utf-8"))
    except (ValueError, RecursionError):
        chunk = None
    finish = _chunk(chunk, state, reading) if isinstance(chunk, dict) else ""
    reading.texts.append(_split(state))
    if not state.is_odd:
        # What shares a frame with an error is kept as well.
        reading.sure = len(reading.texts) - 1
        state.is_odd = not _is_plain(chunk)
        reading.plain = reading.sure - state.is_odd
    if (
        finish.lower().partition(":")[0].strip() in FINISH_REASONS
        and reading.proof is None
    ):
        reading.proof = len(reading.texts) - 1
    elif finish and reading.proof is None:
        reading.has_odd_finish = True


def _is_plain(chunk: Any) -> bool:
    """Tell whether nothing about a chunk could be taken for a failure."""
    if not isinstance(chunk, dict) or not isinstance(chunk.get("choices"), list):
        return False
    if not chunk["choices"] and not {"choices", "usage"}.issuperset(chunk):
        return False
    return "error" not in chunk and not any(
        not isinstance(choice, dict) or "error" in choice for choice in chunk["choices"]
    )


def _chunk(chunk: dict[str, Any], state: _State, reading: Reading) -> str:
    """Take the words of one chunk; answers with its finish reason."""
    finish = ""
    choices = chunk.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        if state.choice is None and ("delta" in choice or "message" in choice):
            state.choice = choice.get("index")
        if None not in (choice.get("index"), state.choice) and (
            choice["index"] != state.choice
        ):
            continue
        delta = choice.get("delta")
        if isinstance(delta, dict) and any(delta.get(name) for name in PAYLOADS):
            answers = any(delta.get(name) for name in ANSWERS)
            state.has_deltas = state.has_deltas or answers
        else:
            delta = None if state.has_deltas else choice.get("message")
        if isinstance(delta, dict):
            _words(delta, state)
            calls = bool(delta.get("tool_calls") or delta.get("function_call"))
            reading.has_tool_calls = reading.has_tool_calls or calls
        finish = finish or str(choice.get("finish_reason") or "")
    return "" if finish.strip().lower() in ("null", "none") else finish


def _words(delta: dict[str, Any], state: _State) -> None:
    for name in ("reasoning_content", "reasoning"):
        if isinstance(delta.get(name), str) and delta[name]:
            state.thoughts += delta[name]
            break
    content = delta.get("content")
    if isinstance(content, dict):
        content = [content]
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            state.content += part["text"] if isinstance(part.get("text"), str) else ""
            thought = part.get("thinking")
            state.thoughts += thought if isinstance(thought, str) else ""
    for text in (content, delta.get("refusal")):
        state.content += text if isinstance(text, str) else ""


def _split(state: _State) -> tuple[str, str]:
    """Part the answer from what a model thinks in tags of its own."""
    content, thoughts = _clean(state.content), _clean(state.thoughts)
    begun = content.lstrip()
    if not begun.startswith("<think>"):
        return content, thoughts
    thought, _closed, answer = begun.removeprefix("<think>").partition("</think>")
    return answer.lstrip(), thoughts + thought


def _clean(text: str) -> str:
    text = text.replace("\0", "")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
