"""One attempt told as a person would tell it, from its row in the ledger.

The caller has activated the viewer's language.
"""

from collections.abc import Iterable

from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from threads.core.faults import Condition, Ending
from threads.core.retry import Action, Reason
from threads.models import CallAttempt
from threads.rendering.figures import number, seconds

SPACELESS = frozenset({"ja", "zh-hans"})
"""Languages that put no space between two sentences."""

BY_HAND = "manual"
"""The decision that a person took, by sending a round again (requirement D16)."""

UNFINISHED = frozenset({Ending.STALLED, Ending.TRUNCATED, Ending.FAULTED, Ending.EMPTY})
"""Endings of an answer that began: one may wonder why it was not begun anew."""


def story(
    attempt: CallAttempt, *, is_followed: bool = False, was_put_back: bool = False
) -> str:
    """Tell how an attempt went and what followed, in one line.

    `is_followed` says that the ledger has another attempt of the same call after
    it; `was_put_back` that the text which it withdrew stands again.
    """
    sentences = (
        *_before(attempt),
        *_beginning(attempt),
        _ending(attempt),
        *_withdrawal(attempt),
        *_after(attempt, is_followed=is_followed),
        *_restored(was_put_back),
    )
    return ("" if get_language() in SPACELESS else " ").join(sentences)


def _before(attempt: CallAttempt) -> Iterable[str]:
    if attempt.wait_ms:
        yield _("Waited %(seconds)s s first.") % {"seconds": seconds(attempt.wait_ms)}
    if attempt.transport_retries:
        tries = attempt.transport_retries + 1
        yield ngettext(
            "The connection took %(number)s try.",
            "The connection took %(number)s tries.",
            tries,
        ) % {"number": number(tries)}


def _beginning(attempt: CallAttempt) -> Iterable[str]:
    if attempt.first_output_ms is not None:
        yield _("It began to answer after %(seconds)s s.") % {
            "seconds": seconds(attempt.first_output_ms)
        }
    elif attempt.first_data_ms is not None:
        yield _("The gateway replied after %(seconds)s s.") % {
            "seconds": seconds(attempt.first_data_ms)
        }


def _ending(attempt: CallAttempt) -> str:
    characters = attempt.characters
    match attempt.ending:
        case Ending.COMPLETED:
            return _completed(characters)
        case Ending.LENGTH:
            return _("It reached its output limit.")
        case Ending.CONTENT_FILTER:
            return _("The provider's content rules ended it.")
        case Ending.BLOCKED:
            return _("The message was blocked.")
        case Ending.EMPTY:
            return _("It finished without any text.")
        case Ending.REFUSED if attempt.condition == Condition.NETWORK:
            return _("The gateway could not be reached.")
        case Ending.REFUSED:
            return _("The gateway refused the request.")
        case _:
            return _cut(attempt.ending, characters)


def _completed(characters: int | None) -> str:
    if not characters:
        return _("It ended as it should.")
    return ngettext(
        "It ended as it should, with %(number)s character.",
        "It ended as it should, with %(number)s characters.",
        characters,
    ) % {"number": number(characters)}


def _cut(ending: str, characters: int | None) -> str:
    if characters is None:
        return {
            Ending.STALLED: _("Then nothing more came."),
            Ending.TRUNCATED: _("Then the connection ended."),
            Ending.FAULTED: _("Then it failed."),
        }.get(Ending(ending), _("Then it was broken off."))
    if not characters:
        return {
            Ending.STALLED: _("No text ever came."),
            Ending.TRUNCATED: _("The connection ended before any text."),
            Ending.FAULTED: _("It failed before any text."),
        }.get(Ending(ending), _("It was broken off before any text."))
    return _cut_after(ending, characters) % {"number": number(characters)}


def _cut_after(ending: str, characters: int) -> str:
    match ending:
        case Ending.STALLED:
            return ngettext(
                "Nothing more came after %(number)s character.",
                "Nothing more came after %(number)s characters.",
                characters,
            )
        case Ending.TRUNCATED:
            return ngettext(
                "The connection ended after %(number)s character.",
                "The connection ended after %(number)s characters.",
                characters,
            )
        case Ending.FAULTED:
            return ngettext(
                "It failed after %(number)s character.",
                "It failed after %(number)s characters.",
                characters,
            )
        case _:
            return ngettext(
                "It was broken off after %(number)s character.",
                "It was broken off after %(number)s characters.",
                characters,
            )


def _withdrawal(attempt: CallAttempt) -> Iterable[str]:
    withdrawn = len(attempt.withdrawn_text)
    if withdrawn:
        yield ngettext(
            "The %(number)s character was withdrawn.",
            "The %(number)s characters were withdrawn.",
            withdrawn,
        ) % {"number": number(withdrawn)}


def _restored(was_put_back: bool) -> Iterable[str]:
    if was_put_back:
        yield _("No newer text came, so this text was put back.")


def _after(attempt: CallAttempt, *, is_followed: bool) -> Iterable[str]:
    """Say what followed an attempt, or why nothing did (requirement D16).

    A try that is waited for has not been made, and never is when the person stops.
    Nothing is said of an answer that was whole, of one that was stopped, and of a
    refusal: nobody asks why those were not tried again. What the client tried by
    itself is told before.
    """
    match attempt.retry_decision:
        case Action.REISSUE | Action.REGENERATE | Action.FALLBACK if not is_followed:
            yield _("It was to be tried again.")
        case Action.REISSUE:
            yield _("It was tried again.")
        case Action.REGENERATE:
            yield _("The answer was started again.")
        case Action.FALLBACK:
            yield _("The route's next model was asked.")
        case decision:
            yield from _why_not(attempt)
            if decision == BY_HAND:
                yield _("Later it was sent again by hand.")


def _why_not(attempt: CallAttempt) -> Iterable[str]:
    match attempt.retry_reason:
        case Reason.TOOL_CALL:
            yield _("It was not tried again, because a tool had been asked for.")
        case Reason.SWITCHED_OFF:
            yield _("It was not tried again, because that is switched off.")
        case Reason.EXHAUSTED:
            yield _("It was not tried again, because all tries were used.")
        case Reason.CUT_KEPT:
            yield _("It was not tried again, because this agent keeps what came.")
        case Reason.WINDOW:
            yield _("It was not tried again, because the time for tries was used up.")
        case Reason.ASKED_TO_WAIT:
            yield _(
                "It was not tried again, because the gateway asked to wait too long."
            )
        case Reason.NOT_TRANSIENT if attempt.ending in UNFINISHED:
            yield _(
                "It was not tried again, because this is not known to pass by itself."
            )
