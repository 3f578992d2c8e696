"""A growing text: the same blocks however it is cut, at a cost that stays linear."""

import sys
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from threads.rendering import MarkdownStream, render_text

LINES = [
    *("text", "  indented", "    code", "", " ", "# Title", "#", "===", "---", "* * *"),
    *("- item", "  - inner", "-", "1. one", "2. two", "10) ten", "> quote", "> - both"),
    *(
        ">",
        "```",
        "```python",
        "  ```",
        "~~~",
        "````",
        "|a|b|",
        "|-|-|",
        "|1|2|",
        "a|b",
    ),
    *("-|-", "[a]: https://b.example", "[a]", '"title"', "**bold", "`code", "\ttab"),
    *("<b>", "* star", "+ plus", "***", "___", "1984. year", "🙂 ü", "\r", "x\ry"),
]
texts = st.lists(st.sampled_from(LINES), max_size=14).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(lines))
)
anything = st.text(st.sampled_from("ab #*_-`~>|[]()!:\\<&1.\n\r\t 🙂"), max_size=80)


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(places)]


def fed(parts: list[str]) -> MarkdownStream:
    stream = MarkdownStream()
    for part in parts:
        stream.feed(part)
    return stream


@given(texts | anything, st.lists(st.integers(0, 400), max_size=12))
@example("a\r\n\r\nb", [2])
@example("[a]: b\n\n[a]", [3])
@settings(max_examples=300, deadline=None)
def test_closed_blocks_do_not_depend_on_how_the_text_was_cut(
    text: str, cuts: list[int]
) -> None:
    whole, cut, single = fed([text]), fed(pieces(text, cuts)), fed(list(text))

    assert whole.blocks == cut.blocks == single.blocks
    assert whole.length == cut.length == single.length == len(text)
    for stream in (whole, cut, single):
        stream.close()
    assert whole.blocks == cut.blocks == single.blocks == list(render_text(text))


@given(texts | anything)
@settings(max_examples=300, deadline=None)
def test_a_page_that_obeys_the_revision_shows_what_the_server_has(text: str) -> None:
    stream = MarkdownStream()
    blocks: list[str] = []
    tail, revision = "", stream.revision

    for character in text:
        stream.feed(character)
        assert stream.blocks[: len(blocks)] == blocks
        if stream.revision == revision:
            assert stream.blocks == blocks
            assert stream.tail.startswith(tail)
        blocks, tail, revision = list(stream.blocks), stream.tail, stream.revision


@pytest.mark.parametrize(
    ("text", "kind", "tail"),
    [
        ("Hello **wor", "p", "Hello **wor"),
        ("One\n\nTwo", "p", "Two"),
        ("## A ti", "h", "## A ti"),
        ("```python\nx = 1\ny", "code", "x = 1\ny"),
        ("```python\nx\n``", "code", "x\n"),
        ("- an item", "raw", "- an item"),
        ("> a quot", "raw", "> a quot"),
        ("Text\n- it", "raw", "- it"),
        ("Text\n-", "p", "Text\n"),
        ("- a\n\nNext par", "p", "Next par"),
        ("#", "p", ""),
        ("``", "p", ""),
        ("1", "p", ""),
        ("1 a", "p", "1 a"),
    ],
)
def test_the_tail_is_the_open_block_without_what_may_become_a_mark(
    text: str, kind: str, tail: str
) -> None:
    stream = fed([text])

    assert (stream.tail_kind, stream.tail) == (kind, tail)


def test_an_open_fence_names_its_language() -> None:
    assert fed(["```rust title\nfn"]).tail_language == "rust"


def test_the_complete_lines_of_an_open_list_are_rendered() -> None:
    stream = fed(["- the first item is here\n- the sec"])

    assert stream.open_html == "<ul>\n<li>the first item is here</li>\n</ul>"
    assert stream.tail == "- the sec"


@pytest.mark.parametrize(
    ("start", "unit"),
    [
        ("", "- an item of the list\n"),
        ("|a|b|\n|-|-|\n", "| one | two |\n"),
        ("", "> a line of the quotation\n"),
        ("", "words that go on and on "),
        ("", "A paragraph.\n\n"),
        ("```python\n", "x = 1\n"),
    ],
)
def test_twice_the_text_is_about_twice_the_work(start: str, unit: str) -> None:
    short, long = (work(start + unit * (size // len(unit))) for size in (4000, 8000))

    # Growing by halves takes a little more or less, as the last step falls.
    assert long < 2.7 * short


def work(text: str) -> int:
    """Count the calls that a text costs: no clock, so the same on any machine."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    stream = MarkdownStream()
    sys.setprofile(count)
    try:
        for place in range(0, len(text), 4):
            stream.feed(text[place : place + 4])
        stream.close()
    finally:
        sys.setprofile(None)
    return calls
