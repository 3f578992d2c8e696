"""The home page: threads, a composer that makes a new one, the first steps."""

from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from threads.choices import Choice, offered_choices
from threads.core.answer import clean
from threads.forms import MessageForm
from threads.models import Round, Thread
from threads.rounds import engine
from threads.views.listing import composer, sidebar
from threads.views.sending import open_for

FIRST_PROMPTS = (
    _("Explain how a tide table is made, as if I had only ever seen the sea once."),
    _("Plan three calm evenings of cooking for two, without meat, under an hour each."),
    _("What should I check before I sign a lease for a flat in an old house?"),
)
# In the order in which the promises are best seen.
TOUR = (
    "practice/markdown",
    "practice/reasoning",
    "practice/stall",
    "practice/truncate",
    "practice/cut-once",
    "route:practice-second",
    "practice/error-chunk",
    "practice/tool-then-fault",
    "practice/blocked",
    "practice/slow",
    "practice/rate-limited",
)


def tour() -> dict[str, list[Choice]]:
    """Return the practice models and routes to show first, and the others."""
    offered = {
        choice.model.wire_id if choice.route is None else choice.value: choice
        for choice in offered_choices()
        if choice.model.gateway.is_practice
    }
    return {
        "tour": [offered.pop(wire_id) for wire_id in TOUR if wire_id in offered],
        "tour_more": list(offered.values()),
    }


def begin(request: HttpRequest, form: MessageForm) -> Thread:
    """Make a thread of a message; the same sending finds the thread it made.

    Two of them at once stand in line before the person's own row.
    """
    key = form.cleaned_data["key"]
    owner_id = cast("int", request.user.pk)
    with transaction.atomic():
        User.objects.select_for_update().get(pk=owner_id)
        earlier = Round.objects.filter(
            thread__owner_id=owner_id,
            submission_key=key,
            user_cell__text=clean(form.cleaned_data["prompt"]),
        ).select_related("thread")
        if key and (known := earlier.first()):
            return known.thread
        thread = Thread.objects.create(owner_id=owner_id)
        round_ = open_for(thread, form)
    if round_ is not None:
        engine.set_going(round_.pk)
    return thread


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def home(request: HttpRequest) -> HttpResponse:
    """Show the threads; a posted message begins a new one."""
    form = MessageForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        return redirect("thread", begin(request, form).pk)
    context: dict[str, Any] = {
        **sidebar(request),
        **composer(submitted=request.POST),
        **tour(),
        "form": form,
        "first_prompts": FIRST_PROMPTS,
    }
    return render(
        request, "threads/home.html", context, status=422 if form.errors else 200
    )
