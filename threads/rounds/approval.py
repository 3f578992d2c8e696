"""A person's word on a tool that asks first."""

import json

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from threads.core.answer import clean
from threads.models import Round, ToolRun
from threads.tools.running import unfit_arguments
from threads.tools.toolset import toolset_for


class TooLateError(Exception):
    """The run has been decided on, or its round is over."""


class UnfitError(Exception):
    """The arguments that the person wrote cannot be used; says why."""


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
    word: dict[str, object] = {"state": ToolRun.State.ALLOWED, "arguments": wanted}
    if wanted != run.arguments:
        word["arguments_asked"] = run.arguments
    if not allow:
        word = {"state": ToolRun.State.NOT_RUN, "ended_at": timezone.now()}
    with transaction.atomic():
        round_ = Round.objects.select_for_update().get(pk=run.round_id)
        waiting = ToolRun.objects.filter(pk=run.pk, state=ToolRun.State.WAITING)
        if round_.state not in Round.ACTIVE or not waiting.update(**word):
            raise TooLateError
    return False


def _check(run: ToolRun, wanted: str) -> None:
    try:
        arguments = json.loads(wanted)
    except (ValueError, RecursionError) as error:
        raise UnfitError(str(error)) from error
    tool = toolset_for(run.round.agent).get(run.name)
    problem = "" if tool is None else unfit_arguments(arguments, tool.parameters)
    if problem:
        raise UnfitError(problem)
