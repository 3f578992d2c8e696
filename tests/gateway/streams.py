"""Every way to spoil an answer on its way, as strategies.

`plays()` builds a response in steps: frames of an answer; frames inserted, dropped,
repeated, swapped; bytes of the body changed; a head and a framing, right or wrong;
raw bytes changed; a cut; and how it all is parted into pieces on the wire.
"""

import gzip
import re
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

from tests.fakescript import chunk
from tests.gateway.bytegateway import After, Delivery
from tests.gateway.material import (
    BITS,
    BODIES,
    CALLS,
    ENDS,
    HALVES,
    HARMFUL,
    HARMLESS,
    HEADERS,
    LEFTOVERS,
    SAY,
    STATUSES,
    TAGGED,
    THINK,
    THOUGHTS,
    TYPES,
    WORDS,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it was meant: its frames, and what they say."""

    frames: tuple[bytes, ...]
    words: tuple[str, ...]
    thoughts: tuple[str, ...]
    is_plain: bool

    @property
    def text(self) -> str:
        return "".join(self.words)

    @property
    def reasoning(self) -> str:
        return "".join(self.thoughts)


@dataclass(frozen=True, slots=True)
class Play:
    """One response and how it is delivered.

    `answer` is what was meant; `is_spoiled` says that more was done to it than cutting.
    `raw` is all that is sent, in pieces that `cuts` part.
    """

    answer: Answer
    is_spoiled: bool
    raw: bytes
    cuts: tuple[int, ...]
    after: After
    pauses: int
    is_cut: bool

    @property
    def delivery(self) -> Delivery:
        marks = sorted({min(cut, len(self.raw)) for cut in self.cuts} | {len(self.raw)})
        starts = [0, *marks[:-1]]
        pieces = tuple(
            self.raw[start:end]
            for start, end in zip(starts, marks, strict=True)
            if end > start
        )
        return Delivery(pieces, self.after, self.pauses)


SPAN = 2**16 - 1
RETURN = re.compile(rb"\r")
KINDS = (
    *("whole", "cut", "frames", "body", "raw", "head", "refused", "all"),
    *("cut", "frames", "body", "raw"),
)

# Made once: most of the time of drawing would go into making them.
kinds = st.sampled_from(KINDS)
places = st.integers(0, SPAN)
some_places = st.lists(places, max_size=4)
booleans = st.booleans()
seldom = st.sampled_from((False, False, False, True))
few = st.integers(1, 3)
spans = st.integers(1, 40)
masks = st.integers(1, 255)
wrongs = st.integers(1, 50)
manners = st.sampled_from(("plain", "plain", "plain", "tagged", "halves"))
thoughts_ = st.lists(st.sampled_from(THOUGHTS), max_size=2)
words_ = {
    "plain": st.lists(st.sampled_from(WORDS), max_size=7),
    "tagged": st.lists(st.sampled_from(TAGGED), max_size=7),
    "halves": st.lists(st.sampled_from(HALVES), max_size=7),
}
ways_to_say = st.sampled_from(sorted(SAY))
ways_to_think = st.sampled_from(sorted(THINK))
calls_ = st.sampled_from(("none", *CALLS))
ends = st.sampled_from(("whole", "whole", "no finish", *ENDS))
harmless_ = st.lists(st.sampled_from(HARMLESS), max_size=2)
harmful = st.sampled_from(HARMFUL)
moves = st.sampled_from(("insert", "insert", "drop", "twice", "swap"))
changes = st.sampled_from(("flip", "insert", "drop", "twice", "swap"))
bits = st.sampled_from(BITS)
bodies = st.sampled_from(BODIES)
leftovers = st.sampled_from(LEFTOVERS)
statuses = st.sampled_from((200, *STATUSES))
types = st.sampled_from(TYPES)
headers = st.lists(st.sampled_from(HEADERS), max_size=2)
framings = st.sampled_from(("chunked", "chunked", "length", "close", "short", "long"))
afters: st.SearchStrategy[After] = st.sampled_from(("fin", "keep", "rst", "fin"))
styles = st.sampled_from(("places", "places", "window", "returns"))
pauses_ = st.sampled_from((0, 0, 1, 5))


def _at(place: int, length: int) -> int:
    """Scale a place to a length, so that shrinking does not depend on it."""
    return place * length // SPAN


def _answers(draw: st.DrawFn) -> Answer:
    """An answer that nothing has happened to yet."""
    thoughts = draw(thoughts_)
    manner = draw(manners)
    words = draw(words_[manner])
    say = SAY[draw(ways_to_say)]
    think = THINK[draw(ways_to_think)]
    if manner == "halves":
        say = SAY["escaped"]
    elif say is SAY["message"]:
        think = THINK["reasoning"]
    calls = draw(calls_)
    end = draw(ends)
    frames = [chunk(content="")] if draw(booleans) else []
    frames += [think(thought) for thought in thoughts]
    frames += [say(word) for word in words]
    frames += [*CALLS[calls], *ENDS[end]]
    return Answer(tuple(frames), tuple(words), tuple(thoughts), manner == "plain")


def _rearranged(draw: st.DrawFn, frames: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Frames dropped, repeated, swapped, and strange ones put between."""
    changed = list(frames)
    for _ in range(draw(few)):
        place = _at(draw(places), len(changed))
        match draw(moves):
            case "insert":
                changed.insert(place, draw(harmful))
            case "drop":
                del changed[place : place + 1]
            case "twice":
                changed[place:place] = changed[place : place + 1]
            case _:
                changed[place : place + 2] = reversed(changed[place : place + 2])
    return tuple(changed)


def _corrupted(draw: st.DrawFn, raw: bytes) -> bytes:
    """Bytes flipped, inserted, dropped, repeated or exchanged, anywhere."""
    for _ in range(draw(few)):
        place = _at(draw(places), len(raw))
        size = draw(spans)
        before, span, after = (
            raw[:place],
            raw[place : place + size],
            raw[place + size :],
        )
        match draw(changes):
            case "flip":
                mask = draw(masks)
                raw = before + bytes(b ^ mask for b in span[:1]) + span[1:] + after
            case "insert":
                raw = before + draw(bits) + span + after
            case "drop":
                raw = before + after
            case "twice":
                raw = before + span + span + after
            case _:
                raw = before + after[:size] + span + after[size:]
    return raw


def _heads(draw: st.DrawFn) -> tuple[int, str, list[tuple[str, str]]]:
    """A status, a content type and further headers that go ill together."""
    status = draw(statuses)
    extra = draw(headers)
    return status, draw(types), extra


def _framed(
    draw: st.DrawFn, body: bytes, head: tuple[int, str, list[tuple[str, str]]]
) -> tuple[bytes, bytes, bool]:
    """Head and body of an HTTP response; says whether the framing is right."""
    status, kind, extra = head
    framing = draw(framings)
    if ("content-encoding", "gzip") in extra and draw(booleans):
        body = gzip.compress(body, mtime=0)
    lines = [f"HTTP/1.1 {status} Word"]
    if framing == "close" and draw(booleans):
        lines = [f"HTTP/1.0 {status} Word"]
    lines += [f"content-type: {kind}"] if kind else []
    lines += [f"{name}: {value}" for name, value in extra]
    if framing == "chunked":
        lines.append("transfer-encoding: chunked")
        cuts = sorted(draw(some_places))
        body = _chunked(body, cuts, is_wordy=draw(seldom))
    elif framing != "close":
        wrong = {"length": 0, "short": -1, "long": 1}[framing] * draw(wrongs)
        lines.append(f"content-length: {max(0, len(body) + wrong)}")
    early = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" if draw(seldom) else b""
    head_sent = early + "\r\n".join([*lines, "", ""]).encode("latin-1")
    return head_sent, body, framing in ("chunked", "length", "close")


def _chunked(body: bytes, cuts: list[int], *, is_wordy: bool) -> bytes:
    """Frame a body in chunks; wordy ones carry an extension and a trailer."""
    marks = [0, *(_at(cut, len(body)) for cut in cuts), len(body)]
    pieces = [body[a:b] for a, b in pairwise(marks) if b > a]
    word = b";name=value" if is_wordy else b""
    end = b"0\r\nx-trailer: value\r\n\r\n" if is_wordy else b"0\r\n\r\n"
    return b"".join(b"%x%b\r\n%b\r\n" % (len(p), word, p) for p in pieces) + end


GOOD_HEAD = (200, "text/event-stream; charset=utf-8", [("x-request-id", "req_1")])


@st.composite
def plays(draw: st.DrawFn) -> Play:
    """A response, spoiled in one way or in several."""
    kind = draw(kinds)
    answer = _answers(draw)
    frames, is_spoiled = answer.frames, kind not in ("whole", "cut")
    for harmless in draw(harmless_):
        place = _at(draw(places), len(frames))
        frames = (*frames[:place], harmless, *frames[place:])
    if kind in ("frames", "all"):
        frames = _rearranged(draw, frames)
    body = b"".join(frames)
    if kind == "refused":
        body = draw(bodies)
    if kind in ("body", "all") or (kind == "refused" and draw(booleans)):
        body = _corrupted(draw, body)
    head = _heads(draw) if kind in ("head", "refused", "all") else GOOD_HEAD
    sent, rest, is_right = _framed(draw, body, head)
    if draw(seldom):
        # What is done to a head leaves little of the rest to see.
        sent, rest = b"", sent + rest
    if kind in ("raw", "all"):
        rest = _corrupted(draw, rest) + draw(leftovers)
    is_cut = kind == "cut" or (kind == "all" and draw(booleans))
    if is_cut:
        rest = rest[: _at(draw(places), len(rest))]
    raw = sent + rest
    cuts = [_at(place, len(raw)) for place in draw(some_places)]
    match draw(styles):
        case "window":
            start = _at(draw(places), len(raw))
            cuts += range(start, start + 30)
        case "returns":
            cuts += [found.end() for found in RETURN.finditer(raw)]
        case _:
            pass
    after: After = draw(afters)
    return Play(
        answer=answer,
        is_spoiled=is_spoiled or not is_right,
        raw=raw,
        cuts=tuple(cuts),
        after=after,
        pauses=draw(pauses_),
        is_cut=is_cut,
    )
