"""Code to coloured HTML, at a bounded cost.

Pygments' lexers are regular expressions that backtrack, and what they are given
comes from a model. So only languages are coloured whose lexers were measured with
370 and more nasty inputs (open quotes, brackets and comments, backslashes, runs of one
word), and only code that has lines of a length and number of tokens as people's
code has. All that depends on the text alone.

What these limits leave took 5 to 90 ms of CPU (two busy cores), but for escaped
quotes over many lines in css, go, javascript and typescript (240 ms in 5,000
characters) and, hardly, some in c, cpp and python. For those there is a deadline in CPU
time of this thread, looked at between two tokens. Left plain, because much took
longer: java, csharp, scala, make, r (1 to 15 s in 4,000 characters), markdown
(it lexes what it quotes in any language), and all that was not measured.
"""

import re
from functools import lru_cache
from itertools import islice
from time import thread_time

from pygments import format as formatted
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_all_lexers, get_lexer_by_name

LONGEST_COLOURED = 10_000
MOST_TOKENS = 3_000
DEADLINE = 0.08
# Long lines, and many empty ones in a row, are what lexers take longest for.
ROUGH = re.compile(r"[^\n]{200}|(?:[^\S\n]*\n){12}")
FORMATTER = HtmlFormatter(nowrap=True, classprefix="tok-")
# Characters coloured at most, by the first alias of the lexer.
COLOURED = {
    **dict.fromkeys(
        ("bash", "c", "diff", "ini", "json", "python", "rust", "sql", "toml", "yaml"),
        LONGEST_COLOURED,
    ),
    **dict.fromkeys(
        ("cpp", "css", "docker", "go", "html", "javascript", "kotlin", "php"), 5_000
    ),
    **dict.fromkeys(("ruby", "swift", "typescript", "xml"), 5_000),
}


@lru_cache(maxsize=64)
def lexer_called(name: str) -> Lexer | None:
    """Find the lexer of a language that is coloured."""
    for alias in COLOURED:
        if names().get(alias) == name:
            return get_lexer_by_name(alias, stripnl=False, ensurenl=False)
    return None


@lru_cache(maxsize=1)
def names() -> dict[str, str]:
    """Map each alias to its language's name, without loading any lexer."""
    known = get_all_lexers(plugins=False)
    return {alias: name for name, aliases, _, _ in known for alias in aliases}


def language_name(language: str) -> str:
    """Name a language as people write it; the given word when it is unknown."""
    return names().get(language, language)


def coloured(code: str, language: str) -> str | None:
    """Colour code; None when it is to be shown plain."""
    lexer = lexer_called(language_name(language))
    if lexer is None or len(code) > COLOURED.get(lexer.aliases[0], 0):
        return None
    # A last line without its end would be looked through from each character.
    whole = code if code.endswith("\n") else code + "\n"
    if ROUGH.search(whole):
        return None
    tokens, deadline = [], thread_time() + DEADLINE
    for token in islice(lexer.get_tokens(whole), MOST_TOKENS + 1):
        tokens.append(token)
        if thread_time() > deadline:
            return None
    if len(tokens) > MOST_TOKENS:
        return None
    html = formatted(tokens, FORMATTER)
    return html if whole is code else html.removesuffix("\n")
