"""What hostile text may cost: structure, not seconds, because no clock is fair."""

import pytest

from threads.rendering import MarkdownStream, render_text

WIDE = "a|" * 60 + "\n" + "-|" * 60 + "\n" + "b\n" * 1500
LONG_ADDRESS = "https://e.example/" + "x" * 1900


@pytest.mark.parametrize(
    "text",
    [
        f"[a]: {LONG_ADDRESS}\n\n" + "[a] " * 5_000,
        f"[a]: {LONG_ADDRESS}\n\n" + "[a]\n\n" * 5_000,
        f"[a]: {LONG_ADDRESS}\n\n" + "![a]\n\n" * 5_000,
        '[a]: https://e.example "' + "x" * 9_000 + '"\n\n' + "[a] " * 3_000,
        WIDE,
        ("- " + WIDE[:330].replace("\n", "\n  ") + "\n\n") * 60,
        ("|a" * 20 + "|\n" + "|:-:" * 20 + "|\n" + "b\n" * 12 + "\n") * 80,
        "http://a.b/(" * 2_000,
        "> " * 19 + "a\n" + "a\n" * 9_000,
    ],
)
def test_what_is_shown_is_bounded_by_what_was_written(text: str) -> None:
    assert sum(map(len, render_text(text))) < 60 * len(text) + 300_000


@pytest.mark.parametrize(
    "text",
    [
        "*a* " * 4_900,
        "![" * 9_000,
        "[" * 19_000,
        "- a\n" * 4_900,
        "> " * 19 + "a\n" + "a\n" * 9_000,
        "a\n=\n" * 1 + "|a|\n|-|\n" + "b\n" * 9_000,
        "words " * 4_000,
    ],
)
def test_a_block_that_is_too_much_is_shown_as_it_was_written(text: str) -> None:
    assert '<p class="unparsed">' in render_text(text)[-1]


@pytest.mark.parametrize(
    "text",
    [
        "Some words of *prose* and `code`, with [a link](https://a.example/b).\n" * 250,
        "- An item with **bold** words and `code`, and so on and so forth.\n" * 280,
        "Words of a line with **bold** and the like\n" * 440,
        "| Name | What it means |\n|---|---|\n" + "| `name` | It **means** |\n" * 90,
        "- https://example.org/path/to/it?a=b\n" * 100,
        "".join(f"[{i}]: https://a.example/{i}\n" for i in range(99)) + "\n[5] [6]",
    ],
)
def test_what_people_write_is_parsed(text: str) -> None:
    blocks = render_text(text)

    assert blocks
    assert not any("unparsed" in block for block in blocks)


def test_a_text_borrows_only_so_much_from_its_definitions() -> None:
    blocks = render_text(f"[a]: {LONG_ADDRESS}\n\n" + "[a]\n\n" * 100)

    links = ["<a " in block for block in blocks]
    assert links == sorted(links, reverse=True)
    assert 0 < sum(links) < 100
    assert blocks[-1] == '<p class="unparsed">[a]</p>'


@pytest.mark.parametrize(
    "text",
    [
        "[a](https://e.example/" + "x" * 2_000 + ")",
        "<https://e.example/" + "x" * 2_000 + ">",
        "https://e.example/" + "x" * 2_000,
        "[a]: https://e.example/" + "x" * 2_000 + "\n\n[a]",
    ],
)
def test_an_address_beyond_measure_is_no_link(text: str) -> None:
    assert not any("<a " in block for block in render_text(text))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("see https://a.example/b, or", 'href="https://a.example/b"'),
        ("(HTTP://a.example)", 'href="HTTP://a.example"'),
        ("**https://a.example**", 'href="https://a.example"'),
        ("xhttps://a.example", None),
        ("a://b.example http:// x", None),
        ("[https://a.example](https://b.example)", 'href="https://b.example"'),
    ],
)
def test_a_bare_address_is_a_link(text: str, html: str | None) -> None:
    (block,) = render_text(text)

    assert block.count("<a ") == (0 if html is None else 1)
    assert html is None or html in block


def test_a_table_fills_up_few_cells_that_are_missing() -> None:
    assert render_text(WIDE)[0].count("<td></td>") <= 200


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("csharp", "a\n" * 20),
        ("scala", "val a = 1\n"),
        ("markdown", "```csharp\na\n```\n"),
        ("python", "x = 1\n" * 2_000),
        ("python", "x = " + "1 + " * 100 + "1\n"),
        ("python", "x = 1\n" + "\n" * 20),
        ("python", "[" * 150 + "\n" + "()+\n" * 2_000),
    ],
)
def test_code_that_may_cost_too_much_is_plain(language: str, code: str) -> None:
    block = render_text(f"````{language}\n{code}````")[0]

    assert "tok-" not in block
    assert f'data-language="{language}"' in block


@pytest.mark.parametrize(
    "language", ["python", "javascript", "json", "html", "css", "sh", "sql", "yaml"]
)
def test_code_of_a_safe_language_is_coloured(language: str) -> None:
    assert "tok-" in render_text(f'```{language}\n<b> "a": 1;\n```')[0]


def test_all_the_code_of_a_block_shares_one_measure() -> None:
    (block,) = render_text(("- ```python\n" + "  x = 1\n" * 300 + "  ```\n") * 6)

    assert "tok-" in block
    assert block.rindex("tok-") < block.rindex('<figure class="code"')


@pytest.mark.parametrize("text", [WIDE, f"[a]: {LONG_ADDRESS}\n\n" + "- [a]\n" * 300])
def test_hostile_text_is_the_same_live_and_after_a_reload(text: str) -> None:
    stream = MarkdownStream()
    for place in range(0, len(text), 40):
        stream.feed(text[place : place + 40])
    stream.close()

    assert tuple(stream.blocks) == render_text(text)
