"""Prompts that are sent by the clock, and when the next one is due."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from threads.models.catalogue import Agent, LanguageModel
from threads.models.conversation import Round, Thread
from threads.models.routes import Route

FIELDS = 5
BAD_FIELDS = {
    "Bad minute": _("The minute (the first field) cannot be read."),
    "Bad hour": _("The hour (the second field) cannot be read."),
    "Bad day-of-month": _("The day of the month (the third field) cannot be read."),
    "Bad month": _("The month (the fourth field) cannot be read."),
    "Bad day-of-week": _("The day of the week (the fifth field) cannot be read."),
}
"""What the parser says of an expression, in words for people."""


class NoTimesError(Exception):
    """An expression and a time zone that give no times at all."""


@cache
def time_zones() -> frozenset[str]:
    """The names of all time zones that this machine knows."""
    return frozenset(available_timezones())


def times(cron: str, time_zone: str, after: datetime) -> Iterator[datetime]:
    """Yield the times of an expression, in that time zone and after a moment.

    A time of day that the clocks leave out comes as much later as they are put
    forward; one that they show twice comes once.

    Raises:
        NoTimesError: the expression or the time zone cannot be used.
    """
    if time_zone not in time_zones() or len(cron.split()) != FIELDS:
        raise NoTimesError
    try:
        moments = CronSim(cron, after.astimezone(ZoneInfo(time_zone)))
    except CronSimError as error:
        raise NoTimesError(str(error)) from error
    # In the hour that comes twice the parser goes back to the first of the two.
    return (moment for moment in moments if moment.astimezone(UTC) > after)


def validate_cron(cron: str) -> None:
    """Refuse an expression that has no times.

    Raises:
        ValidationError: says which field is wrong.
    """
    if len(cron.split()) != FIELDS:
        raise ValidationError(
            _(
                "Give five fields with spaces between them: minute, hour, day of the "
                "month, month, day of the week. For example 30 7 * * 1-5."
            )
        )
    try:
        first = next(times(cron, "UTC", timezone.now()), None)
    except NoTimesError as error:
        problem = BAD_FIELDS.get(str(error), _("These times cannot be read."))
        raise ValidationError(problem) from error
    if first is None:
        raise ValidationError(_("There is no such day in any year."))


def validate_time_zone(name: str) -> None:
    """Refuse a time zone that this machine does not know.

    Raises:
        ValidationError: it does not.
    """
    if name not in time_zones():
        raise ValidationError(
            _("This time zone is not known. Give a name such as Europe/Berlin.")
        )


class ScheduleQuerySet(models.QuerySet["Schedule"]):
    """Schedules, filtered."""

    def due(self, now: datetime) -> "ScheduleQuerySet":
        """Those whose time has come, the oldest first."""
        return self.filter(is_enabled=True, next_at__lte=now).order_by("next_at", "pk")


class Schedule(models.Model):
    """A prompt that is sent by the clock, in the name of a person (requirement F8).

    What it asks cannot be deleted under it: it would silently ask something else.
    """

    class Skip(models.TextChoices):
        NONE = "", ""
        BUSY = "busy", _("its last round was still under way")
        OWNER = "owner", _("the owner's account is switched off")
        AGENT = "agent", _("the agent is switched off")
        ROUTE = "route", _("the route has no model to ask")
        TIMES = "times", _("its times or its time zone cannot be used")

    name = models.CharField(_("name"), max_length=100)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="schedules",
        limit_choices_to={"is_active": True},
        verbose_name=_("owner"),
        help_text=_("The answers are in this person's list of threads."),
    )
    agent = models.ForeignKey(
        Agent, models.PROTECT, null=True, blank=True, verbose_name=_("agent")
    )
    model = models.ForeignKey(
        LanguageModel,
        models.PROTECT,
        null=True,
        blank=True,
        verbose_name=_("model"),
        help_text=_("Empty, and no route: the agent's, or else the default model."),
    )
    route = models.ForeignKey(
        Route, models.PROTECT, null=True, blank=True, verbose_name=_("route")
    )
    prompt = models.TextField(_("message"))
    cron = models.CharField(
        _("times"),
        max_length=100,
        validators=[validate_cron],
        help_text=_(
            "Minute, hour, day of the month, month, day of the week, as in "
            "30 7 * * 1-5: at 7:30 from Monday to Friday."
        ),
    )
    time_zone = models.CharField(
        _("time zone"),
        max_length=64,
        default="UTC",
        validators=[validate_time_zone],
    )
    locale = models.CharField(_("language"), max_length=20, default="en")
    keeps_thread = models.BooleanField(
        _("one thread for all runs"),
        default=False,
        help_text=_("Otherwise each run begins a new thread."),
    )
    is_enabled = models.BooleanField(_("enabled"), default=True)
    most_failures = models.PositiveSmallIntegerField(
        _("failures until it is switched off"),
        default=3,
        validators=[MinValueValidator(1)],
        help_text=_(
            "In a row, and only those that lie with the message or with this site. "
            "What lies with the provider, the network or the key is not counted."
        ),
    )

    # Of all the runs, where they share one.
    thread = models.ForeignKey(
        Thread, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    next_at = models.DateTimeField(
        _("next run"), null=True, editable=False, db_index=True
    )
    last_at = models.DateTimeField(_("last run"), null=True, editable=False)
    last_round = models.ForeignKey(
        Round, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    # How the last round ended has not been counted yet.
    is_awaited = models.BooleanField(default=False, editable=False)
    failures = models.PositiveSmallIntegerField(
        _("failures in a row"), default=0, editable=False
    )
    # By itself, since there were too many failures.
    switched_off_at = models.DateTimeField(null=True, editable=False)
    skipped = models.CharField(
        max_length=10, choices=Skip, default=Skip.NONE, blank=True, editable=False
    )

    objects = ScheduleQuerySet.as_manager()

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        constraints = [
            models.CheckConstraint(
                condition=Q(model=None) | Q(route=None),
                name="schedule_asks_a_model_or_a_route",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.name}"

    def clean(self) -> None:
        """Take a model or a route, and not both."""
        super().clean()
        if self.model_id is not None and self.route_id is not None:
            raise ValidationError(
                {"route": _("Choose a model or a route, and not both.")}
            )

    def next_times(self, after: datetime, count: int) -> list[datetime]:
        """The next times in its own time zone; none where it has none."""
        try:
            return list(islice(times(self.cron, self.time_zone, after), count))
        except NoTimesError:
            return []

    def plan(self, now: datetime) -> list[str]:
        """Begin anew from here: with its next time, and without its failures.

        Returns the names of the fields that were set; whoever calls saves them.
        """
        upcoming = self.next_times(now, 1) if self.is_enabled else []
        self.next_at = upcoming[0] if upcoming else None
        if self.is_enabled:
            self.failures, self.switched_off_at = 0, None
            self.skipped = self.Skip.NONE
        return ["next_at", "failures", "switched_off_at", "skipped"]
