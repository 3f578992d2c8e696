"""A person's word on a tool that asks first."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from threads.core.answer import clean
from threads.models import Round, ToolRun
from threads.rounds.exchanges import DECLINED
from threads.tools.arguments import UnfitError, arguments_of, unfit_arguments
from threads.tools.toolset import toolset_for

__all__ = ["TooLateError", "UnfitError", "decide"]


class TooLateError(Exception):
    """The run has been decided on, or its round is over."""


def decide(
    run: ToolRun, *, by: User, allow: bool, arguments: str | None = None
) -> bool:
    """Let a waiting run be run, or not; True when its round is to be set going.

    `arguments` are what the person made of the model's own, None for those as they
    are. Whoever calls checks that `by` owns the thread.

    Raises:
        UnfitError: the arguments are no JSON object, or do not fit the tool.
        TooLateError: there is nothing to decide any more.
    """
    wanted = run.arguments if arguments is None else clean(arguments).strip()
    if allow and wanted != run.arguments:
        _check(run, wanted)
    with transaction.atomic():
        round_ = Round.objects.select_for_update().get(pk=run.round_id)
        waiting = ToolRun.objects.filter(pk=run.pk, state=ToolRun.State.WAITING)
        if round_.state not in Round.ACTIVE or round_.stop_requested_at is not None:
            raise TooLateError
        if not waiting.update(**_word(run, wanted, by, allow=allow)):
            raise TooLateError
        asking = Round.objects.filter(pk=run.round_id, state=Round.State.ASKING)
        now = timezone.now()
        return bool(asking.update(state=Round.State.QUEUED, queued_at=now))


def _word(run: ToolRun, wanted: str, by: User, *, allow: bool) -> dict[str, object]:
    if not allow:
        return {
            "state": ToolRun.State.NOT_RUN,
            "result": DECLINED,
            "decided_by": by,
            "ended_at": timezone.now(),
        }
    changed = wanted != run.arguments
    return {
        "state": ToolRun.State.ALLOWED,
        "arguments": wanted,
        "arguments_asked": run.arguments if changed else "",
        "decided_by": by,
    }


def _check(run: ToolRun, wanted: str) -> None:
    """Refuse arguments that the tool would refuse."""
    agent = Round.objects.select_related("agent").get(pk=run.round_id).agent
    tool = toolset_for(agent).get(run.name)
    arguments = arguments_of(wanted)
    problem = "" if tool is None else unfit_arguments(arguments, tool.parameters)
    if problem:
        raise UnfitError(problem)
