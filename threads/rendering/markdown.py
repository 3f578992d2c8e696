"""One Markdown block to safe HTML.

The text comes from a model and is hostile (design section 11): raw HTML is off,
what markdown-it makes goes through nh3's allowlist, images are never loaded, and
nothing carries an inline style, which the CSP forbids. The HTML holds no words
of the interface, because one rendering serves every viewer's language: buttons
take their names from elements of the page (`aria-labelledby`).

It runs on the event loop, so the cost of a block is bounded, by counting: the steps
of markdown-it (looks at a line, at a mark, cells, characters of a run), the length
of a bare address, cells a table fills up, and, over a whole text, what links take
from definitions. A block that is too much is shown as it was written. Counted,
not timed, so it depends on the text alone. Of 237 inputs of 20,000 characters, most
of them nasty, five took more than 100 ms of CPU on two busy cores, the worst 190;
prose and lists took 30 to 85. Before, 10,000 characters took up to 2.2 s or 6 MB
of HTML. What is lost: tables of more than some 12,000 characters, and lists of
more than some 400 bare addresses, are shown as they were written.
"""

import re
import sys
from collections.abc import Sequence
from typing import Any

import nh3
from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from threads.rendering.code import LONGEST_COLOURED, coloured, language_name

LONGEST_PARSED = 20_000
MOST_STEPS = 4_500
STEPS_OF_ADDRESS = 5
STEPS_OF_CODE = 15
MOST_BORROWED = 100_000
LONGEST_ADDRESS = 2_000
MOST_MISSING_CELLS = 100

# The page has the site's h1 and one h2 a cell: an answer's headings start at h3.
HEADINGS = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6", "h6": "h6"}
ALIGNMENT = re.compile(r"text-align:(left|center|right)")
MARKS = re.compile(r"([*_~])\1*")
SCHEME = re.compile(r"(?:^|[^a-z0-9.+-])(https?)$", re.IGNORECASE)
RUN = re.compile(rf"[^\s<]{{1,{LONGEST_ADDRESS}}}(?![^\s<])")
SAFE_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)

CLEANER = nh3.Cleaner(
    tags={
        *{"p", "br", "hr", "h3", "h4", "h5", "h6", "strong", "em", "s", "code", "pre"},
        *{"a", "ul", "ol", "li", "blockquote", "figure", "figcaption", "span", "div"},
        *{"table", "thead", "tbody", "tr", "th", "td", "button"},
    },
    clean_content_tags={"script", "style"},
    attributes={
        "a": {"href", "title", "class"},
        "ol": {"start"},
        "th": {"class"},
        "td": {"class"},
        "div": {"class", "tabindex"},
        "pre": {"tabindex", "class"},
        "code": {"class"},
        "span": {"class"},
        "figure": {"class", "data-language"},
        "button": {"type", "class", "data-copy", "aria-labelledby"},
    },
    url_schemes={"http", "https", "mailto"},
    link_rel="noopener nofollow ugc",
    set_tag_attribute_values={"a": {"target": "_blank"}},
)


def language_of(info: str) -> str:
    """Read the language off a fence's info string, reduced to a safe short name."""
    word = info.strip().split(maxsplit=1)[0] if info.strip() else ""
    return re.sub(r"[^\w+#.-]", "", word.lower())[:30]


def code_figure(code: str, language: str, *, plain: bool = False) -> str:
    """Set code in a figure with its language and a copy button."""
    inner = None if plain else coloured(code, language)
    return (
        f'<figure class="code" data-language="{escape(language)}"><figcaption>'
        f"<span>{escape(language_name(language))}</span>"
        '<button type="button" class="copy" data-copy="code"'
        ' aria-labelledby="label-copy-code"></button></figcaption>'
        f'<pre tabindex="0"><code>{inner or escape(code)}</code></pre></figure>\n'
    )


def fence(
    _self: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    env: EnvType,
) -> str:
    """Render fenced and indented code; of all code in a block so much is coloured."""
    code = tokens[index].content
    step(env, STEPS_OF_CODE)
    env["code"] = env.get("code", 0) + len(code)
    plain = env["code"] > LONGEST_COLOURED
    return code_figure(code, language_of(tokens[index].info), plain=plain)


def image(
    _self: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    _env: EnvType,
) -> str:
    """Show an image as a link: loading it would tell its host who reads what."""
    source = str(tokens[index].attrGet("src") or "")
    label = tokens[index].content or source
    return f'<a class="image" href="{escape(source)}">{escape(label)}</a>'


def adapt(tokens: Sequence[Token]) -> None:
    """Fit markdown-it's tokens to the page: headings lower, alignment as a class."""
    for token in tokens:
        token.tag = HEADINGS.get(token.tag, token.tag)
        style = ALIGNMENT.search(str(token.attrs.pop("style", "")))
        if style:
            token.attrSet("class", f"align-{style[1]}")


class TooMuchError(Exception):
    """This block would cost more than one may."""


def step(env: EnvType, cost: int = 1) -> None:
    """Count a step of the parser's work on a block."""
    env["steps"] = env.get("steps", 0) + cost
    if env["steps"] > MOST_STEPS:
        raise TooMuchError


def count_line(state: StateBlock, start: int, _end: int, _silent: bool) -> bool:
    """Count each look at a line, and a row's cells, as a rule that never applies."""
    row = state.parentType == "table"
    bars = state.src.count("|", state.bMarks[start], state.eMarks[start]) if row else 0
    step(state.env, 1 + bars)
    return False


def count_mark(state: StateInline, _silent: bool) -> bool:
    """Count each look at a piece of a line, as a rule that never applies.

    Each character of a run of marks becomes a token of its own.
    """
    run = MARKS.match(state.src, state.pos)
    step(state.env, 1 + (len(run[0]) // 4 if run else 0))
    return False


def frugal_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Make a table; count those of its cells that were not counted with their row."""
    tokens, steps = len(state.tokens), state.env.get("steps", 0)
    made = table(state, start, end, silent)
    counted = state.env.get("steps", 0) - steps
    step(state.env, max(0, (len(state.tokens) - tokens) // 3 - counted))
    return made


def address(state: StateInline, silent: bool) -> bool:
    """Make a bare address a link, at the cost of its own length.

    markdown-it's rule looks at all the text before and after each `://`.
    """
    if state.linkLevel or not state.src.startswith("://", state.pos):
        return False
    scheme = SCHEME.search(state.pending[-6:])
    if not scheme or state.md.linkify is None:
        return False
    step(state.env, STEPS_OF_ADDRESS)
    start = state.pos - len(scheme[1])
    run = RUN.match(state.src, start)
    link = state.md.linkify.match_at_start(run[0]) if run else None
    if not link or len(link.url) > LONGEST_ADDRESS:
        return False
    url = link.url.rstrip("*")
    full = state.md.normalizeLink(url)
    if not state.md.validateLink(full):
        return False
    if not silent:
        state.pending = state.pending[: -len(scheme[1])]
        state.push("link_open", "a", 1).attrs = {"href": full}
        state.push("text", "", 0).content = state.md.normalizeLinkText(url)
        state.push("link_close", "a", -1)
    state.pos = start + len(url)
    return True


def build() -> MarkdownIt:
    """Make the parser: CommonMark, tables, strikethrough, full addresses as links.

    A line break stays one, because models do not wrap their lines. Bare domain
    names are no links: `settings.py` would be one (.py is a country).
    """
    parser = MarkdownIt(
        "commonmark", {"html": False, "linkify": True, "breaks": True}
    ).enable(["table", "strikethrough", "linkify"])
    parser.core.ruler.disable("linkify")
    parser.inline.ruler.at("linkify", address)
    parser.inline.ruler.before("text", "count", count_mark)
    parser.block.ruler.at("table", frugal_table, {"alt": ["paragraph", "reference"]})
    chains = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("table", "count", count_line, {"alt": chains})
    skip, normalize = parser.inline.skipToken, parser.normalizeLink

    def counted_skip(state: StateInline) -> None:
        step(state.env)
        skip(state)

    def bounded_link(url: str) -> str:
        return normalize(url) if len(url) <= LONGEST_ADDRESS else ""

    parser.inline.skipToken = counted_skip  # type: ignore[method-assign]
    parser.normalizeLink = bounded_link  # type: ignore[method-assign]
    parser.validateLink = is_safe_link  # type: ignore[method-assign]
    parser.add_render_rule("fence", fence)
    parser.add_render_rule("code_block", fence)
    parser.add_render_rule("image", image)
    return parser


def is_safe_link(url: str) -> bool:
    """Tell whether an address may become a link: absolute, and not a script."""
    return SAFE_LINK.match(url) is not None


sys.modules[table.__module__].MAX_AUTOCOMPLETED_CELLS = MOST_MISSING_CELLS  # type: ignore[attr-defined]
PARSER = build()


def render_block(source: str, references: dict[str, Any]) -> str:
    """Render the source of one block.

    `references` is kept between the blocks of one text: a link definition serves
    the blocks after it.
    """
    try:
        return parsed(source, references)
    except TooMuchError:
        written = source.strip("\n")
        return f'<p class="unparsed">{escape(written)}</p>'


def parsed(source: str, references: dict[str, Any]) -> str:
    """Render a block as Markdown, unless that is too much."""
    if len(source) > LONGEST_PARSED:
        raise TooMuchError
    references["steps"] = references["code"] = 0
    tokens = PARSER.parse(source, references)
    borrow(tokens, len(source), references)
    adapt(tokens)
    html = PARSER.renderer.render(tokens, PARSER.options, references)
    html = html.replace("<table>", '<div class="table-scroll" tabindex="0"><table>')
    return CLEANER.clean(html.replace("</table>", "</table></div>")).strip()


def borrow(tokens: Sequence[Token], own: int, references: dict[str, Any]) -> None:
    """Count what a block's links take from definitions, beyond its own length."""
    attributes = (
        value
        for token in tokens
        for part in (token, *(token.children or ()))
        for value in part.attrs.values()
    )
    taken = sum(len(str(value)) for value in attributes) - own
    borrowed = references.get("borrowed", 0) + max(0, taken)
    if borrowed > MOST_BORROWED:
        raise TooMuchError
    references["borrowed"] = borrowed


def render_code(code: str, language: str) -> str:
    """Render the code of a closed fence, which needs no parsing."""
    return CLEANER.clean(code_figure(code, language)).strip()
