"""How an answer came about, told from the ledger in plain words (requirement J1).

Unknown is said to be unknown and never shown as zero (G3). The caller has
activated the viewer's language.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from threads.core.events import UsageSource
from threads.core.faults import Ending
from threads.models import CallAttempt, Cell, Round
from threads.models.totals import total
from threads.rendering.figures import counted, dollars, number, seconds, summed
from threads.rendering.telling import story

Fact = tuple[str, str]

HISTORY_UNREADABLE = "history_unreadable"
"""The code of a round that was given up before it had anything to send."""


@dataclass(frozen=True, slots=True)
class Told:
    """One attempt: a title, a line that tells it, and what a report needs.

    `withdrawn` is the text that was shown and taken back, plain as it came.
    """

    title: str
    story: str
    withdrawn: str
    facts: tuple[Fact, ...]
    request_id: str
    code: str
    provider_reason: str


@dataclass(frozen=True, slots=True)
class Account:
    """The attempts of a round; of several, also what they come to together."""

    attempts: tuple[Told, ...]
    totals: tuple[Fact, ...]


def account_of(cell: Cell) -> Account:
    """Tell the attempts of the round that wrote a cell, in order, and their sums."""
    attempts = list(
        CallAttempt.objects.filter(round__answer_cell=cell).order_by("call", "attempt")
    )
    calls = {attempt.call for attempt in attempts}
    recorded = {(attempt.call, attempt.attempt) for attempt in attempts}
    put_back = _put_back(cell, attempts)
    return Account(
        tuple(
            _told(
                attempt,
                several_calls=bool(calls - {1}),
                is_followed=(attempt.call, attempt.attempt + 1) in recorded,
                was_put_back=attempt is put_back,
            )
            for attempt in attempts
        ),
        tuple(_totals(cell, attempts)) if len(attempts) > 1 else (),
    )


def _put_back(cell: Cell, attempts: Sequence[CallAttempt]) -> CallAttempt | None:
    """The attempt whose text was withdrawn, and stands again at the end (E8, X2)."""
    wrote = [attempt for attempt in attempts if attempt.characters]
    if cell.status == Cell.Status.STREAMING or not wrote:
        return None
    withdrawn = wrote[-1].withdrawn_text
    return wrote[-1] if withdrawn and cell.text.endswith(withdrawn) else None


def was_unsent(round_: Round) -> bool:
    """Tell whether it is known that a round without attempts sent nothing.

    An attempt is recorded when it ends: one that died with its process is not.
    What was never taken up, or refused before it was asked, sent nothing.
    """
    return round_.claimed_at is None or (
        round_.ending == Ending.REFUSED or round_.code == HISTORY_UNREADABLE
    )


def _told(
    attempt: CallAttempt,
    *,
    several_calls: bool,
    is_followed: bool,
    was_put_back: bool,
) -> Told:
    if several_calls:
        title = _("Call %(call)d, try %(number)d") % {
            "call": attempt.call,
            "number": attempt.attempt,
        }
    else:
        title = _("Try %(number)d") % {"number": attempt.attempt}
    return Told(
        title,
        story(attempt, is_followed=is_followed, was_put_back=was_put_back),
        attempt.withdrawn_text,
        tuple(_facts(attempt)),
        attempt.request_id,
        attempt.code,
        attempt.provider_reason,
    )


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
    if attempt.cost is not None:
        yield _("Cost"), dollars(attempt.cost)
    if attempt.duration_ms is not None:
        duration = _("%(seconds)s s") % {"seconds": seconds(attempt.duration_ms)}
        yield _("Duration"), duration


def _tokens(attempt: CallAttempt) -> str:
    read, written = attempt.input_tokens, attempt.output_tokens
    if read is None and written is None:
        return _("unknown")
    is_estimated = attempt.usage_source == UsageSource.ESTIMATED
    return _counts(counted(read), counted(written), is_estimated=is_estimated)


def _counts(read: str, written: str, *, is_estimated: bool) -> str:
    values = {"input": read, "output": written}
    if is_estimated:
        return _("%(input)s read, %(output)s written (estimated)") % values
    return _("%(input)s read, %(output)s written") % values


def _totals(cell: Cell, attempts: Sequence[CallAttempt]) -> Iterable[Fact]:
    """Sum several attempts; what is known is said even where a part is not (G3, D18)."""
    yield _("Tokens in all"), _tokens_in_all(attempts)
    cost = total(attempt.cost for attempt in attempts)
    model = cell.round.model
    if cost.known is not None or (model is not None and model.has_price):
        yield _("Cost in all"), summed(cost, dollars)


def _tokens_in_all(attempts: Sequence[CallAttempt]) -> str:
    read = total(attempt.input_tokens for attempt in attempts)
    written = total(attempt.output_tokens for attempt in attempts)
    if read.known is None and written.known is None:
        return _("unknown")
    return _counts(
        summed(read, number),
        summed(written, number),
        is_estimated=any(a.usage_source == UsageSource.ESTIMATED for a in attempts),
    )
