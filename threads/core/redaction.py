"""Making a provider's words fit to be shown and kept.

Keys, people's addresses and ids are taken out, in whatever form an upstream may
echo them; what is left is one bounded line (requirements C3, I3).
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import quote

REASON_LENGTH = 300
"""Characters of a provider's words that are kept (requirement C3)."""

LONGEST_READ = 20_000
"""Characters of which the first `REASON_LENGTH` are made."""

SHORTEST_KEY = 4
"""Below this a configured key has no other form that could be told from a word."""

MASK = r"[*•…]"
_CHARACTER = r"[A-Za-z0-9_\-]"
# A run of masks or characters is entered at its beginning and only so far: a text
# of nothing else would otherwise be read once for each of its characters.
_BEGINS = r"(?<![A-Za-z0-9_\-*•…])"

SECRET = re.compile(
    r"(?i)\b(?:sk|pk|rk|gsk|xai|hf|nvapi|AIza)[-_][A-Za-z0-9_\-]{6,}[A-Za-z0-9*.]*"
    r"|\bkey[-_](?=[A-Za-z_\-]{0,80}\d)[A-Za-z0-9_\-]{6,}[A-Za-z0-9*.]*"
    r"|\bAIza[A-Za-z0-9_\-]{10,}"
    r"|\b(?:bearer|basic)\s+(?=\S*[\d_~+/=\-]|\S*\.\S|[A-Za-z]{20})[A-Za-z0-9._~+/=\-]{6,}"
    r"|\beyJ[A-Za-z0-9_\-]{8,2000}\.[A-Za-z0-9_\-.]+"
    rf"|{_BEGINS}{_CHARACTER}{{0,80}}{MASK}{{3,80}}{_CHARACTER}+(?:{MASK}+{_CHARACTER}*)*"
    rf"|{_BEGINS}{_CHARACTER}{{2,80}}{MASK}{{3,80}}"
)
"""What looks like a key by itself, whole or partly masked."""

HEADER = re.compile(
    r"""(?i)(\bauthorization|\b(?:x-)?api[-_]?key|\bx-goog-api-key|\baccess[-_]token|[?&]key)(["'\\]*\s*[:=]\s*["'\\]*)"""
    r"""(?!\[key\])(?=[^\s"',;&)}\]]{0,200}[\d*•]|(?:bearer|basic|token)\s)(?:(?:bearer|basic|token)\s+)?[^\s"',;&)}\]\\]+"""
)
"""A header or parameter that carries a key, with its value."""

PERSON = re.compile(
    r"\b(?:user|usr|org|proj|acct|cus|team|ws)[-_](?=[A-Za-z0-9]*(?:\d|[a-z][A-Z]|[A-Z][a-z]))[A-Za-z0-9]{6,}\b"
)
"""An id that a gateway gives to a person, an organisation or a project."""

EMAIL = re.compile(
    r"[A-Za-z0-9._%+\-]{1,64}@[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63})+"
)


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """Take keys, ids and addresses out, fold to one line, bound the length.

    `secrets` are keys to be taken out whatever they look like: as they are, as
    JSON or a URL writes them, and with their middle masked.
    """
    text = text[:LONGEST_READ]
    for secret in secrets:
        for pattern in _forms(secret):
            text = pattern.sub("[key]", text)
    text = HEADER.sub(r"\1\2[key]", SECRET.sub("[key]", text))
    text = EMAIL.sub("[email]", PERSON.sub("[id]", text))
    line = " ".join(text.split())
    # Neither NUL nor half an emoji can be stored; other controls only mislead.
    line = "".join(character for character in line if character.isprintable())
    return line if len(line) <= REASON_LENGTH else line[: REASON_LENGTH - 1] + "…"


def _forms(secret: str) -> Iterable[re.Pattern[str]]:
    """Every way in which an upstream may write a key that it was sent."""
    if not secret.strip():
        return
    raw = secret.encode("utf-8", "replace")
    written = {
        secret,
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
    }
    if len(secret) >= SHORTEST_KEY:
        written |= {secret.strip(), b64encode(raw).decode().rstrip("=")}
    for form in sorted(written, key=len, reverse=True):
        if form:
            yield re.compile(re.escape(form))
    if len(secret) >= 2 * SHORTEST_KEY:
        head, tail = re.escape(secret[:4]), re.escape(secret[-2:])
        masked = rf"(?:{MASK}|\.\.|[xX]{{4}})"
        yield re.compile(rf"{head}[^\s\"'*•…]{{0,60}}?{masked}[^\s\"',;)]*")
        yield re.compile(rf"(?<!{MASK}){MASK}{{2,80}}[^\s\"',;)]{{0,12}}{tail}\b")
