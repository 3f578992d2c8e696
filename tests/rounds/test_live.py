"""The frames' one promise, for any text, any ticks and any lag: pages agree."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.rounds.helpers import PageCell
from threads.rendering import render_text
from threads.rounds.live import LiveCell, Shown

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
        st.tuples(st.just("withdraw"), st.integers(0, 30)),
        st.tuples(st.just("reconnect"), st.integers(0, 2)),
    ),
    max_size=60,
)


class Reader:
    """A page and where the hub takes it to be."""

    def __init__(self) -> None:
        self.page = PageCell()
        self.shown = Shown()

    def read(self, live: LiveCell) -> None:
        """Take the frame that is lacking; it must fit."""
        frame = live.frame_since(self.shown)
        self.shown = live.published.shown
        if frame is not None:
            assert self.page.apply(json.loads(frame)), frame
        assert self.page.place == [
            self.shown.generation,
            self.shown.blocks,
            self.shown.offset,
            self.shown.reasoning,
        ]


@settings(max_examples=300, deadline=None)
@example([("text", "\x1f"), ("tick", [0])])
@given(STEPS)
def test_pages_that_lag_and_reconnect_end_with_the_same_text(
    steps: list[tuple[str, Any]],
) -> None:
    live = LiveCell(1, 1, touch=lambda _: None)
    readers = [Reader() for _ in range(3)]
    for kind, value in steps:
        match kind:
            case "text" if value:
                live.append(value)
            case "reason" if value:
                live.reason(value)
            case "withdraw":
                live.restate(live.text[:value], provisional=True)
                live.publish()
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
                pass

    live.finish()
    for reader in readers:
        reader.read(live)

    for reader in readers:
        assert reader.page.blocks == list(render_text(live.text))
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
