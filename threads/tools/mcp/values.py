"""What is said about tool servers: where one is, what it offers, how it failed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from threads.core.answer import clean
from threads.core.redaction import redacted
from threads.gateway.client import Endpoint

STDIO = "stdio"

MOST_TOOLS = 100
DESCRIPTION_LENGTH = 1_000
SCHEMA_LENGTH = 16_000
"""Characters of a tool's schema; every request carries those of all tools."""
SCHEMA_DEPTH = 40
SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a tool server is. Secrets are in memory only.

    A server whose settings were changed is another address, and gets another session.
    """

    slug: str
    transport: str
    command: str = ""
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    @property
    def place(self) -> str:
        """All of it that may be logged: the host, or that it runs here."""
        if self.transport == STDIO:
            return STDIO
        return Endpoint(base_url=self.url, api_key="").host

    @property
    def secrets(self) -> list[str]:
        """What is never shown; a value of a few characters may be any word."""
        values = {self.token, *(value for _, value in self.environment)}
        return sorted(value for value in values if len(value) >= SHORTEST_SECRET)

    def fit(self, words: str) -> str:
        """Make a server's words fit to be shown and kept: redacted, one bounded line."""
        return redacted(words, self.secrets)

    def without_secrets(self, text: str) -> str:
        """Take secrets out of a result: the model and the page have no use for them."""
        for secret in self.secrets:
            text = text.replace(secret, "[key]")
        return text


class ServerError(Exception):
    """A tool server could not be used; in words for model and person.

    `last_words`: the last line that its process had written, the operator's alone.
    `was_sent`: the call had left, so that nobody can tell what became of it.
    `is_broken`: the session is of no further use.
    """

    def __init__(
        self,
        words: str,
        *,
        last_words: str = "",
        was_sent: bool = False,
        is_broken: bool = True,
    ) -> None:
        super().__init__(words)
        self.last_words = last_words
        self.was_sent = was_sent
        self.is_broken = is_broken

    @property
    def report(self) -> str:
        """What the operator is told."""
        said = self.last_words
        return f"{self} Its last words: {said}" if said else str(self)


def cause_of(error: BaseException) -> BaseException:
    """Return what really happened: the SDK's task groups wrap whatever passes them."""
    while isinstance(error, BaseExceptionGroup):
        inner: tuple[BaseException, ...] = error.exceptions
        error = next((one for one in inner if isinstance(one, ServerError)), inner[0])
    return error


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool of a server answered."""

    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of a server as they are kept; how many were left out, unfit."""

    tools: list[dict[str, Any]]
    left_out: int = 0


def unsafe(url: str) -> str:
    """Say why no request goes to this address; empty when one may.

    What leaves this network is encrypted; the same hosts are local as for gateways.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return "The address cannot be read."
    if parts.scheme not in {"http", "https"} or not host:
        return "The address has to begin with https:// or http:// and name a host."
    if parts.scheme == "http" and not Endpoint(base_url=url, api_key="").is_local:
        return "Outside of this network only https is used."
    return ""


def bounded(tools: list[dict[str, Any]]) -> Listing:
    """Keep of a server's tools those that can be offered, each name once."""
    kept = dict[str, dict[str, Any]]()
    for tool in tools:
        schema = {"type": "object", **tool["schema"]}
        if is_usable(schema) and len(kept) < MOST_TOOLS:
            words = tool["description"][:DESCRIPTION_LENGTH]
            kept.setdefault(
                tool["name"], cleaned(tool | {"schema": schema, "description": words})
            )
    return Listing(list(kept.values()), len(tools) - len(kept))


def is_usable(schema: Mapping[str, Any]) -> bool:
    """Tell whether arguments can be checked against a schema, and at what cost.

    A reference to another document would be fetched from wherever it points.
    """
    try:
        written = repr(schema)
        if len(written) > SCHEMA_LENGTH or depth_of(schema) > SCHEMA_DEPTH:
            return False
        validator_for(schema).check_schema(dict(schema))
    except (SchemaError, RecursionError, ValueError, TypeError, AttributeError):
        return False
    references = re.findall(r"'\$(?:dynamic)?[rR]ef': ['\"](.)", written)
    return schema["type"] == "object" and all(first == "#" for first in references)


def depth_of(value: object) -> int:
    """Return how deep a JSON value is nested."""
    if isinstance(value, Mapping):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


def cleaned(value: Any) -> Any:
    """Make every text of a JSON value fit to be stored."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [cleaned(inner) for inner in value]
    return value
