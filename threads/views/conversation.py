"""One thread: reading it, sending to it, stopping an answer."""

from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from threads.core.snapshot import Position
from threads.forms import DecisionForm, MessageForm
from threads.models import Cell, Round, Thread
from threads.rendering import CellView, Shared
from threads.rounds import engine
from threads.rounds.hub import live_view
from threads.rounds.pages import stored_view
from threads.views.listing import composer, sidebar
from threads.views.sending import submit


def own_thread(request: HttpRequest, thread_id: int) -> Thread:
    """Return one of the person's threads; a stranger's does not exist for them.

    Raises:
        Http404: there is no such thread of theirs.
    """
    return get_object_or_404(Thread.objects.of(request.user), pk=thread_id)


def active_round(thread: Thread) -> Round | None:
    """Return the round under way in a thread."""
    return Round.objects.filter(thread=thread, state__in=Round.ACTIVE).first()


def with_views(cells: QuerySet[Cell]) -> dict[str, Any]:
    """Return the context of cells of one thread: each with what a page shows of it."""
    rows = list(
        cells.select_related("round__model", "round__route").prefetch_related(
            "round__route__steps__model"
        )
    )
    shared = Shared(rows)
    return {
        "cells": [
            (cell, shown(cell, shared), shared.versions.get(cell.pk)) for cell in rows
        ],
        "tools": shared.tools,
    }


def shown(cell: Cell, shared: Shared) -> CellView:
    """Show a cell as it stands: what is being written here, else the database's."""
    is_streaming = cell.status == Cell.Status.STREAMING
    live = live_view(cell.pk) if is_streaming else None
    return live or stored_view(cell, shared)


def page(
    request: HttpRequest,
    thread: Thread,
    form: forms.Form | None = None,
    decision: DecisionForm | None = None,
) -> HttpResponse:
    """Render a thread's page, with what was refused if something was.

    `form` was sent from the composer, or is spoken of there, `decision` from a card.
    """
    context = {
        **sidebar(request, current=thread),
        **composer(thread, submitted=request.POST),
        "thread": thread,
        "form": form,
        "decision": decision,
        **with_views(thread.cells.shown()),
        "active_round": active_round(thread),
    }
    status = 422 if form or decision else 200
    return render(request, "threads/thread.html", context, status=status)


@login_required
@require_safe
def thread(request: HttpRequest, thread_id: int) -> HttpResponse:
    """Show a thread."""
    return page(request, own_thread(request, thread_id))


@login_required
@require_http_methods(["GET", "POST"])
def send(request: HttpRequest, thread_id: int) -> HttpResponse:
    """Take a message and begin the round that answers it.

    The script gets the new cells, to be put in place whether or not the socket
    has brought them; a page without script is sent back to the thread.
    """
    target = own_thread(request, thread_id)
    if request.method == "GET":
        # Signing in again, after a session ended, leads here.
        return redirect("thread", target.pk)
    form = MessageForm(request.POST)
    round_ = submit(target, form) if form.is_valid() else None
    is_script = bool(getattr(request, "htmx", False))
    if round_ is None:
        if is_script:
            return render(request, "threads/_refused.html", {"form": form}, status=422)
        return page(request, target, form)
    cells = [round_.user_cell_id, round_.answer_cell_id]
    return put_in_place(request, target, cells, anchor=round_.user_cell_id)


def put_in_place(
    request: HttpRequest, thread: Thread, cells: list[int], *, anchor: int | None = None
) -> HttpResponse:
    """Give the script cells to put in their places; else go to one, the last."""
    if not getattr(request, "htmx", False):
        address = reverse("thread", args=[thread.pk])
        return redirect(f"{address}#cell-{anchor or cells[-1]}")
    context = {
        "thread": thread,
        **with_views(thread.cells.shown().filter(pk__in=cells)),
        "active_round": active_round(thread),
    }
    return render(request, "threads/_sent.html", context)


@login_required
@require_POST
def stop(request: HttpRequest, thread_id: int) -> HttpResponse:
    """Stop the answer under way; what this page had shown of it is kept."""
    target = own_thread(request, thread_id)
    under_way = active_round(target)
    if under_way is not None:
        async_to_sync(engine.stop)(under_way.pk, seen=position(request))
    if getattr(request, "htmx", False):
        return HttpResponse(status=204)
    return redirect("thread", target.pk)


def position(request: HttpRequest) -> Position | None:
    """Read how far the page had shown the answer; None when it does not say."""
    generation, offset = (
        request.POST.get("generation", ""),
        request.POST.get("offset", ""),
    )
    if not (generation.isdecimal() and offset.isdecimal()):
        return None
    if max(len(generation), len(offset)) > 9:
        return None
    return Position(int(generation), int(offset))


@login_required
@require_safe
def cell_text(request: HttpRequest, thread_id: int, cell_id: int) -> HttpResponse:
    """Return a cell's text as it was written, for copying."""
    target = own_thread(request, thread_id)
    cell = get_object_or_404(target.cells, pk=cell_id)
    return HttpResponse(cell.text, content_type="text/plain; charset=utf-8")
