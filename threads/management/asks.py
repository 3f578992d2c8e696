"""What a command line or a batch asks, read and checked before anything is sent."""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError
from django.utils.translation import get_supported_language_variant

from threads import conf
from threads.choices import ROUTE, Choice, offered_choice
from threads.core.answer import clean
from threads.endpoints import default_model, offered_models
from threads.forms import LONGEST_MESSAGE
from threads.models import Agent, LanguageModel
from threads.practice.models import PRACTICE_MODELS

BAD_USAGE = 2
MODEL_LENGTH = 200


def unusable(message: str) -> CommandError:
    """Build the error of a call that cannot be carried out as it stands."""
    return CommandError(message, returncode=BAD_USAGE)


@dataclass(frozen=True, slots=True)
class Ask:
    """One prompt and how it is to be answered."""

    prompt: str
    model: str
    locale: str
    id: object = None


def checked_prompt(prompt: object) -> str:
    """Refuse what cannot be asked."""
    if not isinstance(prompt, str):
        raise unusable("There is no prompt, or it is not text.")
    if not prompt.strip():
        raise unusable("The prompt is empty.")
    if len(prompt) > LONGEST_MESSAGE:
        raise unusable(f"The prompt is longer than {LONGEST_MESSAGE} characters.")
    return prompt


def checked_name(name: object) -> str:
    """Refuse a model id that is not text."""
    if not isinstance(name, str | None):
        raise unusable("The model is not text.")
    name = clean(name or "")
    if len(name) > MODEL_LENGTH:
        raise unusable(f"The model is longer than {MODEL_LENGTH} characters.")
    return name


def cleaned(value: object) -> object:
    """Make a caller's own id fit to be written."""
    return clean(value) if isinstance(value, str) else value


def checked_locale(locale: object) -> str:
    """Refuse a language that the site does not speak."""
    try:
        return get_supported_language_variant(str(locale))
    except LookupError as error:
        raise unusable(f"This site does not speak {locale!r}.") from error


LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
"""What JSON may hold as it is, and many a reader takes for the end of a line."""


def one_line(outcome: object) -> str:
    """Write JSON that is one line for everybody who splits a text into lines."""
    return json.dumps(outcome, ensure_ascii=False).translate(LINE_ENDS)


def batch_lines(source: str) -> list[str]:
    """Read a batch from a file or standard input."""
    if source == "-":
        return sys.stdin.read().split("\n")
    try:
        return Path(source).read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise unusable(f"The batch cannot be read: {error}") from error


def read_batch(lines: Iterable[str], model: str, locale: str) -> Iterable[Ask]:
    """Check every line before the first is asked."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise unusable(f"Line {number} is not JSON: {error}") from error
        if not isinstance(entry, dict):
            raise unusable(f"Line {number} is not a JSON object.")
        try:
            yield Ask(
                prompt=checked_prompt(entry.get("prompt")),
                model=checked_name(entry.get("model")) or model,
                locale=checked_locale(entry.get("locale") or locale),
                id=cleaned(entry.get("id")),
            )
        except CommandError as error:
            raise unusable(f"Line {number}: {error}") from error


def chosen_route(name: str) -> Choice | None:
    """Return the route of that name, with or without the prefix that says so.

    A bare name is a model's first.

    Raises:
        CommandError: a route is named that is not offered.
    """
    if name.startswith(ROUTE):
        choice = offered_choice(name)
        if choice is None:
            raise unusable(f"There is no {name!r} with a model that can be asked.")
        return choice
    if not name or offered_models().filter(wire_id=name).exists():
        return None
    return offered_choice(ROUTE + name)


def chosen_model(wire_id: str, agent: Agent | None) -> tuple[LanguageModel | None, str]:
    """Return the model to ask and its wire id; an unlisted one has no row.

    Whatever id is given is asked: the gateway says whether it knows it.
    """
    if not wire_id and agent is not None and agent.model is not None:
        return agent.model, agent.model.wire_id
    wire_id = wire_id or settings.CHAT_MODEL
    offered = offered_models()
    model = (
        offered.filter(wire_id=wire_id).first() if wire_id else default_model(offered)
    )
    if model is not None:
        return model, model.wire_id
    if not wire_id and not conf.gateway_configured():
        return None, PRACTICE_MODELS[0].wire_id
    return None, wire_id
