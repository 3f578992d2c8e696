"""The frames' one promise, for any text, any ticks and any lag: pages agree."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.rounds.helpers import PageCell
from threads.core.snapshot import Position
from threads.rendering import render_text
from threads.rounds.live import LiveCell
from threads.rounds.published import Shown

PIECES = st.one_of(
    st.sampled_from(
        [
            "word ",
            "\n",
            "\n\n",
            "# H",
            "```",
            "```py\n",
            "- a\n",
            "> q\n",
            "**",
            "`",
            "1. x\n",
            "    ",
            "😀",
            "\r\n",
            "\r",
            "---\n",
            "===\n",
            "[a](b)",
            "<b>",
        ]
    ),
    st.sampled_from(["|a|b|\n", "|-|-|\n", "|1|2|\n"]),
    st.text(max_size=12),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("text"), PIECES),
        st.tuples(st.just("reason"), st.text(max_size=5)),
        st.tuples(st.just("tick"), st.lists(st.integers(0, 2), max_size=3)),
        st.tuples(st.just("withdraw"), st.none()),
        st.tuples(st.sampled_from(["call", "tools"]), st.none()),
        st.tuples(st.just("clamp"), st.integers(0, 30)),
        st.tuples(st.just("reconnect"), st.integers(0, 2)),
    ),
    max_size=60,
)


class Reader:
    """A page and where the hub takes it to be."""

    def __init__(self) -> None:
        self.page = PageCell()
        self.shown = Shown()
        self.frames: list[dict[str, Any]] = []

    def read(self, live: LiveCell) -> None:
        """Take the frame that is lacking; it must fit."""
        frame = live.frame_since(self.shown)
        self.shown = live.published.shown
        if frame is not None:
            self.frames.append(json.loads(frame))
            assert self.page.apply(self.frames[-1]), frame
        assert self.page.place == [
            self.shown.generation,
            self.shown.blocks,
            self.shown.offset,
            self.shown.reasoning,
        ]


class Written:
    """A live cell, and the attempt that writes it."""

    def __init__(self) -> None:
        self.live = LiveCell(1, 1, touch=lambda _: None)
        self._attempt = 0
        self._begin(1)

    def do(self, kind: str, value: Any) -> None:
        """Take one step, as a round takes it."""
        live = self.live
        match kind:
            case "text" if value:
                live.append(value)
            case "reason" if value:
                live.reason(value)
            case "withdraw":
                live.withdraw(self._call, self._attempt)
                live.publish()
                self._begin(self._call)
            case "call" | "tools":
                if kind == "tools":
                    live.place_tools(self._call)
                self._begin(self._call + 1)
            case "clamp":
                live.restate(live.text[:value])
                self._begin(self._call)
            case _:
                pass

    def _begin(self, call: int) -> None:
        self._call, self._attempt = call, self._attempt + 1
        self.live.begin_attempt(call, self._attempt)


@settings(max_examples=300, deadline=None)
@example([("text", "\x1f"), ("tick", [0])])
@example([("text", "a\r"), ("tools", None), ("text", "\nb"), ("clamp", 1)])
@example([("text", "word "), ("tick", [0]), ("withdraw", None), ("tick", [0, 1])])
@given(STEPS)
def test_pages_that_lag_and_reconnect_end_with_the_same_text(
    steps: list[tuple[str, Any]],
) -> None:
    written = Written()
    live, readers = written.live, [Reader() for _ in range(3)]
    for kind, value in steps:
        match kind:
            case "tick":
                live.publish()
                for reader in value:
                    readers[reader].read(live)
            case "reconnect":
                reader = readers[value]
                generation, blocks, offset, reasoning = reader.page.place
                reader.shown = live.place(generation, blocks, offset, reasoning)
                reader.read(live)
            case _:
                written.do(kind, value)

    live.settle()
    live.finish()
    for reader in readers:
        reader.read(live)

    for reader in readers:
        assert reader.page.blocks == list(render_text(live.text, tuple(live.slots)))
        assert (reader.page.tail, reader.page.open_html) == ("", "")
        assert reader.page.reasoning == "".join(live.reasoning_parts)


@given(st.lists(PIECES, max_size=30), st.lists(PIECES, max_size=30))
def test_a_published_state_never_changes(before: list[str], after: list[str]) -> None:
    live = LiveCell(1, 1, touch=lambda _: None)
    for piece in before:
        live.append(piece)
        live.reason(piece)
    live.publish()
    state, view = live.published, live.published.view()

    for piece in after:
        live.append(piece)
        live.reason(piece)
    live.publish()
    live.restate("")
    live.finish()

    assert state.view() == view


def test_pages_at_the_same_point_share_one_frame() -> None:
    live = LiveCell(1, 1, touch=lambda _: None)
    live.append("Hello")
    live.publish()
    page = live.published.shown
    live.append(" world")
    live.publish()

    assert live.frame_since(page) is live.frame_since(page)


def test_what_is_sent_grows_with_the_text_and_not_with_its_square() -> None:
    sizes = []
    for words in (2_000, 4_000):
        live, reader, sent = LiveCell(1, 1, touch=lambda _: None), Reader(), 0
        for number in range(words):
            live.append(
                f"- word {number}\n" if number % 3 else "text and more text\n\n"
            )
            if number % 5 == 0:
                live.publish()
                sent += len(live.frame_since(reader.shown) or "")
                reader.read(live)
        sizes.append(sent)

    assert sizes[1] < 2.5 * sizes[0]


def shown_and_read(live: LiveCell, reader: Reader) -> str:
    """Publish, let the page read, and return its open text."""
    live.publish()
    reader.read(live)
    return reader.page.tail


def test_a_withdrawal_takes_one_attempts_text_wherever_the_same_words_stand() -> None:
    live, reader = LiveCell(1, 1, touch=lambda _: None), Reader()
    for attempt, piece in enumerate(("ha ", "ha ha"), 1):
        live.begin_attempt(attempt, 1)
        live.append(piece)
    live.append(" ha")

    assert shown_and_read(live, reader) == "ha ha ha ha"
    assert live.withdraw(2, 1)
    assert shown_and_read(live, reader) == "ha "
    live.begin_attempt(2, 2)
    live.append("ha!")
    assert shown_and_read(live, reader) == "ha ha!"


def test_a_withdrawal_of_another_attempt_or_of_nothing_changes_nothing() -> None:
    live = LiveCell(1, 1, touch=lambda _: None)
    live.begin_attempt(1, 1)
    live.append("One")
    live.begin_attempt(1, 2)

    assert not live.withdraw(1, 2)
    live.append("Two")
    assert not live.withdraw(1, 1)
    assert not live.withdraw(2, 2)

    assert (live.text, live.generation) == ("OneTwo", 0)


def test_frames_name_the_withdrawal_that_began_their_generation_and_no_other() -> None:
    live, reader = LiveCell(1, 1, touch=lambda _: None), Reader()
    live.begin_attempt(2, 3)
    live.append("Half")
    shown_and_read(live, reader)
    live.withdraw(2, 3)
    shown_and_read(live, reader)
    late = Reader()
    shown_and_read(live, late)
    live.settle()
    shown_and_read(live, reader)

    assert [(frame["g"], frame.get("w")) for frame in reader.frames] == [
        (0, None),
        (1, "2.3"),
        (2, None),
    ]
    assert [frame.get("w") for frame in late.frames] == ["2.3"]
    assert reader.page.tail == "Half"


def test_tools_stand_at_once_where_the_text_was_and_a_withdrawal_leaves_them() -> None:
    live, reader = LiveCell(7, 1, touch=lambda _: None), Reader()
    live.begin_attempt(1, 1)
    live.append("First\n- I")
    live.place_tools(1)
    live.place_tools(1)
    reader.read(live)
    section = '<section class="tools" id="cell-7-tools-1"></section>'
    before = ["<p>First</p>", "<ul>\n<li>I</li>\n</ul>", section]
    assert (reader.page.blocks, reader.page.tail) == (before, "")

    live.begin_attempt(2, 1)
    live.append("\n\nThey sa")
    assert shown_and_read(live, reader) == "They sa"
    live.withdraw(2, 1)
    shown_and_read(live, reader)
    assert reader.page.blocks == before

    # A page that pressed Stop had seen less: what ran is shown all the same.
    live.settle(Position(0, 3))
    live.finish()
    reader.read(live)
    assert reader.page.blocks == ["<p>Fir</p>", section]


def test_what_was_followed_by_text_is_not_reinstated() -> None:
    live = LiveCell(1, 1, touch=lambda _: None)
    for attempt, piece in enumerate(("Half", "Whole"), 1):
        live.withdraw(1, attempt - 1)
        live.begin_attempt(1, attempt)
        live.append(piece)

    live.settle()
    live.settle()

    assert (live.text, live.generation) == ("Whole", 1)
