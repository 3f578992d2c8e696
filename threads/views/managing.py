"""Renaming threads, deleting them, and taking that back."""

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from threads.forms import TitleForm
from threads.models import Thread
from threads.rendering.cells import with_states
from threads.rounds import broadcast, engine
from threads.views.conversation import active_round, own_thread
from threads.views.listing import UNDO_KEY


def tell_changed(thread: Thread) -> None:
    """Let the person's other pages show a thread's row as it reads now."""
    async_to_sync(broadcast.thread_changed)(thread.pk, thread.owner_id)


@login_required
@require_POST
def rename(request: HttpRequest, thread_id: int) -> HttpResponse:
    """Give a thread another title; an empty one is refused by keeping the old."""
    thread = own_thread(request, thread_id)
    form = TitleForm(request.POST, instance=thread)
    if form.is_valid() and form.cleaned_data["title"]:
        form.save()
        tell_changed(thread)
    else:
        thread.refresh_from_db()
    if getattr(request, "htmx", False):
        row = with_states(Thread.objects.filter(pk=thread.pk)).get()
        context = {"row": row, "current": row, "swap": "outerHTML"}
        return render(request, "threads/_thread_row.html", context)
    return redirect("thread", thread.pk)


@login_required
@require_POST
def delete(request: HttpRequest, thread_id: int) -> HttpResponse:
    """Take a thread off the list; it can be brought back from the next page.

    An answer under way is stopped: nobody could do it later.
    """
    thread = own_thread(request, thread_id)
    under_way = active_round(thread)
    if under_way is not None:
        async_to_sync(engine.stop)(under_way.pk)
    Thread.objects.filter(pk=thread.pk, deleted_at=None).update(
        deleted_at=timezone.now()
    )
    request.session[UNDO_KEY] = thread.pk
    return redirect("home")


@login_required
@require_POST
def restore(request: HttpRequest, thread_id: int) -> HttpResponse:
    """Bring a deleted thread back."""
    own = Thread.objects.filter(owner_id=request.user.pk)
    thread = get_object_or_404(own, pk=thread_id)
    own.filter(pk=thread.pk).update(deleted_at=None)
    tell_changed(thread)
    request.session.pop(UNDO_KEY, None)
    return redirect("thread", thread.pk)


@login_required
@require_POST
def dismiss_undo(request: HttpRequest) -> HttpResponse:
    """Put the undo bar away."""
    request.session.pop(UNDO_KEY, None)
    if getattr(request, "htmx", False):
        return HttpResponse(status=204)
    return redirect("home")
