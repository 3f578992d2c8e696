"""Whether the arguments of a call may be used: readable, of one meaning, fit.

Neither they nor their schema are ours: a model wrote the ones, a server may have
written the other. Nothing here fetches, and nothing takes long, whatever they hold.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry

from threads.models.ledger import ARGUMENTS_LENGTH

DEEPEST = 100
LONGEST_WORDS = 500
MOST_ERRORS = 100
MOST_COMPARED = 1_000
CHECK_SECONDS = 1.0

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]

_deadline: ContextVar[float] = ContextVar("deadline", default=float("inf"))


class UnfitError(ValueError):
    """The arguments cannot be used; in words for the model, without a full stop."""


class TooCostlyError(Exception):
    """Arguments and schema together take too long to compare."""


def arguments_of(text: str) -> dict[str, Any]:
    """Read the arguments of a call.

    Raises:
        UnfitError: they are not one JSON object that means one thing.
    """
    if len(text) > ARGUMENTS_LENGTH:
        raise UnfitError(f"the arguments are longer than {ARGUMENTS_LENGTH} characters")
    try:
        decoded = json.loads(
            text, parse_constant=_no_constant, object_pairs_hook=_distinct
        )
    except UnfitError:
        raise
    except RecursionError:
        raise UnfitError("the arguments are nested too deeply") from None
    except ValueError:
        raise UnfitError("the arguments are not complete JSON") from None
    if not isinstance(decoded, dict):
        raise UnfitError("the arguments are not a JSON object")
    if _is_deeper(decoded, DEEPEST):
        raise UnfitError("the arguments are nested too deeply")
    return decoded


def _no_constant(name: str) -> object:
    raise UnfitError(f"{name} is no JSON")


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object; whoever reads a name twice may see either value."""
    decoded: dict[str, object] = {}
    for name, value in pairs:
        if name in decoded:
            raise UnfitError(f"{name[:60]!r} is given twice")
        decoded[name] = value
    return decoded


def _is_deeper(value: object, depth: int) -> bool:
    """Tell whether lists and objects stand in one another deeper than that.

    Level by level: a walk that calls itself would end where Python's stack does.
    """
    level: list[Any] = [value]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def unfit_arguments(arguments: Any, schema: Mapping[str, Any]) -> str:
    """Say where arguments do not fit their JSON schema; empty when they do."""
    token = _deadline.set(time.monotonic() + CHECK_SECONDS)
    try:
        chosen = validator_for(schema, default=Draft202012Validator)
        # With a registry of its own it fetches nothing that a schema refers to.
        validator = _bounded(chosen)(schema, registry=Registry())
        errors = list(islice(validator.iter_errors(arguments), MOST_ERRORS))
        return _told(min(errors, key=_place)) if errors else ""
    except Exception as error:  # noqa: BLE001 - a broken schema breaks in any way
        return f"its schema cannot be used ({type(error).__name__})"
    finally:
        _deadline.reset(token)


def _place(error: ValidationError) -> list[str]:
    return [str(part) for part in error.path]


def _told(error: ValidationError) -> str:
    place = "/".join(_place(error))[:LONGEST_WORDS]
    words = error.message[:LONGEST_WORDS]
    return f"at {place!r}: {words}" if place else words


@lru_cache(maxsize=16)
def _bounded(chosen: type[Validator]) -> type[Validator]:
    """Return a validator that gives up in time.

    Regular expressions are left to the tool: one of them may take for ever, and
    holds the whole process while it does.
    """
    keywords: dict[str, Keyword] = dict(chosen.VALIDATORS)
    for name in ("pattern", "patternProperties", "unevaluatedProperties"):
        if name in keywords:
            keywords[name] = _left_to_the_tool
    keywords["additionalProperties"] = _without_patterns(
        keywords["additionalProperties"]
    )
    if "uniqueItems" in keywords:
        keywords["uniqueItems"] = _of_few(keywords["uniqueItems"])
    timed = {name: _timed(check) for name, check in keywords.items()}
    bounded: type[Validator] = extend(chosen, timed)  # type: ignore[no-untyped-call]
    return bounded


def _left_to_the_tool(
    validator: Any, value: Any, instance: Any, schema: Any
) -> Iterator[ValidationError] | None:
    return None


def _without_patterns(check: Keyword) -> Keyword:
    """Which properties are additional may depend on regular expressions."""

    def checked(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError] | None:
        if "patternProperties" in schema:
            return None
        return check(validator, value, instance, schema)

    return checked


def _of_few(check: Keyword) -> Keyword:
    """Each item is compared with each other one."""

    def checked(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError] | None:
        if isinstance(instance, list) and len(instance) > MOST_COMPARED:
            return None
        return check(validator, value, instance, schema)

    return checked


def _timed(check: Keyword) -> Keyword:
    def timed(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError] | None:
        if time.monotonic() > _deadline.get():
            raise TooCostlyError
        return check(validator, value, instance, schema)

    return timed
