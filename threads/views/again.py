"""What a person can do about an answer: ask again, change the question, look back.

Each works from the thread's page by the script and, without it, by a page of its
own; what cannot be done is said where the person is looking.
"""

from typing import Any, cast

from asgiref.sync import async_to_sync
from django import forms
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from threads.choices import Choice, value_of
from threads.forms import AgainForm, ChangeForm
from threads.models import Cell, Round, Thread, ToolRun
from threads.rendering.details import account_of, was_unsent
from threads.rounds import broadcast, engine, resubmit, versions
from threads.rounds.opening import ThreadBusyError
from threads.views.conversation import own_thread, page, put_in_place
from threads.views.listing import composer, sidebar

get_or_post = require_http_methods(["GET", "HEAD", "POST"])


def answers_of(thread: Thread) -> QuerySet[Cell]:
    """The answers of a thread, each with the round that wrote it."""
    return thread.cells.filter(
        role=Cell.Role.ASSISTANT, round__isnull=False
    ).select_related("question", "round__model", "round__route")


def ask_again(
    request: HttpRequest, answer: Cell, form: AgainForm, text: str | None = None
) -> Round | None:
    """Resubmit and set the new round going; None, with the reason in the form.

    Raises:
        Http404: the thread has been deleted meanwhile.
    """
    choice: Choice | None = form.cleaned_data["model"]
    try:
        round_ = resubmit.resubmit(
            answer,
            by=cast("User", request.user),
            locale=get_language() or "en",
            attended=True,
            model=choice.model if choice else None,
            route=choice.route if choice else None,
            text=text,
            submission_key=form.cleaned_data["key"] or None,
            confirmed=form.cleaned_data["confirmed"],
        )
    except ThreadBusyError:
        form.add_error(None, busy())
        # Should the worker of that other round be gone, it is ended now.
        async_to_sync(engine.keep_house)()
    except resubmit.ReplacedError:
        form.add_error(
            None, _("This answer has been replaced already. Reload the page.")
        )
    except resubmit.NotLastError:
        form.add_error(None, _("This can be done only at the end of a thread."))
    except resubmit.ModelNotOfferedError:
        form.add_error(
            None, _("This model is not offered any more. Choose another one.")
        )
    except resubmit.EffectsError as error:
        runs = ToolRun.objects.filter(round__answer_cell=answer)
        form.tools = error.tools
        form.unknown = ToolRun.unknown_names(runs.order_by("call", "position"))
    except Thread.DoesNotExist as error:
        raise Http404 from error
    else:
        engine.set_going(round_.pk)
        return round_
    return None


def busy() -> str:
    """Say that the thread is being answered."""
    return _("The model is still answering. Try again when it is done.")


@login_required
@get_or_post
def again(request: HttpRequest, thread_id: int, cell_id: int) -> HttpResponse:
    """Ask for an answer again, perhaps of another model."""
    target = own_thread(request, thread_id)
    answer = get_object_or_404(answers_of(target), pk=cell_id)
    form = AgainForm(request.POST if request.method == "POST" else None)
    round_ = ask_again(request, answer, form) if form.is_valid() else None
    if round_ is not None:
        return put_in_place(request, target, [round_.answer_cell_id])
    return refused(request, answer, form, said_in=f"cell-{answer.pk}-said")


@login_required
@get_or_post
def change(request: HttpRequest, thread_id: int, cell_id: int) -> HttpResponse:
    """Change the last message and send it again."""
    target = own_thread(request, thread_id)
    questions = target.cells.filter(role=Cell.Role.USER)
    question = get_object_or_404(questions, pk=cell_id)
    answers = answers_of(target).filter(question=question)
    answer = answers.order_by("-is_current", "-version").first()
    if answer is None:
        raise Http404
    form = ChangeForm(request.POST if request.method == "POST" else None)
    round_ = (
        ask_again(request, answer, form, text=form.cleaned_data["prompt"])
        if form.is_valid()
        else None
    )
    if round_ is not None:
        cells = [round_.user_cell_id, round_.answer_cell_id]
        return put_in_place(request, target, cells)
    return refused(request, answer, form, said_in="change-said")


def refused(
    request: HttpRequest, answer: Cell, form: AgainForm, *, said_in: str
) -> HttpResponse:
    """Say what stands in the way, or show the page of its own for this."""
    context: dict[str, Any] = {
        "form": form,
        "answer": answer,
        "is_change": isinstance(form, ChangeForm),
        "said_in": said_in,
    }
    status = 422 if form.is_bound else 200
    if getattr(request, "htmx", False):
        return render(request, "threads/_said.html", context, status=status)
    question = cast("Cell", answer.question)
    models = composer(answer.thread)
    context |= {
        **sidebar(request, current=answer.thread),
        **models,
        "prompt": form.data.get("prompt", question.text),
        "chosen": _chosen(models["models"], form, answer) or models["chosen"],
        "thread": answer.thread,
        "question": question,
    }
    return render(request, "threads/again.html", context, status=status)


def _chosen(choices: list[Choice], form: AgainForm, answer: Cell) -> Choice | None:
    """The one to begin with: what was just chosen, else what was asked."""
    asked = value_of(answer.round.model_id, answer.round.route)
    wanted = form.data.get("model") or asked
    return next((choice for choice in choices if choice.value == wanted), None)


@login_required
@get_or_post
def choose(request: HttpRequest, thread_id: int, cell_id: int) -> HttpResponse:
    """Show another version in its place, and let it count for what follows."""
    target = own_thread(request, thread_id)
    cell = get_object_or_404(target.cells, pk=cell_id)
    if request.method != "POST":
        # Signing in again, after a session ended, leads here.
        return redirect("thread", target.pk)
    try:
        fresh = versions.choose(cell)
    except versions.NotAVersionError as error:
        raise Http404 from error
    except ThreadBusyError:
        form = forms.Form({})
        form.add_error(None, busy())
        # As above: nobody but us may be left to end that round.
        async_to_sync(engine.keep_house)()
        return _not_chosen(request, target, form)
    if fresh:
        async_to_sync(broadcast.cells_changed)(target.pk, target.owner_id, fresh)
    # A page that shows another version as the current one was away: it gets both.
    stands = fresh or pair(target, cell)
    return put_in_place(request, target, stands, anchor=cell.pk)


def pair(thread: Thread, cell: Cell) -> list[int]:
    """Return the ids of a question and its answer, as the thread reads now."""
    question = cell.question_id or cell.pk
    both = thread.cells.shown().filter(Q(pk=question) | Q(question=question))
    return list(both.values_list("pk", flat=True))


def _not_chosen(request: HttpRequest, thread: Thread, form: forms.Form) -> HttpResponse:
    if getattr(request, "htmx", False):
        return render(request, "threads/_refused.html", {"form": form}, status=422)
    return page(request, thread, form)


@login_required
@require_safe
def details(request: HttpRequest, thread_id: int, cell_id: int) -> HttpResponse:
    """Tell from the ledger how an answer came about."""
    target = own_thread(request, thread_id)
    cell = get_object_or_404(answers_of(target), pk=cell_id)
    context: dict[str, Any] = {
        "cell": cell,
        "account": account_of(cell),
        "was_unsent": was_unsent(cell.round),
    }
    if getattr(request, "htmx", False):
        return render(request, "threads/_details.html", context)
    context |= {
        **sidebar(request, current=target),
        "thread": target,
    }
    return render(request, "threads/details.html", context)
