"""One Markdown block to safe HTML.

The text comes from a model and is hostile (design section 11): raw HTML is off,
what markdown-it makes goes through nh3's allowlist, images are never loaded, and
nothing carries an inline style, which the CSP forbids. The HTML holds no words
of the interface, because one rendering serves every viewer's language: buttons
take their names from elements of the page (`aria-labelledby`).
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import nh3
from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

LONGEST_COLOURED = 50_000
# markdown-it is linear on any prose; this bounds what is left to an adversary.
LONGEST_PARSED = 100_000

# The page has the site's h1 and one h2 a cell: an answer's headings start at h3.
HEADINGS = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6", "h6": "h6"}
ALIGNMENT = re.compile(r"text-align:(left|center|right)")
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
FORMATTER = HtmlFormatter(nowrap=True, classprefix="tok-")


@lru_cache(maxsize=256)
def lexer_for(language: str) -> Lexer | None:
    """Find the lexer of a language by any of its names; None when unknown."""
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def language_of(info: str) -> str:
    """Read the language off a fence's info string, reduced to a safe short name."""
    word = info.strip().split(maxsplit=1)[0] if info.strip() else ""
    return re.sub(r"[^\w+#.-]", "", word.lower())[:30]


def language_name(language: str) -> str:
    """Name a language as people write it; the given word when it is unknown."""
    lexer = lexer_for(language) if language else None
    name: str = lexer.name if lexer else language
    return name


def code_figure(code: str, language: str) -> str:
    """Set code in a figure with its language and a copy button."""
    lexer = lexer_for(language) if language else None
    coloured = (
        highlight(code, lexer, FORMATTER)
        if lexer and len(code) <= LONGEST_COLOURED
        else escape(code)
    )
    return (
        f'<figure class="code" data-language="{escape(language)}"><figcaption>'
        f"<span>{escape(language_name(language))}</span>"
        '<button type="button" class="copy" data-copy="code"'
        ' aria-labelledby="label-copy-code"></button></figcaption>'
        f'<pre tabindex="0"><code>{coloured}</code></pre></figure>\n'
    )


def fence(
    _self: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    _env: EnvType,
) -> str:
    """Render fenced and indented code."""
    return code_figure(tokens[index].content, language_of(tokens[index].info))


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


def build() -> MarkdownIt:
    """Make the parser: CommonMark, tables, strikethrough, full addresses as links.

    A line break stays one, because models do not wrap their lines. Bare domain
    names are no links: `settings.py` would be one (.py is a country).
    """
    parser = MarkdownIt(
        "commonmark", {"html": False, "linkify": True, "breaks": True}
    ).enable(["table", "strikethrough", "linkify"])
    if parser.linkify is not None:
        parser.linkify.set(
            {"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False}
        )
    parser.add_render_rule("fence", fence)
    parser.add_render_rule("code_block", fence)
    parser.add_render_rule("image", image)
    parser.validateLink = is_safe_link  # type: ignore[method-assign]
    return parser


def is_safe_link(url: str) -> bool:
    """Tell whether an address may become a link: absolute, and not a script."""
    return SAFE_LINK.match(url) is not None


PARSER = build()


def render_block(source: str, references: dict[str, Any]) -> str:
    """Render the source of one block.

    `references` is kept between the blocks of one text: a link definition serves
    the blocks after it.
    """
    if len(source) > LONGEST_PARSED:
        return f'<p class="unparsed">{escape(source)}</p>'
    tokens = PARSER.parse(source, references)
    adapt(tokens)
    html = PARSER.renderer.render(tokens, PARSER.options, references)
    html = html.replace("<table>", '<div class="table-scroll" tabindex="0"><table>')
    return CLEANER.clean(html.replace("</table>", "</table></div>")).strip()


def render_code(code: str, language: str) -> str:
    """Render the code of a closed fence, which needs no parsing."""
    return CLEANER.clean(code_figure(code, language)).strip()
