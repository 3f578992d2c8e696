"""What becomes of Markdown: blocks, their HTML, and nothing that could do harm."""

from html.parser import HTMLParser

import pytest

from threads.rendering import render_text

HARMLESS = {
    *("p", "a", "br", "pre", "code", "figure", "figcaption", "span", "button"),
    *("div", "table", "thead", "tbody", "tr", "th", "td"),
}


class Elements(HTMLParser):
    """Collects the elements that a browser would make."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("Hello", ["<p>Hello</p>"]),
        ("One\n\nTwo\n", ["<p>One</p>", "<p>Two</p>"]),
        ("A line\nand another", ["<p>A line<br>\nand another</p>"]),
        ("# Title\nText", ["<h3>Title</h3>", "<p>Text</p>"]),
        ("Title\n===\nText", ["<h3>Title</h3>", "<p>Text</p>"]),
        ("###### Small", ["<h6>Small</h6>"]),
        ("a\n\n---\n\nb", ["<p>a</p>", "<hr>", "<p>b</p>"]),
        ("~~gone~~ **b** *i*", ["<p><s>gone</s> <strong>b</strong> <em>i</em></p>"]),
        ("#hashtag", ["<p>#hashtag</p>"]),
        ("", []),
        ("\n \n", []),
    ],
)
def test_a_text_is_cut_into_its_blocks(text: str, blocks: list[str]) -> None:
    assert list(render_text(text)) == blocks


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("Items:\n- a\n- b\n\nAfter", ["<p>Items:", "<ul>", "<p>After"]),
        ("- a\n\n  still a\n- b\n", ["<ul>"]),
        ("- a\nlazy\n\nafter", ["<ul>", "<p>after"]),
        ("- a\n* b", ["<ul>", "<ul>"]),
        ("1. a\n2. b\n- c", ["<ol>", "<ul>"]),
        ("The year\n1984. Cold", ["<p>The year"]),
        ("- ```\n  code\n\n  more\n  ```\n- b\n\nend", ["<ul>", "<p>end"]),
        ("- a\n  - b\n    - c\n\nend", ["<ul>", "<p>end"]),
        ("> quoted\nlazy\n\n> another", ["<blockquote>", "<blockquote>"]),
        ("> - a\nlazy\n# h", ["<blockquote>", "<h3>"]),
        ("> ```\n> code\nnot lazy", ["<blockquote>", "<p>not lazy"]),
        ("    code\n\n    more\ntext", ["<figure", "<p>text"]),
        ("|a|b|\n|-|-|\n|1|2|\n\nend", ["<div", "<p>end"]),
        ("|a|b|\n|-|-|\n|1|2|\n# h", ["<div", "<h3>"]),
        ("a | b\nc | d", ["<p>a | b"]),
        ("```\n# not a title\n\n- nor an item\n```\nend", ["<figure", "<p>end"]),
        ("````\n```\n````\nend", ["<figure", "<p>end"]),
        ("~~~\n```\n~~~\nend", ["<figure", "<p>end"]),
        ("```never closed\ncode", ["<figure"]),
        ("```inline``` code", ["<p><code>inline"]),
    ],
)
def test_containers_end_where_markdown_ends_them(text: str, starts: list[str]) -> None:
    blocks = render_text(text)

    assert len(blocks) == len(starts)
    for block, start in zip(blocks, starts, strict=True):
        assert block.startswith(start)


def test_a_link_definition_serves_the_blocks_after_it() -> None:
    blocks = render_text("[home]: https://example.org\n\nGo [home].")

    assert len(blocks) == 1
    assert 'href="https://example.org"' in blocks[0]


def test_a_link_is_safe_to_follow() -> None:
    (block,) = render_text("See https://example.org/a and [b](http://b.example 't').")

    assert block.count('rel="noopener nofollow ugc"') == 2
    assert block.count('target="_blank"') == 2


def test_a_file_name_is_no_link() -> None:
    assert render_text("Edit settings.py")[0] == "<p>Edit settings.py</p>"


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](data:text/html,x)",
        "[a](/sign-out/)",
        "<javascript:alert(1)>",
        "![a](x onerror=alert(1))",
        '```py" onmouseover="alert(1)\n</code></pre><script>alert(1)</script>\n```',
        "| <b onclick=x>a</b> |\n|---|\n| <iframe src=x></iframe> |",
        "<div style='position:fixed'>",
        "[a]: javascript:alert(1)\n\n[a]",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
    ],
)
def test_hostile_text_stays_text(hostile: str) -> None:
    elements = Elements()
    for block in render_text(hostile):
        elements.feed(block)

    for tag, attributes in elements.found:
        assert tag in HARMLESS
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert attributes.get("href", "https://").startswith(("http://", "https://"))


def test_an_image_is_a_link_and_is_never_loaded() -> None:
    (block,) = render_text("![A cat](https://example.org/cat.png)")

    assert "<img" not in block
    assert 'class="image" href="https://example.org/cat.png"' in block
    assert ">A cat</a>" in block


def test_code_names_its_language_and_can_be_copied() -> None:
    (block,) = render_text('```python title="x"\nprint("<b>")\n```')

    assert block.startswith('<figure class="code" data-language="python">')
    assert "<span>Python</span>" in block
    assert 'data-copy="code" aria-labelledby="label-copy-code"' in block
    assert '<span class="tok-nb">print</span>' in block
    assert "&lt;b&gt;" in block


@pytest.mark.parametrize("language", ["", "no-such-language", "<script>", "a" * 500])
def test_code_of_an_unknown_language_is_plain(language: str) -> None:
    (block,) = render_text(f"```{language}\nx = 1\n```")

    assert "<code>x = 1\n</code>" in block
    assert "tok-" not in block


def test_a_column_is_aligned_by_a_class_because_styles_are_forbidden() -> None:
    (block,) = render_text("|a|b|\n|:-:|--:|\n|1|2|")

    assert '<th class="align-center">a</th>' in block
    assert '<td class="align-right">2</td>' in block


def test_very_long_code_is_shown_without_colours() -> None:
    (block,) = render_text("```python\n" + "x = 1\n" * 10_000 + "```")

    assert "tok-" not in block
    assert block.count("x = 1") == 10_000


def test_a_block_beyond_all_measure_is_shown_as_it_is() -> None:
    (block,) = render_text("*a* " * 30_000)

    assert block.startswith('<p class="unparsed">*a* *a*')
