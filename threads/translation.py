"""Registers the models whose words are kept per language."""

from modeltranslation.translator import TranslationOptions, register

from threads.models import Agent, LanguageModel, Route, Sentence


@register(Agent)
class AgentTranslation(TranslationOptions):
    """An agent's words."""

    fields = ("name", "description")


@register(LanguageModel)
class LanguageModelTranslation(TranslationOptions):
    """A model's words."""

    fields = ("name", "description")


@register(Route)
class RouteTranslation(TranslationOptions):
    """A route's words."""

    fields = ("name", "description")


@register(Sentence)
class SentenceTranslation(TranslationOptions):
    """A sentence of the catalogue."""

    fields = ("text",)
