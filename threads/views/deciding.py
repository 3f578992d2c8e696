"""A person's word on a tool that waits for it, given in the answer itself."""

from typing import cast

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from threads.forms import DecisionForm
from threads.models import Thread, ToolRun
from threads.rendering import ToolsOf
from threads.rounds import approval, broadcast, engine, ledger
from threads.views.again import get_or_post
from threads.views.conversation import own_thread, page


@login_required
@get_or_post
def decide(request: HttpRequest, thread_id: int, run_id: int) -> HttpResponse:
    """Allow a tool to run, perhaps with other arguments, or refuse it.

    The script gets the cards of the call as they stand now; a page without script
    is sent back to them. What was written is never lost: it comes back with what is
    wrong with it.
    """
    target = own_thread(request, thread_id)
    runs = ToolRun.objects.select_related("round__answer_cell", "round__agent")
    run = get_object_or_404(runs, pk=run_id, round__thread=target)
    if request.method != "POST":
        # Signing in again, after a session ended, leads here.
        return _back(target, run)
    form = DecisionForm(run, request.POST)
    if form.is_valid():
        _take(form, by=cast("User", request.user))
    if getattr(request, "htmx", False):
        return _cards(request, form)
    return page(request, target, decision=form) if form.errors else _back(target, run)


def _take(form: DecisionForm, *, by: User) -> None:
    """Write the decision, or the reason why it cannot be taken into the form."""
    run = form.run
    try:
        goes_on = approval.decide(run, by=by, allow=form.allows, arguments=form.changed)
    except approval.UnfitError as error:
        words = _("The arguments do not fit this tool: %(problem)s")
        # In whatever direction the page runs: the problem is told in English.
        isolated = f"\N{LEFT-TO-RIGHT ISOLATE}{error}\N{POP DIRECTIONAL ISOLATE}"
        form.add_error("arguments", words % {"problem": isolated})
        return
    except approval.TooLateError:
        form.add_error(None, _("This has been decided already, or the answer is over."))
        return
    if goes_on:
        engine.set_going(run.round_id)
    place = ledger.place_of(run.round_id)
    if place is not None:
        async_to_sync(broadcast.tools_changed)(place, run.call)
        async_to_sync(broadcast.thread_changed)(place.thread_id, place.owner_id)


def _cards(request: HttpRequest, form: DecisionForm) -> HttpResponse:
    cell, call = form.run.round.answer_cell, form.run.call
    context = {"cell": cell, "call": call, "tools": ToolsOf([cell]), "decision": form}
    status = 422 if form.errors else 200
    return render(request, "threads/_tools.html", context, status=status)


def _back(thread: Thread, run: ToolRun) -> HttpResponse:
    return redirect(f"{reverse('thread', args=[thread.pk])}#tool-{run.pk}")
