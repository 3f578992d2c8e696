"""Reading what a provider said: unwrapped and reduced.

An error body may be an object, a list, a string, JSON inside a string, or a web
page. `read` takes any of them and answers with the few fields that diagnose
(requirement C4); what a person wrote is never among them.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from threads.core import waits
from threads.core.redaction import redacted as redacted

DEPTH = 8
"""How deep nested errors and JSON texts are followed."""

LONGEST_PIECE, LONGEST_WORDS = 2_000, 8_000
"""Characters of one text, and of all of them, that wording rules read."""

LONGEST_PAGE = 4_096
"""Characters of a web page in which its title is looked for."""

WORDS = (
    *("message", "msg", "detail", "reason", "status_msg", "error_description"),
    *("error_message", "error_msg", "errorMessage", "title"),
)
"""Fields that hold prose."""

NAMES = {
    "error_type": 1,
    "code": 2,
    "error_code": 2,
    "errorCode": 2,
    "type": 3,
    "__type": 3,
    "status": 4,
    "reason_code": 4,
}
"""Fields that hold a name; the most specific ones have the lowest number."""

STATUSES = (
    *("status_code", "http_status", "http_status_code", "http_code"),
    *("statusCode", "httpStatus", "httpStatusCode"),
)

WRAPPERS = ("error", "availability", "metadata", "response", "cause")
"""Fields whose object is the error, or more of it."""

ECHO = re.compile(
    r"""(?s)\\*["'](?:input|flagged_input|messages|prompt|content|text|body|patterns|tools|failed_generation)"""
    r"""\\*["']\s*:.*|\binput_value=.*"""
)
"""Where text that is no whole JSON begins to repeat what a person wrote (C4)."""

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{2,80}")
"""An error that is one word is a name as well: `{"error": "over_capacity"}`."""

STATUS_TEXT = re.compile(r"(?i)\s*(?:http[ _-]?(?:status|error)?[ _-]?)?([0-9]{3})\s*")
"""A status as text: `"503"`, or a code such as `HTTP_503`."""

TITLE = re.compile(r"(?is)<title[^>]*>(.*?)</title>")
HEADING = re.compile(r"(?is)<h1[^>]*>(.*?)</h1>")
TAG = re.compile(r"(?s)<[^>]*>")


@dataclass(frozen=True, slots=True)
class Reason:
    """What an error body says.

    `names` are its codes and types in lower case, most specific first; `code` is
    the first as written. `status` is a status that the body itself names.
    `words` is the prose, reduced but neither redacted nor bounded: wording rules
    read it, people read `redacted(words)`.
    """

    names: tuple[str, ...] = ()
    code: str = ""
    status: int | None = None
    words: str = ""
    provider: str = ""
    retry_after_seconds: float | None = None
    retryable: bool | None = None
    moderated: bool = False
    limit_source: str = ""


@dataclass(slots=True)
class _Gathered:
    names: list[tuple[int, str]]
    words: list[str]
    status: int | None = None
    provider: str = ""
    retry_after: float | None = None
    retryable: bool | None = None
    moderated: bool = False
    limit_source: str = ""


def read(body: object) -> Reason:
    """Read an error body of any shape; never raises."""
    gathered = _Gathered([], [])
    _gather(body, gathered, DEPTH)
    if isinstance(body, int | float) and abs(body) < 10**18:
        gathered.words.append(str(body))
    names = list(dict.fromkeys(name for _, name in sorted(gathered.names, key=_rank)))
    words = list(dict.fromkeys(word for word in gathered.words if word))
    if not words and isinstance(body, Mapping) and not names:
        words = [f"an object with {len(body)} fields"] if body else []
    return Reason(
        names=tuple(name.lower() for name in names),
        code=names[0] if names else "",
        status=gathered.status,
        words=" · ".join(words)[:LONGEST_WORDS],
        provider=gathered.provider[:100],
        retry_after_seconds=gathered.retry_after,
        retryable=gathered.retryable,
        moderated=gathered.moderated,
        limit_source=gathered.limit_source[:100],
    )


def _rank(named: tuple[int, str]) -> int:
    """The order of evidence; of equal ones the innermost stays first."""
    return named[0]


def _gather(value: object, into: _Gathered, depth: int) -> None:
    if depth <= 0 or value is None:
        return
    if isinstance(value, str):
        _gather_text(value, into, depth)
    elif isinstance(value, Mapping):
        _gather_object(value, into, depth)
    elif isinstance(value, list | tuple):
        for item in list(value)[:3]:
            _gather(item, into, depth - 1)


def _gather_text(text: str, into: _Gathered, depth: int) -> None:
    stripped = text.strip()
    if stripped[:1] in "{[" and stripped:
        try:
            decoded = json.loads(stripped)
        except (ValueError, RecursionError):
            pass
        else:
            _gather(decoded, into, depth - 1)
            return
    if stripped[:1] == "<":
        stripped = _page(stripped[:LONGEST_PAGE])
    into.words.append(ECHO.sub("…", stripped[:LONGEST_PIECE]))


def _page(text: str) -> str:
    """What a web page says of itself."""
    found = TITLE.search(text) or HEADING.search(text)
    return TAG.sub(" ", found.group(1)).strip() if found else "an HTML page"


def _gather_object(value: Mapping[str, object], into: _Gathered, depth: int) -> None:
    for field in WRAPPERS:
        inner = value.get(field)
        if isinstance(inner, Mapping):
            if field == "availability":
                _gather_name(0, inner.get("code"), into)
            _gather(inner, into, depth - 1)
    for field, rank in NAMES.items():
        _gather_name(rank, value.get(field), into)
    for field in (*STATUSES, "error"):
        into.status = into.status or as_status(value.get(field))
    _gather_extras(value, into)
    _gather_prose(value, into, depth)


def _gather_prose(value: Mapping[str, object], into: _Gathered, depth: int) -> None:
    place = value.get("loc")
    for field in WORDS:
        text = value.get(field)
        if isinstance(text, str):
            if field == "msg" and isinstance(place, list):
                text = f"{text} ({'.'.join(str(step)[:40] for step in place[:8])})"
            _gather(text, into, depth - 1)
    error = value.get("error")
    if isinstance(error, str | list):
        _gather(error, into, depth - 1)
    if isinstance(error, str) and IDENTIFIER.fullmatch(error.strip()):
        _gather_name(3, error, into)
    for field in ("message", "detail", "errors", "base_resp", "innererror"):
        if not isinstance(value.get(field), str):
            _gather(value.get(field), into, depth - 1)
    _gather(value.get("raw"), into, depth - 1)
    for detail in _listed(value.get("details")):
        into.retry_after = _first(into.retry_after, waits.of_body(detail))


def _listed(value: object) -> list[Mapping[str, object]]:
    items = value if isinstance(value, list) else []
    return [item for item in items[:10] if isinstance(item, Mapping)]


def _first(known: float | None, new: float | None) -> float | None:
    return new if known is None else known


def _gather_name(rank: int, name: object, into: _Gathered) -> None:
    status = as_status(name)
    if status is not None:
        into.status = into.status or status
    elif (
        isinstance(name, str)
        and name.strip()
        and not name.strip().lstrip("-").isdigit()
    ):
        text = name.strip()[:200]
        if " " in text:
            into.words.append(text)
        elif text != "error":
            into.names.append((rank, text))


def _gather_extras(value: Mapping[str, object], into: _Gathered) -> None:
    provider = value.get("provider_name") or value.get("provider")
    if isinstance(provider, str) and not into.provider:
        into.provider = provider
    into.retry_after = _first(into.retry_after, waits.of_body(value))
    if isinstance(value.get("retryable"), bool):
        into.retryable = bool(value["retryable"])
    if any(value.get(field) for field in ("flagged_input", "reasons", "patterns")):
        into.moderated = True
    source = value.get("limit_source")
    if isinstance(source, str) and not into.limit_source:
        into.limit_source = source
    if code := vendor_code(value):
        into.names.append((2, f"base_resp_{code}"))


def says_error(body: object) -> bool:
    """Tell whether JSON that is no event of a stream reports an error.

    A whole answer reports one in itself, in a choice, or by a finish reason;
    anything else by the words or the status of a failure.
    """
    if isinstance(body, list):
        return any(says_error(item) for item in body[:3])
    if not isinstance(body, Mapping):
        return False
    if body.get("error") or failed_choice(body) is not None:
        return True
    if "choices" in body:
        return False
    return (
        any(body.get(field) for field in (*WORDS, "errors"))
        or vendor_code(body) != 0
        or read(body).status is not None
    )


def vendor_code(body: Mapping[str, object]) -> int:
    """Read MiniMax's own error number; 0 is none, and none of them is a status."""
    base = body.get("base_resp")
    code = base.get("status_code") if isinstance(base, Mapping) else None
    return code if isinstance(code, int) else 0


def failed_choice(body: Mapping[str, object]) -> Mapping[str, object] | None:
    """Find the choice of a whole answer that says it failed."""
    for choice in _listed(body.get("choices")):
        if choice.get("error") or choice.get("finish_reason") == "error":
            return choice
    return None


def as_status(value: object) -> int | None:
    """Read an HTTP status from a number or a numeric text; 2xx says nothing."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and (found := STATUS_TEXT.fullmatch(value)):
        value = int(found.group(1))
    if isinstance(value, int) and 300 <= value <= 599:
        return value
    return None
