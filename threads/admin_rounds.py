"""The operator's desk for rounds: how they ended, and to send unattended ones again."""

from typing import cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from threads.models import Round, Thread
from threads.rounds import engine, resubmit
from threads.rounds.opening import ThreadBusyError


class LedgerAdmin(admin.ModelAdmin[Model]):
    """Rows to read: nobody adds, changes or deletes them here."""

    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: rounds write the ledger."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        """Refuse: a record stays what it was."""
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        """Refuse: a record stays."""
        return False


@admin.register(Round)
class RoundAdmin(LedgerAdmin):
    """Rounds with how they ended."""

    list_display = (
        *("__str__", "thread", "model_requested", "model_served"),
        *("ending", "code", "attended", "created_at", "ended_at"),
    )
    list_filter = ("state", "ending", "attended")
    list_select_related = ("thread",)
    ordering = ("-pk",)
    actions = ("send_again",)

    def has_send_again_permission(self, request: HttpRequest) -> bool:
        """Those may send rounds again who may change rounds."""
        return cast(User, request.user).has_perm("threads.change_round")

    @admin.action(
        description=_("Send again: unattended rounds that ended early"),
        permissions=["send_again"],
    )
    def send_again(
        self, request: HttpRequest, rows: QuerySet[Round]
    ) -> HttpResponse | None:
        """Ask again; where tools had effects, only after a second word (F6, J3)."""
        failed = rows.filter(attended=False, state=Round.State.ERROR)
        by, confirmed = cast(User, request.user), "confirmed" in request.POST
        sent, to_confirm = 0, list[tuple[Round, str]]()
        others = rows.count()
        for round_ in failed.select_related("answer_cell", "thread").order_by("pk"):
            others -= 1
            try:
                engine.set_going(again(round_, by, confirmed=confirmed).pk)
                sent += 1
            except resubmit.EffectsError as error:
                to_confirm.append((round_, ", ".join(error.tools)))
            except REFUSED as error:
                self.message_user(request, why_not(round_, error), messages.WARNING)
        self._tell(request, sent, others)
        if not to_confirm:
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": _("Tools have changed something"),
            "opts": self.model._meta,
            "rounds": to_confirm,
        }
        return TemplateResponse(request, "admin/threads/round/send_again.html", context)

    def _tell(self, request: HttpRequest, sent: int, others: int) -> None:
        """Say what was sent, and what is not sent from here."""
        if sent:
            words = ngettext(
                "%(count)d round was sent again.",
                "%(count)d rounds were sent again.",
                sent,
            )
            self.message_user(request, words % {"count": sent})
        if others:
            words = ngettext(
                "%(count)d round was left alone: it had a person, or did not end early.",
                "%(count)d rounds were left alone: they had a person, or did not end "
                "early.",
                others,
            )
            self.message_user(request, words % {"count": others}, messages.WARNING)


REFUSED = (resubmit.ResubmitError, ThreadBusyError, Thread.DoesNotExist)
"""Why a round is not sent again, apart from tools that had effects."""


def again(round_: Round, by: User, *, confirmed: bool) -> Round:
    """Open the round that asks an unattended one again, in its own language.

    Raises:
        ResubmitError: see there; also ThreadBusyError and Thread.DoesNotExist.
    """
    return resubmit.resubmit(
        round_.answer_cell,
        by=by,
        locale=round_.locale,
        attended=False,
        confirmed=confirmed,
    )


def why_not(round_: Round, error: Exception) -> str:
    """Say why a round was not sent again."""
    match error:
        case ThreadBusyError():
            words = _("Round %(round)s was not sent: its thread is being answered.")
        case resubmit.ReplacedError():
            words = _("Round %(round)s was not sent: it has been sent again already.")
        case resubmit.ModelNotOfferedError():
            words = _(
                "Round %(round)s was not sent: its model is not offered any more."
            )
        case Thread.DoesNotExist():
            words = _("Round %(round)s was not sent: its thread has been deleted.")
        case _other:
            words = _("Round %(round)s was not sent: it cannot be sent again.")
    return words % {"round": f"#{round_.pk}"}
