"""The ledger: one row per attempt of a call, one per tool run."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from threads.core.events import UsageSource
from threads.core.faults import Condition, Ending
from threads.models.conversation import Round, values_of


class CallAttempt(models.Model):
    """One attempt of one call, with its real outcome (requirements G1, A17).

    Written when the attempt ends; NULL is unknown and never zero (G3). Times are
    milliseconds from the attempt's start.
    """

    round = models.ForeignKey(Round, models.CASCADE, related_name="attempts")
    call = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    model_requested = models.CharField(max_length=200)
    model_served = models.CharField(max_length=200, blank=True)
    host = models.CharField(max_length=255, blank=True)
    provider = models.CharField(max_length=200, blank=True)

    outcome = models.CharField(max_length=20)
    ending = models.CharField(max_length=20, choices=values_of(Ending))
    code = models.CharField(max_length=100, blank=True)
    condition = models.CharField(
        max_length=20, blank=True, choices=values_of(Condition)
    )
    http_status = models.PositiveIntegerField(null=True, blank=True)
    transient = models.BooleanField(default=False)
    retry_decision = models.CharField(max_length=20, default="none")
    provider_reason = models.CharField(max_length=400, blank=True)

    request_id = models.CharField(max_length=200, blank=True)
    stream_state = models.CharField(max_length=30)
    chunks_received = models.PositiveIntegerField(default=0)
    comments_seen = models.PositiveIntegerField(default=0)
    done_received = models.BooleanField(default=False)
    output_committed = models.BooleanField(default=False)
    finish_reason = models.CharField(max_length=100, blank=True)
    native_finish_reason = models.CharField(max_length=100, blank=True)
    silent_updates = models.PositiveIntegerField(default=0)
    withdrawn_text = models.TextField(blank=True)
    transport_retries = models.PositiveIntegerField(default=0)

    started_at = models.DateTimeField(default=timezone.now)
    first_data_ms = models.PositiveIntegerField(null=True, blank=True)
    first_output_ms = models.PositiveIntegerField(null=True, blank=True)
    last_update_ms = models.PositiveIntegerField(null=True, blank=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    wait_ms = models.PositiveIntegerField(default=0)

    input_tokens = models.PositiveIntegerField(null=True, blank=True)
    output_tokens = models.PositiveIntegerField(null=True, blank=True)
    usage_source = models.CharField(
        max_length=10,
        choices=[(s.value, s.value) for s in UsageSource],
        default=UsageSource.UNKNOWN.value,
    )
    cost = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        constraints = [
            models.UniqueConstraint(
                fields=["round", "call", "attempt"], name="attempt_is_recorded_once"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} round {self.round_id} {self.call}.{self.attempt} {self.outcome}"


class ToolRun(models.Model):
    """One tool call that a model asked for, and what became of it."""

    class State(models.TextChoices):
        RUNNING = "running", _("running")
        OK = "ok", _("finished")
        ERROR = "error", _("failed")
        NOT_RUN = "not_run", _("not run")
        UNKNOWN = "unknown", _("unknown")

    round = models.ForeignKey(Round, models.CASCADE, related_name="tool_runs")
    call = models.PositiveIntegerField()
    position = models.PositiveIntegerField()
    call_id = models.CharField(max_length=200)
    name = models.CharField(max_length=200, blank=True)
    arguments = models.TextField(blank=True)
    has_effects = models.BooleanField(default=False)
    idempotency_key = models.CharField(max_length=100)
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    result = models.TextField(blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("tool run")
        verbose_name_plural = _("tool runs")
        constraints = [
            models.UniqueConstraint(
                fields=["round", "call", "position"], name="tool_run_has_its_own_place"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.name} {self.state}"
