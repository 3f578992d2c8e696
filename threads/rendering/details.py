"""How an answer came about, told from the ledger in plain words (requirement J1).

Unknown is said to be unknown and never shown as zero (G3). The caller has
activated the viewer's language.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.formats import number_format
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from threads.core.events import UsageSource
from threads.core.faults import Condition, Ending
from threads.models import CallAttempt, Cell, Round, ToolRun

Fact = tuple[str, str]

HISTORY_UNREADABLE = "history_unreadable"
"""The code of a round that was given up before it had anything to send."""

SPACELESS = frozenset({"ja", "zh-hans"})
"""Languages that put no space between two sentences."""


@dataclass(frozen=True, slots=True)
class Told:
    """One attempt: a title, a line that tells it, and what a report needs."""

    title: str
    story: str
    facts: tuple[Fact, ...]
    request_id: str
    code: str
    provider_reason: str


@dataclass(frozen=True, slots=True)
class ToolTold:
    """One tool run: its name, and what became of it."""

    name: str
    became: str
    has_effects: bool


def attempts_of(cell: Cell) -> list[Told]:
    """Tell the attempts of the round that wrote a cell, in order."""
    attempts = list(
        CallAttempt.objects.filter(round__answer_cell=cell).order_by("call", "attempt")
    )
    several_calls = any(attempt.call > 1 for attempt in attempts)
    last = attempts[-1] if attempts else None
    return [
        _told(
            attempt,
            several_calls=several_calls,
            # What a call wrote is counted only where no other call wrote too.
            kept=len(cell.text) if attempt is last and not several_calls else None,
        )
        for attempt in attempts
    ]


def was_unsent(round_: Round) -> bool:
    """Tell whether it is known that a round without attempts sent nothing.

    An attempt is recorded when it ends: one that died with its process is not.
    What was never taken up, or refused before it was asked, sent nothing.
    """
    return round_.claimed_at is None or (
        round_.ending == Ending.REFUSED or round_.code == HISTORY_UNREADABLE
    )


def tools_of(cell: Cell) -> list[ToolTold]:
    """Tell the tool runs of the round that wrote a cell, in order."""
    runs = ToolRun.objects.filter(round__answer_cell=cell)
    return [
        ToolTold(
            run.name,
            _("may or may not have finished")
            if run.state == ToolRun.State.UNKNOWN
            else run.get_state_display(),
            run.has_effects,
        )
        for run in runs.order_by("call", "position")
    ]


def _told(attempt: CallAttempt, *, several_calls: bool, kept: int | None) -> Told:
    if several_calls:
        title = _("Call %(call)d, try %(number)d") % {
            "call": attempt.call,
            "number": attempt.attempt,
        }
    else:
        title = _("Try %(number)d") % {"number": attempt.attempt}
    characters = _characters(attempt, kept)
    story = (
        *_before(attempt),
        *_beginning(attempt),
        _ending(attempt, characters),
        *_withdrawal(attempt),
    )
    return Told(
        title,
        ("" if get_language() in SPACELESS else " ").join(story),
        tuple(_facts(attempt)),
        attempt.request_id,
        attempt.code,
        attempt.provider_reason,
    )


def _characters(attempt: CallAttempt, kept: int | None) -> int | None:
    """How many characters came; None when that is not known."""
    if attempt.withdrawn_text:
        return len(attempt.withdrawn_text)
    return kept if attempt.output_committed else 0


def _seconds(milliseconds: int) -> str:
    digits = 1 if milliseconds >= 1000 else 2
    return number_format(milliseconds / 1000, digits, force_grouping=True)


def _number(number: int) -> str:
    return number_format(number, force_grouping=True)


def _before(attempt: CallAttempt) -> Iterable[str]:
    if attempt.wait_ms:
        yield _("Waited %(seconds)s s first.") % {"seconds": _seconds(attempt.wait_ms)}
    if attempt.transport_retries:
        tries = attempt.transport_retries + 1
        yield ngettext(
            "The connection took %(number)s try.",
            "The connection took %(number)s tries.",
            tries,
        ) % {"number": _number(tries)}


def _beginning(attempt: CallAttempt) -> Iterable[str]:
    if attempt.first_output_ms is not None:
        yield _("It began to answer after %(seconds)s s.") % {
            "seconds": _seconds(attempt.first_output_ms)
        }
    elif attempt.first_data_ms is not None:
        yield _("The gateway replied after %(seconds)s s.") % {
            "seconds": _seconds(attempt.first_data_ms)
        }


def _ending(attempt: CallAttempt, characters: int | None) -> str:
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
    ) % {"number": _number(characters)}


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
    return _cut_after(ending, characters) % {"number": _number(characters)}


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
        ) % {"number": _number(withdrawn)}


def _facts(attempt: CallAttempt) -> Iterable[Fact]:
    unknown = _("unknown")
    yield _("Model asked"), attempt.model_requested or unknown
    yield _("Model that answered"), attempt.model_served or unknown
    if attempt.host:
        yield _("Gateway"), attempt.host
    yield _("Provider"), attempt.provider or unknown
    if attempt.http_status is not None:
        yield _("HTTP status"), str(attempt.http_status)
    yield _("Tokens"), _tokens(attempt)
    if attempt.duration_ms is not None:
        duration = _("%(seconds)s s") % {"seconds": _seconds(attempt.duration_ms)}
        yield _("Duration"), duration


def _tokens(attempt: CallAttempt) -> str:
    unknown = _("unknown")
    read, written = attempt.input_tokens, attempt.output_tokens
    if read is None and written is None:
        return unknown
    values = {
        "input": unknown if read is None else _number(read),
        "output": unknown if written is None else _number(written),
    }
    if attempt.usage_source == UsageSource.ESTIMATED:
        return _("%(input)s read, %(output)s written (estimated)") % values
    return _("%(input)s read, %(output)s written") % values
