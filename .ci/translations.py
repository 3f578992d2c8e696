"""Checks the translations: nothing missing, placeholders equal, sources found.

A language counts as offered once it has a catalogue; an offered language must be
complete. Prints what is wrong and ends with status 1. With `--update LANGUAGE…`
it writes the strings of the source into these languages' catalogues instead.
"""

import json
import re
import sys
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
KEYWORDS = DEFAULT_KEYWORDS | {
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
}
PLACEHOLDER = re.compile(r"%\([a-z_]+\)[sd]|%[sd]|\{[a-z_]*\}")


def catalogues() -> dict[str, Catalog]:
    """Read every language's catalogue."""
    found = {}
    for path in sorted((ROOT / "locale").glob("*/LC_MESSAGES/django.po")):
        with path.open("rb") as file:
            found[path.parts[-3]] = read_po(file)
    return found


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
    wanted_texts = {key(message.id) for message in sources() if message.id}
    for language, catalogue in catalogues().items():
        known = {key(message.id): message for message in catalogue if message.id}
        wrong += [
            f"{language}: not in the catalogue: {text!r}"
            for text in sorted(wanted_texts - set(known))
        ]
        for text in sorted(wanted_texts & set(known)):
            message = known[text]
            if message.fuzzy or not all(texts(message.string)):
                wrong.append(f"{language}: not translated: {text!r}")
            wanted = {
                name for form in texts(message.id) for name in PLACEHOLDER.findall(form)
            }
            for form in texts(message.string):
                if form and not set(PLACEHOLDER.findall(form)) <= wanted:
                    wrong.append(f"{language}: other placeholders: {form!r}")
    sentences = json.loads(
        (ROOT / "threads/fixtures/sentences.json").read_text("utf-8")
    )
    sentences |= json.loads(
        (ROOT / "threads/fixtures/practice.json").read_text("utf-8")
    )
    for language in catalogues():
        name = language.lower().replace("_", "-")
        if name != "en":
            wrong += [
                f"{name}: no sentence {k}"
                for k, texts_ in sentences.items()
                if name not in texts_
            ]
    return wrong


def update(languages: list[str]) -> None:
    """Bring catalogues up to date with the source; keeps every translation."""
    fresh = sources()
    for language in languages:
        path = ROOT / "locale" / language / "LC_MESSAGES" / "django.po"
        path.parent.mkdir(parents=True, exist_ok=True)
        catalogue = Catalog(
            locale=language, project="chatsite", version="1", charset="utf-8"
        )
        if path.exists():
            with path.open("rb") as file:
                catalogue = read_po(file, locale=language)
        catalogue.update(fresh, no_fuzzy_matching=True)
        catalogue.obsolete.clear()
        with path.open("wb") as file:
            write_po(
                file,
                catalogue,
                width=88,
                no_location=True,
                omit_header=False,
                sort_output=True,
            )


if __name__ == "__main__":
    settings.configure()
    if sys.argv[1:2] == ["--update"]:
        update(sys.argv[2:])
        sys.exit()
    found = problems()
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.exit(1 if found else 0)
