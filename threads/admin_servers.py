"""The operator's desk for tool servers: set up, tried, and seen to work or not."""

from typing import cast

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from threads.models import ToolServer
from threads.tools.mcp import health
from threads.tools.mcp.tools import wire_name
from threads.tools.mcp.values import unsafe


class ToolServerForm(forms.ModelForm[ToolServer]):
    """What a server needs depends on how it is reached."""

    def clean_arguments(self) -> list[str]:
        """Take a list of texts and nothing else."""
        arguments = self.cleaned_data["arguments"] or []
        if not isinstance(arguments, list) or not all(
            isinstance(argument, str) for argument in arguments
        ):
            raise ValidationError(_("Give a JSON list of texts."))
        return arguments

    def clean(self) -> None:
        """Ask for what the transport needs, and for an address that is safe."""
        super().clean()
        values = self.cleaned_data
        if values.get("transport") == ToolServer.Transport.STDIO:
            if not values.get("command"):
                self.add_error("command", _("This is needed to start the server."))
        elif unsafe(values.get("url", "")):
            self.add_error(
                "url",
                _("Give an address with https://, or http:// inside of this network."),
            )


@admin.register(ToolServer)
class ToolServerAdmin(admin.ModelAdmin[ToolServer]):
    """Tool servers. A command is code that runs here: only superusers set them up."""

    form = ToolServerForm
    list_display = (
        *("slug", "name", "transport", "is_enabled", "policy"),
        *("state", "tool_count", "problem", "last_ok_at", "last_checked_at"),
    )
    list_filter = ("transport", "is_enabled")
    readonly_fields = ("state", "problem", "last_ok_at", "last_checked_at", "offers")
    actions = ("check_now",)
    ordering = ("slug",)

    @admin.display(description=_("state"))
    def state(self, server: ToolServer) -> str:
        """How the server fares."""
        return str(server.health.label)

    @admin.display(description=_("tools"))
    def tool_count(self, server: ToolServer) -> int:
        """How many tools it offers."""
        return len(server.tools)

    @admin.display(description=_("tools"))
    def offers(self, server: ToolServer) -> str:
        """The names of its tools, as models and rules know them."""
        names = [wire_name(server.slug, tool["name"]) for tool in server.tools]
        return ", ".join(names) or "-"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Only superusers."""
        return cast(User, request.user).is_superuser

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        """Only superusers."""
        return cast(User, request.user).is_superuser

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        """Only superusers."""
        return cast(User, request.user).is_superuser

    def save_model(
        self,
        request: HttpRequest,
        obj: ToolServer,
        form: forms.ModelForm[ToolServer],
        change: bool,
    ) -> None:
        """Save, and ask the server for its tools in the background."""
        super().save_model(request, obj, form, change)
        if obj.is_enabled:
            transaction.on_commit(lambda: health.check_soon(obj))

    @admin.action(description=_("Check now"), permissions=["change"])
    def check_now(self, request: HttpRequest, rows: QuerySet[ToolServer]) -> None:
        """Ask the servers for their tools, and wait for what they say."""
        health.check(rows)
        working = sum(server.health == ToolServer.Health.WORKS for server in rows.all())
        self.message_user(
            request,
            ngettext(
                "%(working)d of %(count)d server works.",
                "%(working)d of %(count)d servers work.",
                rows.count(),
            )
            % {"working": working, "count": rows.count()},
            messages.SUCCESS if working == rows.count() else messages.WARNING,
        )
