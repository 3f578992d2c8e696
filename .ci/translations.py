"""Checks the translations: nothing missing, placeholders equal, sources found.

Every language of the settings must be complete: interface, sentences, names of
the practice models. Prints what is wrong and ends with status 1. With `--update`
it writes the strings of the source into the catalogues instead.
"""

import json
import os
import re
import sys
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.utils.translation import to_locale
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
LANGUAGES = [code for code, _ in settings.LANGUAGES if code != "en"]
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The date in every catalogue: the real one stands in the history of changes."""

KEYWORDS = DEFAULT_KEYWORDS | {
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
}
PLACEHOLDER = re.compile(r"%\([a-z_]+\)[sd]|%[sd]|\{[a-z_]*\}")


def path_of(language: str) -> Path:
    """Return the place of a language's catalogue."""
    return ROOT / "locale" / to_locale(language) / "LC_MESSAGES" / "django.po"


def catalogue_of(language: str) -> Catalog:
    """Read a language's catalogue; an empty one where there is none yet."""
    if not path_of(language).exists():
        return Catalog(locale=to_locale(language))
    with path_of(language).open("rb") as file:
        return read_po(file, locale=to_locale(language))


def sources() -> Catalog:
    """Extract the strings of Python and of the templates, as Django marks them."""
    found = Catalog(charset="utf-8")
    for path in sorted((*ROOT.glob("chatsite/**/*.py"), *ROOT.glob("threads/**/*.py"))):
        _add(found, path.read_bytes(), path)
    for path in sorted(ROOT.glob("templates/**/*.html")):
        # What Django makes of a template is code for xgettext; as Python it only
        # lacks sensible indentation.
        lines = templatize(path.read_text("utf-8")).splitlines()
        _add(found, "\n".join(line.strip() for line in lines).encode(), path)
    return found


def _add(found: Catalog, code: bytes, path: Path) -> None:
    options = {"encoding": "utf-8"}
    for _line, message, comments, context in extract(
        "python", BytesIO(code), KEYWORDS, ("Translators:",), options
    ):
        # No line numbers: they would make every change a change of catalogues.
        place = [(str(path.relative_to(ROOT)), 1)]
        found.add(message, locations=place, auto_comments=comments, context=context)


def key(id: str | tuple[str, ...] | list[str]) -> str:
    """One name for a message with or without plural."""
    return id if isinstance(id, str) else id[0]


def texts(value: str | tuple[str, ...] | list[str]) -> list[str]:
    """All forms of a message."""
    return [value] if isinstance(value, str) else list(value)


def problems() -> list[str]:
    """List what is wrong."""
    wrong: list[str] = []
    wanted = {key(message.id): message for message in sources() if message.id}
    fixtures = [
        json.loads((ROOT / "threads" / "fixtures" / name).read_text("utf-8"))
        for name in ("sentences.json", "practice.json")
    ]
    for language in LANGUAGES:
        catalogue = catalogue_of(language)
        known = {key(message.id): message for message in catalogue if message.id}
        for text in sorted(wanted):
            if text in known:
                wrong += _faults(known[text], catalogue, language)
            else:
                wrong.append(f"{language}: not in the catalogue: {text!r}")
        wrong += [
            f"{language}: not used any more: {text!r}"
            for text in set(known) - set(wanted)
        ]
        for fixture in fixtures:
            wrong += [
                f"{language}: no words for {name}"
                for name, words in fixture.items()
                if language not in words
            ]
    return wrong


def _faults(message: Message, catalogue: Catalog, language: str) -> list[str]:
    forms = texts(message.string)
    plural = not isinstance(message.id, str)
    if (
        message.fuzzy
        or not all(forms)
        or (plural and len(forms) != catalogue.num_plurals)
    ):
        return [f"{language}: not translated: {key(message.id)!r}"]
    wanted = {name for form in texts(message.id) for name in PLACEHOLDER.findall(form)}
    return [
        f"{language}: other placeholders: {form!r}"
        for form in forms
        # A plural form may leave the number out: "one more".
        if not (found := set(PLACEHOLDER.findall(form))) <= wanted
        or (not plural and found != wanted)
    ]


def update() -> None:
    """Bring catalogues up to date with the source; keeps every translation."""
    fresh = sources()
    for language in LANGUAGES:
        catalogue = catalogue_of(language)
        catalogue.update(fresh, no_fuzzy_matching=True)
        catalogue.obsolete.clear()
        catalogue.project, catalogue.version = "chatsite", "1"
        catalogue.header_comment = f"# chatsite in {catalogue.locale.english_name}."
        catalogue.msgid_bugs_address = catalogue.last_translator = ""
        catalogue.language_team = catalogue.locale.english_name
        catalogue.creation_date = catalogue.revision_date = EPOCH
        catalogue.fuzzy = False
        path_of(language).parent.mkdir(parents=True, exist_ok=True)
        with path_of(language).open("wb") as file:
            write_po(file, catalogue, width=88, no_location=True, sort_output=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
        sys.exit()
    found = problems()
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.exit(1 if found else 0)
