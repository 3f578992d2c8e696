"""The operator's desk for schedules: set up, tried, and seen to work or not."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.validators import MaxLengthValidator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.text import capfirst
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext_lazy as _

from threads.forms import LONGEST_MESSAGE
from threads.models import Round, Schedule
from threads.models.schedules import time_zones
from threads.rounds import engine, schedules
from threads.sentences import sentence_for

TIMES_SHOWN = 3
PLANNED_BY = {"cron", "time_zone", "is_enabled"}


class ScheduleForm(forms.ModelForm[Schedule]):
    """A schedule; its language and time zone are chosen among those that there are."""

    locale = forms.ChoiceField(
        label=capfirst(_("language")), choices=settings.LANGUAGES
    )
    time_zone = forms.ChoiceField(
        label=capfirst(_("time zone")),
        choices=lambda: [(name, name) for name in sorted(time_zones())],
        initial="UTC",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "prompt" in self.fields:
            self.fields["prompt"].validators.append(MaxLengthValidator(LONGEST_MESSAGE))

    def clean_prompt(self) -> str:
        """Count and keep the line breaks of browsers as one character."""
        return str(self.cleaned_data["prompt"]).replace("\r\n", "\n")


@admin.register(Schedule)
class ScheduleAdmin(admin.ModelAdmin[Schedule]):
    """Schedules, with what comes next and how the last run ended."""

    form = ScheduleForm
    list_display = (
        *("name", "owner", "cron", "time_zone", "is_enabled"),
        *("next_run", "outcome", "remarks"),
    )
    list_filter = ("is_enabled",)
    list_select_related = ("owner", "last_round__answer_cell")
    fields = (
        *("name", "owner", "agent", "model", "route", "prompt"),
        *("cron", "upcoming", "time_zone", "locale", "keeps_thread"),
        *("is_enabled", "most_failures"),
        *("failures", "remarks", "last_at", "outcome"),
    )
    readonly_fields = ("upcoming", "failures", "remarks", "last_at", "outcome")
    actions = ("run_now",)
    ordering = ("name", "pk")

    @admin.display(description=_("next run"), ordering="next_at")
    def next_run(self, schedule: Schedule) -> str:
        """The next time, as the clock says in the schedule's time zone."""
        return _told(schedule, 1)[0] if schedule.next_at else "-"

    @admin.display(description=_("next times"))
    def upcoming(self, schedule: Schedule) -> str:
        """The next three times."""
        told = _told(schedule, TIMES_SHOWN) if schedule.cron else []
        return format_html_join("", "{}<br>", ((each,) for each in told)) or "-"

    @admin.display(description=_("last outcome"))
    def outcome(self, schedule: Schedule) -> str:
        """How the last run ended, with a link to its round."""
        round_ = schedule.last_round
        if round_ is None:
            return "-"
        words = sentence_for(round_.answer_cell, get_language() or "en")
        if round_.state != Round.State.ERROR or not words:
            words = round_.get_state_display()
        address = reverse("admin:threads_round_change", args=[round_.pk])
        return format_html('<a href="{}">{}</a>', address, words)

    @admin.display(description=_("remarks"))
    def remarks(self, schedule: Schedule) -> str:
        """Why it is switched off, or was left out when its time came."""
        if schedule.switched_off_at is not None:
            words = ngettext(
                "Switched itself off after %(count)d failure; enable it to go on.",
                "Switched itself off after %(count)d failures in a row; enable it to "
                "go on.",
                schedule.most_failures,
            )
            return words % {"count": schedule.most_failures}
        if not schedule.skipped:
            return "-"
        why = schedule.get_skipped_display()
        return _("Left out when its time came: %(why)s.") % {"why": why}

    def save_model(
        self,
        request: HttpRequest,
        obj: Schedule,
        form: forms.ModelForm[Schedule],
        change: bool,
    ) -> None:
        """Save what was changed; a sweep may be writing the rest at this moment."""
        changed = list(form.changed_data)
        if not change or PLANNED_BY & {*changed}:
            changed += obj.plan(timezone.now())
        obj.save(update_fields=changed if change else None)

    @admin.action(description=_("Run now"), permissions=["change"])
    def run_now(self, request: HttpRequest, rows: QuerySet[Schedule]) -> None:
        """Start a run of each, beside those by the clock."""
        started = 0
        for schedule in rows.order_by("pk"):
            try:
                round_ = schedules.run_now(schedule)
            except schedules.SkippedError as skipped:
                told = {"name": schedule.name, "why": skipped.why.label}
                refusal = _("%(name)s was not started: %(why)s.") % told
                self.message_user(request, refusal, messages.WARNING)
            else:
                engine.set_going(round_.pk)
                started += 1
        if started:
            words = ngettext(
                "%(count)d run was started.", "%(count)d runs were started.", started
            )
            self.message_user(request, words % {"count": started})


def _told(schedule: Schedule, count: int) -> list[str]:
    """The next times as they read in the schedule's own time zone."""
    return [
        date_format(moment, "DATETIME_FORMAT")
        for moment in schedule.next_times(timezone.now(), count)
    ]
