"""From a verdict's key to a sentence in a language.

A sentence says whose condition it is and what the person can do. Where it comes
from: the catalogue row of that key in that language, else the catalogue as it
was shipped, else the English of this module. A raw key is never shown (B4).
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from string import Formatter

from django.core.exceptions import FieldError
from django.db import DatabaseError

from threads.models import Cell, Sentence

ENGLISH = {
    "stream.stalled_start": (
        "{model} accepted your message but never began to answer. Send your message again, or "
        "choose another model."
    ),
    "stream.stalled_start_open": (
        "The gateway of {model} kept the line open, but the model never began to answer. Send "
        "your message again, or choose another model."
    ),
    "stream.stalled_mid": (
        "{model} stopped answering halfway: nothing more came. What arrived is kept. "
        "Send your message again, or choose another model."
    ),
    "stream.stalled_mid_open": (
        "{model} stopped answering halfway, although its gateway kept the line open. What arrived"
        " is kept. Send your message again, or choose another model."
    ),
    "stream.truncated": (
        "The connection to {model} ended before its answer was whole. What arrived is kept. Send "
        "your message again, or choose another model."
    ),
    "stream.faulted": (
        "The provider of {model} reported that it failed while answering. What arrived is kept. "
        "Send your message again, or choose another model."
    ),
    "stream.unknown_end": (
        "{model} ended its answer for a reason that we do not know, so it may not be whole. "
        "Read it with care, or choose another model."
    ),
    "stream.unreadable": (
        "The gateway of {model} sent something that cannot be read, in the middle of the answer. "
        "What arrived is kept. If this happens again, tell your operator."
    ),
    "stream.faulted_neutral": (
        "Something between you and {model} reported a failure without saying what it was. "
        "What arrived is kept. If this happens again, tell your operator."
    ),
    "stream.empty": (
        "{model} finished without writing anything. Choose another model, or put your message differently."
    ),
    "stream.empty_at_limit": (
        "{model} used up its whole allowance on thinking and wrote no answer. "
        "Ask for something shorter, or choose another model."
    ),
    "answer.cut_length": "{model} reached its output limit here. Ask it to go on where it stopped.",
    "answer.filtered": (
        "The content rules of {model}'s provider ended this answer here. Put your message "
        "differently, or choose another model."
    ),
    "request.blocked": (
        "The content rules of {model}'s provider do not allow this message. Change the message, "
        "or choose another model."
    ),
    "request.too_long": (
        "This conversation is too long for {model}. Shorten the message, start a new thread, "
        "or choose a model that reads more."
    ),
    "request.message_too_long": (
        "This message is longer than {model} can read, so it was not sent. Shorten the message, "
        "or choose a model that reads more."
    ),
    "request.results_too_long": (
        "What the tools brought back is more than {model} can read, so it was not asked again. "
        "Change the message so that less is looked up, or choose a model that reads more."
    ),
    "request.rejected": (
        "The gateway did not accept this message for {model}. What it objected to stands below; "
        "change the message or choose another model."
    ),
    "config.model_settings": (
        "The way this site asks {model} does not fit that model. Choose another model and tell your operator."
    ),
    "config.endpoint": (
        "The address that this site has for {model} did not answer as a model gateway does. "
        "Tell your operator, and choose another model meanwhile."
    ),
    "config.model_missing": (
        "{model} is not available on this site any more. Choose another model."
    ),
    "config.no_model": ("No model is set up on this site. Tell your operator."),
    "config.no_key": (
        "This site has no access of its own to the gateway of {model}. Tell your operator, "
        "or choose another model."
    ),
    "config.region": (
        "{model} is not offered in the place where this site runs. Choose another model."
    ),
    "account.key_rejected": (
        "The gateway of {model} did not accept this site's access. Waiting does not help: "
        "tell your operator, or choose another model."
    ),
    "account.no_credit": (
        "This site's account for {model} has run out. Waiting does not help: tell your operator, "
        "or choose another model."
    ),
    "account.budget": (
        "The spending limit set for {model} has been reached. Tell your operator, or choose another model."
    ),
    "account.forbidden": (
        "This site's account may not use {model} at present. Tell your operator, or choose another model."
    ),
    "provider.refused": (
        "The gateway refused this message for {model}, for a reason that we do not know. "
        "Choose another model, or tell your operator."
    ),
    "provider.timeout": (
        "The provider of {model} took too long. What arrived is kept. Send your message again, or"
        " choose another model."
    ),
    "provider.rate_limited": (
        "{model} is being sent more messages at the moment than its provider accepts. Wait a "
        "little, then send your message again, or choose another model."
    ),
    "provider.overloaded": (
        "{model} has more work at the moment than its provider can do. Send your message again in"
        " a while, or choose another model."
    ),
    "provider.error": (
        "The provider of {model} had an error of its own. What arrived is kept. "
        "Send your message again, or choose another model."
    ),
    "net.unreachable": (
        "The gateway of {model} could not be reached. Send your message again, or choose another "
        "model; if it stays so, tell your operator."
    ),
    "round.cap": (
        "AI streaming exceeded the maximum round duration of {minutes} minutes. {model} had begun"
        " to answer and was not done. What arrived is kept. Ask for less at once."
    ),
    "round.cap_reasoning": (
        "AI streaming exceeded the maximum round duration of {minutes} minutes. {model} was still"
        " reasoning and had not started its answer. Ask for less at once, or choose a model that "
        "reasons less."
    ),
    "round.cap_silent": (
        "AI streaming exceeded the maximum round duration of {minutes} minutes. {model} never "
        "began to answer. Send your message again, or choose another model."
    ),
    "round.cap_tool": (
        "AI streaming exceeded the maximum round duration of {minutes} minutes. The tool {tool} "
        "was still running and may or may not have finished. Check what it did before you ask "
        "for it once more."
    ),
    "round.worker_lost": (
        "The server that was writing this answer stopped. That was on our side. What arrived is "
        "kept. Send your message again."
    ),
    "round.worker_never_started": (
        "No server took up your message in time. That was on our side. Send your message again."
    ),
    "round.history": (
        "The earlier part of this thread could not be read, so {model} was not asked. That was on"
        " our side. Send your message again."
    ),
    "round.same_call": (
        "{model} asked the tool {tool} for the same thing again and again, so the round was ended."
        " What arrived is kept. Put your message differently, or choose another model."
    ),
    "round.same_error": (
        "The tool {tool} failed in the same way again and again, so the round was ended. What "
        "arrived is kept. Put your message differently, or tell your operator about the tool."
    ),
    "round.not_decided": (
        "You were asked whether the tool {tool} may run, and the time to answer is over. It was "
        "not run. What arrived is kept. Send your message again."
    ),
    "round.tool_rounds": (
        "{model} kept on calling tools without coming to an answer. Put your message differently,"
        " or choose another model."
    ),
    "internal.error": (
        "Something on our side failed. What arrived is kept. Send your message again; if you "
        "report it, give this number: {incident}."
    ),
    "internal.request_shape": (
        "This site put the conversation to {model} in a form that its gateway does not take. That"
        " was on our side. Tell your operator, or choose another model."
    ),
    "answer.substituted": ("The gateway answered with {served} in place of {model}."),
    "answer.wait": "The gateway asks for a wait of about {wait} min.",
    "answer.unknown_tool": (
        "The tool {unknown_tool} may or may not have finished. Check what it did before you ask "
        "for it once more."
    ),
}
"""Every sentence of ours, in the words that stand when nothing else does."""

ADDENDA = {
    "served": "answer.substituted",
    "wait": "answer.wait",
    "unknown_tool": "answer.unknown_tool",
}
"""Sentences that are added to another one where its params have this name: that a
model answered in place of the one asked for (B13), how long to wait (D22), that
nobody knows what became of a tool (F6)."""

PLACEHOLDERS = ("model", "incident", "tool", "minutes", *ADDENDA)
"""What a sentence may name; an operator's words may use no other."""


class Filler(Formatter):
    """Fills in names and nothing else: an operator's words are no program."""

    def get_field(
        self, field_name: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[object, str]:
        """Look a name up; `{model.upper}` and `{0}` are no names."""
        return kwargs[field_name], field_name

    def convert_field(self, value: object, conversion: str | None) -> object:
        """Refuse `!r` and its like."""
        if conversion is not None:
            raise ValueError("a placeholder has no conversion")
        return value

    def format_field(self, value: object, format_spec: str) -> str:
        """Refuse widths and their like."""
        if format_spec:
            raise ValueError("a placeholder has no format")
        return str(value)


FILLER = Filler()


@cache
def shipped() -> Mapping[str, Mapping[str, str]]:
    """The translations that came with this release: key to language to text."""
    path = resources.files("threads") / "fixtures" / "sentences.json"
    catalogue: dict[str, dict[str, str]] = json.loads(path.read_text("utf-8"))
    return catalogue


def sentence(
    key: str,
    params: Mapping[str, str],
    locale: str,
    *,
    edited: Mapping[str, str] | None = None,
) -> str:
    """Return the sentence of `key` in `locale`, with its placeholders filled.

    An unknown key answers with the neutral sentence. A template that an operator
    broke falls back to the shipped one. Some params add a sentence of their own
    (`ADDENDA`). Who needs many reads the operator's words once, with `edited_words`.
    """
    if not key:
        return ""
    if edited is None:
        edited = edited_words(locale, key, *ADDENDA.values())
    words = [_filled(key, params, locale, edited)]
    words += [
        _filled(addendum, params, locale, edited)
        for name, addendum in ADDENDA.items()
        if params.get(name) and key != addendum
    ]
    return " ".join(words)


def _filled(
    key: str, params: Mapping[str, str], locale: str, edited: Mapping[str, str]
) -> str:
    """Fill the one template that stands for `key`."""
    values = dict.fromkeys(PLACEHOLDERS, "-") | {"model": "The model"}
    values |= {name: value for name, value in params.items() if value}
    for template in (edited.get(key, ""), shipped().get(key, {}).get(locale, "")):
        if template:
            try:
                return FILLER.vformat(template, (), values)
            except (KeyError, ValueError):
                continue
    return ENGLISH.get(key, ENGLISH["stream.faulted_neutral"]).format_map(values)


def sentence_for(
    cell: Cell, locale: str, *, edited: Mapping[str, str] | None = None
) -> str:
    """Return a cell's sentence for a viewer: theirs where the catalogue has it,
    else the one frozen in the round's locale (design section 7)."""
    if not cell.sentence_key:
        return cell.sentence
    if edited is None:
        edited = edited_words(locale, cell.sentence_key, *ADDENDA.values())
    defined = locale == "en" or bool(
        edited.get(cell.sentence_key)
        or shipped().get(cell.sentence_key, {}).get(locale)
    )
    if defined or not cell.sentence:
        return sentence(cell.sentence_key, cell.sentence_params, locale, edited=edited)
    return cell.sentence


def edited_words(locale: str, *keys: str) -> dict[str, str]:
    """The operator's words in a language, by key; of all keys if none is named.

    Nothing when the table cannot be read, or has no such language.
    """
    field = f"text_{locale.replace('-', '_')}"
    rows = Sentence.objects.filter(key__in=keys) if keys else Sentence.objects.all()
    try:
        return {key: text for key, text in rows.values_list("key", field) if text}
    except (DatabaseError, FieldError):
        return {}
