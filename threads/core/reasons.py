"""Reading what a provider said: unwrapped, reduced, redacted, on one line.

An error body may be an object, a list, a string, JSON inside a string, or a web
page. `read` takes any of them and answers with the few fields that diagnose
(requirement C4); what a person wrote is never among them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

REASON_LENGTH = 300
"""Characters of a provider's words that are kept (requirement C3)."""

DEPTH = 8
"""How deep nested errors and JSON texts are followed."""

WORDS = (
    "message",
    "msg",
    "detail",
    "reason",
    "status_msg",
    "error_description",
    "title",
)
"""Fields that hold prose."""

NAMES = ("error_type", "code", "type", "status", "reason_code")
"""Fields that hold a name, most specific first."""

LONGEST_WAIT_SECONDS = 31 * 86_400.0
"""A wait beyond this is no wait that a gateway means (C6)."""

SECRET = re.compile(
    r"(?i)\b(?:sk|pk|rk|gsk|xai|hf|nvapi|AIza)[-_][A-Za-z0-9_\-]{6,}[A-Za-z0-9*.]*"
    r"|\bkey[-_](?=[A-Za-z_\-]*\d)[A-Za-z0-9_\-]{6,}[A-Za-z0-9*.]*"
    r"|\bAIza[A-Za-z0-9_\-]{10,}"
    r"|\bbearer\s+[A-Za-z0-9._~+/=\-]{6,}"
    r"|\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]+"
)
ECHO = re.compile(
    r"""(?s)["'](?:input|flagged_input|messages|prompt|content|text|body|patterns|tools)["']\s*:.*"""
)
"""Where text that is no whole JSON begins to repeat what a person wrote (C4)."""

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


@dataclass(slots=True)
class _Gathered:
    names: list[str]
    words: list[str]
    status: int | None = None
    provider: str = ""
    retry_after: float | None = None
    retryable: bool | None = None
    moderated: bool = False


def read(body: object) -> Reason:
    """Read an error body of any shape; never raises."""
    gathered = _Gathered([], [])
    _gather(body, gathered, DEPTH)
    distinct = list(dict.fromkeys(name for name in gathered.names if name))
    words = list(dict.fromkeys(word for word in gathered.words if word))
    if not words and isinstance(body, Mapping) and not distinct:
        words = [f"an object with {len(body)} fields"] if body else []
    return Reason(
        names=tuple(name.lower() for name in distinct),
        code=distinct[0] if distinct else "",
        status=gathered.status,
        words=" · ".join(words),
        provider=gathered.provider[:100],
        retry_after_seconds=gathered.retry_after,
        retryable=gathered.retryable,
        moderated=gathered.moderated,
    )


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """Fold to one line, take keys out, bound the length (C3, I3)."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[key]")
    line = " ".join(SECRET.sub("[key]", text).split())
    # Neither NUL nor half an emoji can be stored; other controls only mislead.
    line = "".join(character for character in line if character.isprintable())
    return line if len(line) <= REASON_LENGTH else line[: REASON_LENGTH - 1] + "…"


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
        found = TITLE.search(stripped) or HEADING.search(stripped)
        stripped = TAG.sub(" ", found.group(1)).strip() if found else "an HTML page"
    into.words.append(ECHO.sub("…", stripped[:2000]))


def _gather_object(value: Mapping[str, object], into: _Gathered, depth: int) -> None:
    for field in ("error", "metadata", "availability"):
        if isinstance(value.get(field), Mapping):
            _gather(value[field], into, depth - 1)
    for field in NAMES:
        _gather_name(field, value.get(field), into)
    if into.status is None:
        for field in ("status_code", "http_status"):
            into.status = as_status(value.get(field)) or into.status
    _gather_extras(value, into)
    _gather_prose(value, into, depth)


def _gather_prose(value: Mapping[str, object], into: _Gathered, depth: int) -> None:
    for field in WORDS:
        if isinstance(value.get(field), str):
            _gather(value[field], into, depth - 1)
    if isinstance(value.get("error"), str | list):
        _gather(value["error"], into, depth - 1)
    for field in ("message", "detail", "base_resp", "innererror", "raw"):
        if not isinstance(value.get(field), str) or field == "raw":
            _gather(value.get(field), into, depth - 1)


def _gather_name(field: str, name: object, into: _Gathered) -> None:
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
            into.names.append(text)


def _gather_extras(value: Mapping[str, object], into: _Gathered) -> None:
    provider = value.get("provider_name") or value.get("provider")
    if isinstance(provider, str) and not into.provider:
        into.provider = provider
    for field in ("retry_after", "retry_after_seconds", "resets_in_seconds"):
        wait = value.get(field)
        if (
            isinstance(wait, int | float)
            and not isinstance(wait, bool)
            and 0 <= wait <= LONGEST_WAIT_SECONDS
            and into.retry_after is None
        ):
            into.retry_after = float(wait)
    if isinstance(value.get("retryable"), bool):
        into.retryable = bool(value["retryable"])
    if any(value.get(field) for field in ("flagged_input", "reasons", "patterns")):
        into.moderated = True
    source = value.get("limit_source")
    if isinstance(source, str):
        into.names.append(source[:100])
    base = value.get("base_resp")
    if isinstance(base, Mapping) and isinstance(base.get("status_code"), int):
        into.names.append(str(base["status_code"]))


def says_error(body: object) -> bool:
    """Tell whether a whole JSON answer reports an error."""
    return isinstance(body, Mapping) and (
        bool(body.get("error")) or ("choices" not in body and read(body) != Reason())
    )


def as_status(value: object) -> int | None:
    """Read an HTTP status from a number or a numeric text; 2xx says nothing."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{3}\s*", value):
        value = int(value)
    if isinstance(value, int) and 300 <= value <= 599:
        return value
    return None
