"""What our templates need beyond Django's own tags."""

from pathlib import Path
from uuid import uuid4

from django import template
from django.conf import settings
from django.template.context import Context
from django.utils.translation import get_language, get_language_info, to_locale

from threads.models import Cell
from threads.sentences import sentence_for
from threads.views.site import THEME_COOKIE, THEMES

register = template.Library()


@register.simple_tag(takes_context=True)
def theme(context: Context) -> str:
    """Return the look this person chose; empty for the system's."""
    request = context.get("request")
    chosen: str = request.COOKIES.get(THEME_COOKIE, "") if request else ""
    return chosen if chosen in THEMES else ""


@register.simple_tag
def offered_languages() -> list[dict[str, str]]:
    """Return the languages with a catalogue of ours, each by its own name."""
    roots = [Path(root) for root in settings.LOCALE_PATHS]
    return [
        {"code": code, "name": get_language_info(code)["name_local"]}
        for code, _name in settings.LANGUAGES
        if code == "en"
        or any((root / to_locale(code) / "LC_MESSAGES").is_dir() for root in roots)
    ]


@register.simple_tag
def sentence_of(cell: Cell) -> str:
    """Return what is to be said about an answer's ending, in the page's language."""
    return sentence_for(cell, get_language() or "en")


@register.simple_tag
def fresh_key() -> str:
    """Return a key for one sending: the same key opens one round."""
    return uuid4().hex


@register.filter
def seconds(milliseconds: int | None) -> int | None:
    """Turn milliseconds into whole seconds, at least one; unknown stays unknown."""
    return None if milliseconds is None else max(1, round(milliseconds / 1000))
