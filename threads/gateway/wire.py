"""The bytes of one event stream: observed, and handed on in a form the SDK reads.

The SDK ends a stream on legal control frames (`retry:` alone, `event: ping`
without data: measured, JSONDecodeError) and says nothing of `[DONE]` or of
comments. This filter stands between the socket and the SDK: it counts and drops
what carries no data, notes `[DONE]`, keeps what is no event stream at all, and
passes each data frame on unchanged in content. It parses no JSON.
"""

from collections import deque
from dataclasses import dataclass, field

STRAY_LENGTH = 65_536
"""Bytes kept of lines that belong to no event stream."""

BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Observed:
    """What the wire showed.

    `handed` holds event name and data of each frame that was passed on and that
    the SDK has not yielded yet: one read may bring many.
    """

    comments: int = 0
    frames: int = 0
    done: bool = False
    ended: bool = False
    http_status: int | None = None
    handed: deque[tuple[str, bytes]] = field(default_factory=deque)
    stray: bytearray = field(default_factory=bytearray)


class SseFilter:
    """Incremental filter; `feed` may be called with any cut of the bytes."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._rest = b""
        self._after_cr = False
        self._at_start = True
        self._event = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> bytes:
        """Take bytes off the wire; return the frames that are complete."""
        if self._at_start:
            piece = self._rest + piece
            self._rest = b""
            if BOM.startswith(piece[:3]) and len(piece) < 3:
                self._rest = piece
                return b""
            piece = piece.removeprefix(BOM)
            self._at_start = False
        out: list[bytes] = []
        for line in self._lines(piece):
            self._take(line, out)
        return b"".join(out)

    def finish(self) -> bytes:
        """The body has ended: an unfinished last line may still be read.

        An event without its blank line is not dispatched, as the specification
        says; but a line that is no field at all may be an error in plain words.
        """
        self._observed.ended = True
        if self._rest:
            self._take(self._rest, [])
            self._rest = b""
        return b""

    def _lines(self, piece: bytes) -> list[bytes]:
        if self._after_cr and piece[:1] == b"\n":
            piece = piece[1:]
            self._after_cr = False
        if piece:
            self._after_cr = piece[-1:] == b"\r"
        text = self._rest + piece
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self._rest = text.split(b"\n")
        return lines

    def _take(self, line: bytes, out: list[bytes]) -> None:
        if not line:
            self._dispatch(out)
        elif line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line.startswith(b":"):
            self._comment(line[1:])
        elif line.startswith(b"event:"):
            self._event = line[6:].strip()
        elif not line.startswith((b"id:", b"retry:")) and line not in (
            b"data",
            b"event",
            b"id",
        ):
            self._keep_stray(line)

    def _comment(self, text: bytes) -> None:
        self._observed.comments += 1
        name, _, value = text.strip().partition(b"/")
        is_status = name == b"HTTP_STATUS" and len(value) == 3 and value.isdigit()
        if is_status and value != b"200":
            self._observed.http_status = int(value)

    def _keep_stray(self, line: bytes) -> None:
        room = STRAY_LENGTH - len(self._observed.stray)
        self._observed.stray += (line + b"\n")[:room]

    def _dispatch(self, out: list[bytes]) -> None:
        data, event = self._data, self._event
        self._data, self._event = [], b""
        if not data or self._observed.done:
            return
        payload = data[0] if len(data) == 1 else b"\n".join(data)
        stripped = payload.strip()
        if not stripped:
            return
        if stripped[:6].upper() == b"[DONE]":
            self._observed.done = True
            out.append(b"data: [DONE]\n\n")
            return
        self._observed.frames += 1
        self._observed.handed.append((event.decode("utf-8", "replace"), payload))
        for part in data:
            out += (b"data: ", part, b"\n")
        out.append(b"\n")
