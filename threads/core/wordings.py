"""From what an error says to a row, where its names and status leave it open.

Patterns read lower case. A status counts as one only where words present it so
("error code: 429", "[403] …"); other numbers in a text are just numbers.
"""

import re
from dataclasses import dataclass

from threads.core.table import ERRORS, Error

Statuses = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Wording:
    """Words that point to a row, for these statuses only."""

    row: str
    statuses: frozenset[int | None]
    pattern: re.Pattern[str]


def _wording(row: str, statuses: Statuses, *patterns: str) -> Wording:
    return Wording(row, frozenset(statuses), re.compile("|".join(patterns)))


_NO_STATUS: Statuses = (None,)
_REFUSED: Statuses = (None, 400, 422)

_KEY = r"(?:api[ _-]?)?key"

WORDINGS = (
    _wording(
        "http_401.no_key", (None, 400, 401, 403),
        r"missing authentication header", r"no (?:\w+ )?auth credentials", r"did ?n.t provide an api key",
        r"no api key (?:was )?(?:provided|found|given)", r"missing api key", r"api key is (?:missing|required)",
    ),
    _wording(
        "context_too_long", (*_REFUSED, 403, 413),
        r"prompt is too long", r"maximum context length", r"context[ _](?:length|window|size)",
        r"too many (?:input |prompt )?tokens(?!.{0,40}\b(?:wait|try again|per )\b)", r"reduce the length", r"input token count exceeds",
        r"(?:request|input|prompt|message) (?:entity )?(?:is )?too (?:large|long)",
    ),
    _wording(
        "bad_tool_schema", _REFUSED,
        r"\btools[.\[]\d+.{0,60}(?:schema|parameters|function)", r"input_schema", r"invalid schema for (?:function|tool)",
    ),
    _wording(
        "bad_history", _REFUSED,
        r"tool_use.{0,160}tool_result", r"tool_result.{0,160}tool_use",
        r"tool_calls.{0,80}must be followed by tool messages", r"role .?tool.? must be a response",
        r"roles must alternate", r"function response parts", r"function call turn",
        r"\bmessages[.\[]\d+(?!.{0,120}\b(?:image|pdf|file|audio|video))",
    ),
    _wording(
        "provider_config_error", (*_REFUSED, 404),
        r"unsupported (?:parameter|value)", r"stream_options", r"reasoning_effort", r"extra inputs are not permitted",
        r"\bmax_(?:completion_|output_)?tokens\b.{0,60}(?:too large|maximum allowed number of output)",
        r"\btemperature\b.{0,40}(?:deprecated|not support|may only)",
        r"must contain the word .?json", r"must be passed back", r"support tool use",
        r"does not support (?:tools|tool use|tool calls|tool calling|function calling|streaming)",
    ),
    _wording(
        "model_not_found", (None, 400, 404),
        r"not a valid model", r"model .{0,80}(?:not found|does not exist|decommissioned|deprecated)",
        r"must provide a model",
    ),
    _wording(
        "http_401", (None, 400, 403),
        r"(?:invalid|incorrect|expired) api[ -]?key", r"api[ -]?key (?:is )?(?:not valid|invalid|expired)",
        r"invalid authentication",
    ),
    _wording(
        "http_403.key", (403,),
        r"\bkey limit", rf"\b{_KEY} (?:is |was |has been )?(?:disabled|revoked|suspended|expired|deactivated)",
    ),
    _wording(
        "budget_exceeded", (None, 400, 402, 403, 429),
        r"budget .{0,40}exceeded", r"exceeded.{0,20} budget", r"spending budget",
    ),
    _wording(
        "quota_exhausted", (None, 400, 402, 403, 429),
        r"insufficient .{0,20}(?:balance|credit|quota|funds)", r"(?:can|could) only afford", r"out of credits?\b",
        r"credit balance is too low", r"billing hard limit", r"account is not active", r"good standing",
        r"余额不足", r"欠费", r"额度不足",
    ),
    _wording(
        "quota_exhausted", (None, 402, 403, 429),
        r"exceeded your current quota", r"\bper[- ]day\b", r"daily .{0,30}\bcap\b", r"usage limit",
        r"(?:weekly|monthly) .{0,30}(?:limit|quota|cap)\b", r"free (?:allocated )?(?:quota|tier).{0,40}(?:exceeded|exhausted)",
    ),
    _wording("region_restricted", (None, 400, 403), r"location is not supported", r"unsupported (?:country|region)"),
    _wording("region_restricted", (403,), r"\bcountry\b", r"\bregion\b", r"\bterritory\b"),
    _wording(
        "request_blocked", (None, 400, 403),
        r"\bblocked\b", r"guardrail", r"moderation", r"\bflagged\b", r"redaction", r"\bpii\b", r"prompt injection",
        r"content (?:management |safety |usage )?polic(?:y|ies)", r"safety (?:system|filter|settings|polic)",
        r"inappropriate content", r"responsible ai", r"violat\w+.{0,60}(?:polic|guidelines|terms)", r"sensitive (?:content|words?)\b", r"敏感",
    ),
    _wording("request_blocked", (403,), r"\bpolic(?:y|ies)\b"),
    _wording("http_403.key", (403,), r"\bkey\b.{0,80}exceeded", r"exceeded.{0,80}\bkey\b"),
    _wording(
        "http_403.account", (403,),
        r"insufficient permissions", r"organi[sz]ation.{0,20}hold", r"access (?:has been |was )?(?:denied|terminated)",
        r"not have (?:permission|access)",
    ),
    _wording(
        "connect_config", _NO_STATUS,
        r"name or service not known", r"nodename nor servname", r"certificate verify failed",
        r"no address associated", r"temporary failure in name resolution", r"invalid url", r"unsupported ?protocol",
    ),
    _wording(
        "provider_network_error", _NO_STATUS,
        r"connection error", r"cannot connect", r"connection (?:was )?(?:reset|refused|closed|lost|aborted)",
        r"socket hang up", r"econn(?:reset|refused|aborted)", r"epipe\b", r"ssl routines", r"tls alert",
        r"fetch failed", r"remote protocol", r"unexpected eof", r"upstream connect error",
    ),
    _wording(
        "http_429", _NO_STATUS,
        r"rate.?limit", r"too many requests", r"too many tokens.{0,40}\b(?:wait|try again|per )\b", r"throttl(?:ed|ing)",
    ),
    _wording(
        "overloaded", _NO_STATUS,
        r"overloaded", r"(?:currently|temporarily|service) unavailable", r"\bat capacity\b", r"(?:no|insufficient) capacity",
        r"capacity (?:is |was |has been )?(?:temporarily |currently )?exceeded", r"high (?:demand|load)\b",
        r"(?:server|service|model|system|engine)s? (?:is|are) (?:currently |too |temporarily )*busy",
    ),
    _wording("http_408", _NO_STATUS, r"timed? ?out"),
    _wording("http_5xx", _NO_STATUS, r"internal (?:server )?error", r"bad gateway", r"the server had an error"),
)  # fmt: skip
"""In order; the first whose words and status fit decides.

Words make something transient only where there is neither a status nor a name that
we know: the rows that do hold for no status alone (X4).
"""

OPEN_STATUSES = frozenset(status for wording in WORDINGS for status in wording.statuses)
"""Statuses that leave the meaning open, so that wording is read."""

BLOCKABLE = frozenset({None, 400, 403, 422})
"""Statuses that can be a block; 408, 429 and 5xx are none, whatever they say (B5)."""

CAPS = re.compile(r"daily .{0,30}\bcap\b|\w-per-day\b|budget .{0,40}exceeded")
"""Words of a 429 that no waiting cures, whatever its code says (C7)."""

NAMES_THE_KEY = re.compile(
    r"\bper[- ](?:api[ -])?key\b|\b(?:this|your|virtual|api)[ -](?:api[ -]?)?key\b.{0,60}\blimit"
    r"|\bkey .{0,20}(?:rate|limit|quota)|\blimit\w* .{0,40}\b(?:this|your|virtual|api)[ -](?:api[ -]?)?key\b"
)  # fmt: skip
"""Words by which a 429 says that the limit is this key's own."""

_STATUS = r"(4(?:0\d|1[0-8]|2[0-9]|51|99)|5(?:0\d|1[01]|2[0-9]|98|99))"
SAID_STATUS = re.compile(
    rf"^[\[(]{_STATUS}[\])]"
    rf"|^{_STATUS}(?=$|:| -| (?:bad|unauthorized|payment|forbidden|not found|request|too many|internal|service|gateway))"
    rf"|\b(?:status|code|error|https?(?:/\d(?:\.\d)?)?)[\W_]{{0,3}}(?:code[\W_]{{0,3}})?{_STATUS}\b(?![.,:]?\d)"
)
"""A status that words present as one: "[403] …", "Error code: 429", "502 Bad …"."""


def by_wording(
    words: str, status: int | None, *, moderated: bool, is_named: bool
) -> Error | None:
    """Find the row that the words point to, where the status leaves it open.

    `words` is lower case. With `is_named` the error carries a name that we know:
    then words alone make nothing transient.
    """
    if status not in OPEN_STATUSES:
        return None
    if moderated and status in BLOCKABLE:
        return ERRORS["request_blocked"]
    for wording in WORDINGS:
        if status in wording.statuses and wording.pattern.search(words):
            error = ERRORS[wording.row]
            if not (is_named and error.transient):
                return error
    return None


def narrowed(error: Error, words: str) -> Error:
    """Say whose limit a 429 is, where its words name a cap or the key."""
    if error.code != "http_429":
        return error
    if CAPS.search(words):
        return ERRORS["budget_exceeded" if "budget" in words else "quota_exhausted"]
    if NAMES_THE_KEY.search(words):
        return ERRORS["http_429.key"]
    return error


def said_status(words: str) -> int | None:
    """Read a status out of words that present it as one."""
    found = SAID_STATUS.search(words)
    return next((int(one) for one in found.groups() if one), None) if found else None


def unreachable(words: str) -> Error:
    """Find the row of a connection that never was; `words` is lower case.

    Only words of a wrong address count: an exception may quote what a stranger
    on that port sent.
    """
    configured = next(w for w in WORDINGS if w.row == "connect_config")
    found = configured.pattern.search(words)
    return ERRORS["connect_config" if found else "connect_failed"]
