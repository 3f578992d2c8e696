"""From a posted message to a round that runs."""

from asgiref.sync import async_to_sync
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from threads.choices import Choice, default_choice, remember, remembered
from threads.forms import MessageForm
from threads.models import Round, Thread, ToolRun
from threads.rounds import engine, ledger


def submit(thread: Thread, form: MessageForm) -> Round | None:
    """Open a round for a valid form and set it going.

    Returns None, with the reason among the form's errors, while another round of
    the thread is under way.
    """
    round_ = open_for(thread, form)
    if round_ is None:
        # Should the worker of that other round be gone, it is ended now.
        async_to_sync(engine.keep_house)()
    else:
        engine.set_going(round_.pk)
    return round_


def in_the_way(thread: Thread) -> str:
    """Say what stands in the way of a message: an answer, or a question in it."""
    waiting = ToolRun.objects.filter(state=ToolRun.State.WAITING)
    if waiting.filter(round__thread=thread, round__state__in=Round.ACTIVE).exists():
        return _(
            "The model waits for your decision on a tool. Your message is kept; send "
            "it then."
        )
    return _("The model is still answering. Your message is kept; send it then.")


def open_for(thread: Thread, form: MessageForm) -> Round | None:
    """Write the round of a valid form; None, with an error, if the thread is busy.

    The thread remembers what was chosen.
    """
    choice: Choice | None = (
        form.cleaned_data["model"] or remembered(thread) or default_choice()
    )
    try:
        round_ = ledger.open_round(
            thread=thread,
            prompt=form.cleaned_data["prompt"],
            model=choice.model if choice else None,
            model_requested=choice.model.wire_id if choice else "",
            route=choice.route if choice else None,
            locale=get_language() or "en",
            attended=True,
            agent=thread.agent,
            submission_key=form.cleaned_data["key"] or None,
        )
    except ledger.ThreadBusyError:
        form.add_error("prompt", in_the_way(thread))
        return None
    if choice is not None:
        remember(thread, choice)
    return round_
