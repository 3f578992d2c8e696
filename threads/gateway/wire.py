"""The bytes of one event stream: observed, and handed on in a form the SDK reads.

The SDK ends a stream on legal control frames (`retry:` alone, `event: ping`
without data: measured, JSONDecodeError) and says nothing of `[DONE]` or of
comments. This filter stands between the socket and the SDK: it counts and drops
what carries no data, notes `[DONE]`, keeps what is no event stream at all, and
passes each data frame on unchanged in content. An error that a gateway wrote
between the events, on a line that is no field, is handed on as an error event, in
its place; one in a comment is only kept, since comments never fail an answer.
"""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

STRAY_LENGTH = 65_536
"""Bytes kept of lines that belong to no event stream, and of a comment."""

LONGEST_FRAME = 8 * 2**20
"""Bytes of one line, or of one event's lines, that are waited for: no chunk of an
answer is so long, and what never ends would fill the memory."""

BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"
DONE_FRAME = b"data: [DONE]\n\n"
BARE_FIELDS = frozenset({b"data", b"event", b"id", b"retry"})


@dataclass(slots=True)
class Observed:
    """What the wire showed.

    `handed` holds event name and data of each frame that was passed on and that
    the SDK has not yielded yet: one read may bring many. `keepalives` counts the
    comments and the events without data since the last frame, `remark` is the
    first comment that speaks of an error, `http_status` a status that a comment
    named. After `too_long` nothing more is read.
    """

    comments: int = 0
    keepalives: int = 0
    frames: int = 0
    done: bool = False
    ended: bool = False
    too_long: bool = False
    http_status: int | None = None
    remark: bytes = b""
    handed: deque[tuple[str, bytes]] = field(default_factory=deque)
    stray: bytearray = field(default_factory=bytearray)


class SseFilter:
    """Incremental filter; `feed` may be called with any cut of the bytes."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._rest = bytearray()
        self._after_cr = False
        self._at_start = True
        self._event = b""
        self._data: list[bytes] = []
        self._length = 0
        self._has_fields = False

    def feed(self, piece: bytes) -> bytes:
        """Take bytes off the wire; return the frames that are complete."""
        if self._observed.too_long:
            return b""
        if self._at_start:
            piece = bytes(self._rest) + piece
            self._rest.clear()
            if BOM.startswith(piece[:3]) and len(piece) < 3:
                self._rest += piece
                return b""
            piece = piece.removeprefix(BOM)
            self._at_start = False
        out: list[bytes] = []
        for line in self._lines(piece):
            self._take(line, out)
        if self._length + len(self._rest) > LONGEST_FRAME:
            self._give_up()
        return b"".join(out)

    def finish(self) -> bytes:
        """The body has ended: an unfinished last line may still be read.

        An event without its blank line is not dispatched, as the specification
        says; but `[DONE]` is no event, and a line that is no field at all may be
        an error in plain words.
        """
        self._observed.ended = True
        out: list[bytes] = []
        if self._rest:
            self._take(bytes(self._rest), out)
            self._rest.clear()
        return b"".join(out)

    def _lines(self, piece: bytes) -> list[bytes]:
        if self._after_cr and piece[:1] == b"\n":
            piece = piece[1:]
            self._after_cr = False
        if piece:
            self._after_cr = piece[-1:] == b"\r"
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = piece.split(b"\n")
        if lines and self._rest:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += rest
        return lines

    def _give_up(self) -> None:
        self._observed.too_long = True
        self._rest.clear()
        self._data.clear()

    def _take(self, line: bytes, out: list[bytes]) -> None:
        if self._observed.too_long:
            return
        if not line:
            self._dispatch(out)
        elif self._length + len(line) > LONGEST_FRAME:
            self._give_up()
        elif line.startswith(b"data:"):
            self._take_data(line[6:] if line[5:6] == b" " else line[5:], out)
        elif line.startswith(b":"):
            self._comment(line[1:])
        elif line.startswith(b"event:"):
            self._event = line[6:].strip()
            self._has_fields = True
        elif line.startswith((b"id:", b"retry:")) or line in BARE_FIELDS:
            self._has_fields = True
        elif _is_done(line):
            self._end(out)
        elif not self._observed.done:
            self._take_stray(line, out)

    def _take_data(self, value: bytes, out: list[bytes]) -> None:
        # Chunks with no blank line between them: together they would be no JSON.
        if value[:1] == b"{" and self._data and _is_json(b"\n".join(self._data)):
            self._dispatch(out)
        # Not JSON, so it ends an event that lacks its blank line as well.
        if value[:1] != b"{" and _is_done(value):
            self._end(out)
            return
        self._data.append(value)
        self._length += len(value) + 6
        self._has_fields = True

    def _comment(self, text: bytes) -> None:
        self._observed.comments += 1
        self._observed.keepalives += 1
        text = text.strip()
        name, _, value = text.partition(b"/")
        if name == b"HTTP_STATUS" and len(value) == 3 and value.isdigit():
            self._observed.http_status = None if value == b"200" else int(value)
        elif not self._observed.remark and not self._observed.done:
            says_error = text[:5].lower() == b"error" or (
                text[:1] == b"{" and b'"error"' in text
            )
            if says_error:
                self._observed.remark = text[:STRAY_LENGTH]

    def _take_stray(self, line: bytes, out: list[bytes]) -> None:
        report = _error_in(line)
        if not report:
            room = STRAY_LENGTH - len(self._observed.stray)
            self._observed.stray += (line + b"\n")[:room]
            return
        if _is_json(b"\n".join(self._data)):
            self._dispatch(out)
        # What was torn is lost: the error says why.
        self._data, self._event, self._length = [], b"", 0
        self._hand(b"error", report, out)

    def _end(self, out: list[bytes]) -> None:
        self._dispatch(out)
        if not self._observed.done:
            self._observed.done = True
            out.append(DONE_FRAME)

    def _dispatch(self, out: list[bytes]) -> None:
        data, event, had_fields = self._data, self._event, self._has_fields
        self._data, self._event, self._length = [], b"", 0
        self._has_fields = False
        if self._observed.done:
            return
        payload = data[0] if len(data) == 1 else b"\n".join(data)
        if payload.strip():
            self._hand(event, payload, out)
        elif had_fields:
            self._observed.keepalives += 1

    def _hand(self, event: bytes, payload: bytes, out: list[bytes]) -> None:
        self._observed.frames += 1
        self._observed.keepalives = 0
        self._observed.handed.append((event.decode("utf-8", "replace"), payload))
        out.append(b"data: " + payload.replace(b"\n", b"\ndata: ") + b"\n\n")


def _is_done(value: bytes) -> bool:
    return value.strip(b" \t\"'")[:6].upper() == DONE


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _error_in(line: bytes) -> bytes:
    """Find the error that a line reports which is no field of an event."""
    if line[:6].lower() == b"error:":
        return line[6:].strip()
    if line[:1] != b"{" or b'"error"' not in line:
        return b""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return b""
    return line.strip() if isinstance(value, Mapping) and value.get("error") else b""
