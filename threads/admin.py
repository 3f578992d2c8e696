"""The operator's desk: the catalogue to edit, the ledger to read.

What rounds wrote is never edited here; it is the record from which causes are
read. Provider keys are in the environment and nowhere on these pages.
"""

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from modeltranslation.admin import TranslationAdmin

from threads.admin_rounds import LedgerAdmin
from threads.admin_rounds import RoundAdmin as RoundAdmin
from threads.admin_schedules import ScheduleAdmin as ScheduleAdmin
from threads.admin_servers import ToolServerAdmin as ToolServerAdmin
from threads.admin_tools import ToolRuleInline
from threads.endpoints import models_of
from threads.models import (
    Agent,
    CallAttempt,
    Cell,
    Gateway,
    KeyHealth,
    LanguageModel,
    Route,
    RouteStep,
    Sentence,
    Thread,
    ToolRun,
)
from threads.rounds import keyhealth

MOST_STEPS = 8


@admin.register(Gateway)
class GatewayAdmin(admin.ModelAdmin[Gateway]):
    """Gateways; the key is named, not kept."""

    list_display = ("slug", "name", "base_url", "is_enabled", "is_practice")
    list_filter = ("is_enabled", "is_practice")


@admin.register(LanguageModel)
class LanguageModelAdmin(TranslationAdmin[LanguageModel]):
    """Models and the order in which they are offered."""

    list_display = (
        "wire_id",
        "name",
        "gateway",
        "is_enabled",
        "is_default",
        "position",
        "uses_tools",
        "context_window",
        "input_price",
        "output_price",
    )
    list_filter = ("gateway", "is_enabled", "uses_tools")
    search_fields = ("wire_id", "name")


@admin.register(Agent)
class AgentAdmin(TranslationAdmin[Agent]):
    """Ways to answer."""

    list_display = ("slug", "name", "model", "cut_policy", "is_enabled")
    inlines = (ToolRuleInline,)


class RouteStepInline(admin.TabularInline[RouteStep, Route]):
    """The models of a route, in the order in which they are asked."""

    model = RouteStep
    extra = 0
    min_num = 1
    max_num = MOST_STEPS
    ordering = ("position", "pk")


@admin.register(Route)
class RouteAdmin(TranslationAdmin[Route]):
    """Routes; one that cannot be chosen is told so."""

    list_display = (
        *("slug", "name", "asks", "tries", "advances_on_refusal"),
        *("is_enabled", "position"),
    )
    inlines = (RouteStepInline,)

    @admin.display(description=_("asks"))
    def asks(self, route: Route) -> str:
        """List the models that it asks as things are now."""
        asked = ", ".join(model.wire_id for model in models_of(route))
        return asked or str(_("no model: nobody can choose it"))

    def save_related(
        self,
        request: HttpRequest,
        form: forms.ModelForm[Route],
        formsets: list[Any],
        change: bool,
    ) -> None:
        """Say so where the route, as it is saved, has nobody to ask."""
        super().save_related(request, form, formsets, change)
        if not models_of(form.instance):
            self.message_user(
                request,
                _(
                    "Nobody can choose this route: it is switched off, or none of its "
                    "models is offered. Enable it, or add a model whose gateway is "
                    "in force."
                ),
                messages.WARNING,
            )


@admin.register(Sentence)
class SentenceAdmin(TranslationAdmin[Sentence]):
    """The operator's own words; an empty one leaves the shipped words."""

    list_display = ("key", "text")
    search_fields = ("key", "text")


@admin.register(Thread)
class ThreadAdmin(LedgerAdmin):
    """Threads, newest first."""

    list_display = ("__str__", "owner", "title", "model", "updated_at", "deleted_at")
    list_select_related = ("owner", "model")
    ordering = ("-updated_at",)


@admin.register(Cell)
class CellAdmin(LedgerAdmin):
    """Cells with how they ended."""

    list_display = ("__str__", "thread", "ending", "code", "condition", "created_at")
    list_filter = ("status", "ending", "condition")
    list_select_related = ("thread",)
    ordering = ("-pk",)


@admin.register(CallAttempt)
class CallAttemptAdmin(LedgerAdmin):
    """Every attempt of every call."""

    list_display = (
        *("__str__", "outcome", "ending", "code", "condition", "http_status"),
        *("retry_decision", "retry_reason"),
        *("model_requested", "host", "request_id", "duration_ms", "started_at"),
    )
    list_filter = (
        *("outcome", "ending", "condition", "transient"),
        *("retry_decision", "retry_reason", "host"),
    )
    ordering = ("-pk",)


@admin.register(ToolRun)
class ToolRunAdmin(LedgerAdmin):
    """Every tool run."""

    list_display = (
        *("__str__", "round", "name", "state", "has_effects"),
        *("decided_by", "asked_at", "started_at", "ended_at"),
    )
    list_filter = ("state", "has_effects", "name")
    list_select_related = ("round", "decided_by")
    ordering = ("-pk",)


@admin.register(KeyHealth)
class KeyHealthAdmin(LedgerAdmin):
    """What gateways said of our keys; to read, and to clear by hand (J4)."""

    list_display = (
        *("gateway", "key_variable", "model", "status", "in_force", "code"),
        *(
            "http_status",
            "provider_reason",
            "since",
            "last_seen_at",
            "expires_at",
            "count",
        ),
    )
    list_display_links = ("key_variable",)
    list_filter = ("status", "gateway")
    list_select_related = ("gateway",)
    ordering = ("-last_seen_at",)
    actions = ("clear",)

    @admin.display(description=_("in force"), boolean=True)
    def in_force(self, row: KeyHealth) -> bool:
        """Tell whether the mark still holds."""
        return row.expires_at > timezone.now()

    def has_clear_permission(self, request: HttpRequest) -> bool:
        """Those may clear a mark who may change key health."""
        return cast(User, request.user).has_perm("threads.change_keyhealth")

    @admin.action(
        description=_("Clear: let these keys be tried again"), permissions=["clear"]
    )
    def clear(self, request: HttpRequest, rows: QuerySet[KeyHealth]) -> None:
        """Let go of the marks; the desk's own history says who did it."""
        self.log_deletions(request, rows)
        count = keyhealth.clear(rows)
        self.message_user(
            request,
            ngettext(
                "%(count)d mark was cleared.", "%(count)d marks were cleared.", count
            )
            % {"count": count},
        )
