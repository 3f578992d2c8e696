"""Asking again: the one function behind every button that answers a question anew.

The page, the operator's desk and scripts call it alike (requirement F12). The new
round hears what stands before the question, and nothing of what the old answer
did; the old answer stays as an earlier version.
"""

import logging
from typing import TYPE_CHECKING

from django.db.models import Q, Subquery

from threads.choices import Choice, remember
from threads.core.answer import clean
from threads.endpoints import default_gateway, endpoint_of, is_offered, models_of
from threads.models import (
    CallAttempt,
    Cell,
    LanguageModel,
    Round,
    Route,
    Thread,
    ToolRun,
)
from threads.rounds.opening import Terms, add_answer, add_question, open_once

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

logger = logging.getLogger(__name__)


class ResubmitError(Exception):
    """An answer cannot be asked for again. What stands is left as it was.

    ReplacedError         another version has taken its place
    NotLastError          only the last exchange can be changed in that way
    EffectsError          it ran tools that changed something
    ModelNotOfferedError  its model may not be asked any more
    NotTheirsError        who asks is neither the owner nor an operator
    """


class ReplacedError(ResubmitError):
    """Another version of this answer is the current one."""

    def __init__(self, current_id: int | None) -> None:
        super().__init__(f"cell {current_id} has taken its place")
        self.current_id = current_id


class NotLastError(ResubmitError):
    """What follows was said because of it, and would hang in the air."""


class EffectsError(ResubmitError):
    """Tools changed something outside and may do so again (requirement F6)."""

    def __init__(self, tools: tuple[str, ...]) -> None:
        super().__init__("tools with effects ran")
        self.tools = tools


class ModelNotOfferedError(ResubmitError):
    """The model is switched off, or its gateway is not in force."""


class NotTheirsError(ResubmitError):
    """A thread is its owner's, and an operator's to repair."""


def resubmit(
    answer: Cell,
    *,
    by: "AbstractUser | None",
    locale: str,
    attended: bool,
    model: LanguageModel | None = None,
    route: Route | None = None,
    text: str | None = None,
    submission_key: str | None = None,
    confirmed: bool = False,
) -> Round:
    """Open a round that answers the question of `answer` once more.

    Without a `model` or `route` what was asked is asked again, a route from its
    beginning; a chosen one is remembered by the thread. A `text` other than the question's makes a new version
    of the question. `by` is who asks, None for the site itself. `confirmed` says
    that tools with effects may run again. Whoever calls sets the round going.

    Several calls with one submission key open one round; of several without, one.

    Raises:
        ThreadBusyError: the thread is being answered.
        ResubmitError: see there; nothing is changed.
        Thread.DoesNotExist: the thread has been deleted.
        Round.DoesNotExist: no round wrote this answer.
    """
    earlier = Round.objects.select_related(
        "thread", "agent", "model__gateway", "route"
    ).get(answer_cell=answer)
    thread = earlier.thread
    if by is not None and by.pk != thread.owner_id and not by.is_staff:
        raise NotTheirsError
    chosen, along = _chosen(earlier, model, route)
    question = earlier.user_cell
    prompt = question.text if text is None else clean(text)

    def write_cells() -> tuple[Cell, Cell]:
        _check(earlier, changes=prompt != question.text, confirmed=confirmed)
        if prompt == question.text:
            _mark_sent_by_hand(earlier)
        if chosen is not None and (model is not None or route is not None):
            remember(thread, Choice(chosen, along))
        return _replace(question, prompt)

    round_ = open_once(
        thread,
        Terms(
            model=chosen,
            model_requested=chosen.wire_id if chosen else earlier.model_requested,
            locale=locale,
            attended=attended,
            agent=earlier.agent,
            submission_key=submission_key,
            resubmitted_from=earlier,
            route=along,
        ),
        # The model of a route changes while it is asked.
        same=Q(resubmitted_from=earlier, user_cell__text=prompt, route=along)
        & (Q(model=chosen) if along is None else Q()),
        write_cells=write_cells,
    )
    logger.info(
        "RESUBMITTED round=%s from=%s by=%s",
        round_.pk,
        earlier.pk,
        by.pk if by else "-",
    )
    return round_


def _chosen(
    earlier: Round, model: LanguageModel | None, route: Route | None
) -> tuple[LanguageModel | None, Route | None]:
    """Return the model that is asked, of a route the first, and the route.

    Raises:
        ModelNotOfferedError: there is none, or it may not be asked any more.
    """
    along = route or (earlier.route if model is None else None)
    if along is not None:
        models = models_of(along)
        if not models:
            raise ModelNotOfferedError
        return models[0], along
    chosen = model or earlier.model
    if not (_is_asked_where_it_was(earlier) if chosen is None else is_offered(chosen)):
        raise ModelNotOfferedError
    return chosen, None


def _is_asked_where_it_was(earlier: Round) -> bool:
    """A model that the catalogue does not list is asked of the default gateway.

    Its row may have been deleted: what was said to one gateway is not sent to
    another because of that.
    """
    gateway, attempt = default_gateway(), earlier.attempts.order_by("-pk").first()
    if attempt is None or gateway is None or gateway.is_practice:
        return True
    endpoint = endpoint_of(None)
    return endpoint is None or endpoint.host == attempt.host


def _check(earlier: Round, *, changes: bool, confirmed: bool) -> None:
    """Refuse what cannot be; runs under the thread's lock."""
    if not Thread.objects.filter(pk=earlier.thread_id, deleted_at=None).exists():
        raise Thread.DoesNotExist
    answer = Cell.objects.get(pk=earlier.answer_cell_id)
    cells = Cell.objects.filter(thread_id=earlier.thread_id)
    if not answer.is_current:
        current = cells.shown().filter(position=answer.position).first()
        raise ReplacedError(current.pk if current else None)
    is_last = not cells.filter(position__gt=answer.position).exists()
    if not is_last and (changes or answer.status == Cell.Status.DONE):
        raise NotLastError
    tools = _tools_with_effects(earlier)
    if tools and not confirmed:
        raise EffectsError(tools)


def _tools_with_effects(round_: Round) -> tuple[str, ...]:
    """The tools that changed something, or may have, each named once."""
    states = [ToolRun.State.OK, ToolRun.State.ERROR, ToolRun.State.UNKNOWN]
    runs = round_.tool_runs.filter(has_effects=True, state__in=states)
    names = runs.order_by("call", "position").values_list("name", flat=True)
    return tuple(dict.fromkeys(names))


def _mark_sent_by_hand(earlier: Round) -> None:
    """Record what followed the last attempt, where nothing of ours did (D1, D16)."""
    last = earlier.attempts.order_by("-call", "-attempt").values("pk")[:1]
    CallAttempt.objects.filter(pk=Subquery(last), retry_decision="none").update(
        retry_decision="manual"
    )


def _replace(question: Cell, prompt: str) -> tuple[Cell, Cell]:
    """Put a new answer, and a new question if it reads differently, in place."""
    Cell.objects.filter(question=question, is_current=True).update(is_current=False)
    if prompt != question.text:
        Cell.objects.filter(pk=question.pk).update(is_current=False)
        question = add_question(question.thread, question.position, prompt)
    return question, add_answer(question)
