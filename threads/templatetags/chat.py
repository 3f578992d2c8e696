"""What our templates need beyond Django's own tags."""

from collections.abc import Sequence
from uuid import uuid4

from django import template
from django.conf import settings
from django.template.context import Context
from django.utils.translation import get_language, get_language_info

from threads.choices import offered_choices, value_of
from threads.forms import DecisionForm
from threads.models import Cell, Thread
from threads.rendering.remedies import Remedy, remedies
from threads.rendering.tools import Card, ToolsOf
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
    """Return the languages of the site, each by its own name."""
    return [
        {"code": code, "name": get_language_info(code)["name_local"]}
        for code, _name in settings.LANGUAGES
    ]


@register.simple_tag(takes_context=True)
def sentence_of(context: Context, cell: Cell) -> str:
    """Return what is to be said about an answer's ending, in the page's language."""
    edited = context.get("edited")
    return sentence_for(cell, get_language() or "en", edited=edited)


@register.simple_tag
def remedies_of(cell: Cell) -> tuple[Remedy, ...]:
    """Return the buttons that help with an answer's ending, the best one first."""
    return remedies(cell)


@register.simple_tag(takes_context=True)
def summary_of(context: Context, row: Thread) -> str:
    """Return how a thread's last answer ended: the sentence of its cell (B9)."""
    cell = Cell(
        sentence_key=getattr(row, "last_sentence_key", ""),
        sentence_params=getattr(row, "last_sentence_params", None) or {},
        sentence=getattr(row, "last_sentence", ""),
    )
    return sentence_of(context, cell)


@register.simple_tag(takes_context=True)
def others_offered(context: Context, cell: Cell) -> bool:
    """Tell whether another model than the one that was asked can be chosen."""
    used = asked_with(cell)
    # What shows many answers has the models at hand; a single one has to look.
    offered = context.get("models")
    if offered is None:
        offered = offered_choices()
    return any(choice.value != used for choice in offered)


@register.filter
def asked_with(cell: Cell) -> str:
    """Return the value of what a person chose for this answer: a model or a route."""
    asked = getattr(cell, "round", None)
    return "" if asked is None else value_of(asked.model_id, asked.route)


@register.simple_tag
def asked_first(cell: Cell) -> str:
    """Name the model that a route asked first, where another one answered."""
    asked = cell.round
    model = asked.model
    if asked.route_id is None or model is None or not asked.model_requested:
        return ""
    if model.wire_id == asked.model_requested:
        return ""
    steps = asked.route.steps.all() if asked.route else ()
    known = (step.model for step in steps)
    first = (each.name for each in known if each.wire_id == asked.model_requested)
    return next(first, asked.model_requested)


@register.simple_tag(takes_context=True)
def cards_of(context: Context, cell: Cell, call: int) -> list[Card]:
    """Return the cards of the tools that a call of an answer asked for."""
    # What shows many answers has read them for all; a single one looks for its own.
    tools: ToolsOf = context.get("tools") or ToolsOf([cell])
    return tools.cards(cell.pk, call)


@register.simple_tag(takes_context=True)
def refused_of(context: Context, run_id: int) -> DecisionForm | None:
    """Return the decision on a tool run that could not be taken, if it is this one's."""
    decision: DecisionForm | None = context.get("decision")
    if decision is None or decision.run.pk != run_id or not decision.errors:
        return None
    return decision


@register.filter
def listed(names: Sequence[str]) -> str:
    """Join names as a list that reads alike in every language."""
    return ", ".join(names)


@register.simple_tag
def fresh_key() -> str:
    """Return a key for one sending: the same key opens one round."""
    return uuid4().hex


@register.filter
def seconds(milliseconds: int | None) -> int | None:
    """Turn milliseconds into whole seconds, at least one; unknown stays unknown."""
    return None if milliseconds is None else max(1, round(milliseconds / 1000))
