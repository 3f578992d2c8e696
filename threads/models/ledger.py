"""The ledger: attempts of calls, tool runs, and what was said of our keys."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from threads.core.events import UsageSource
from threads.core.faults import Condition, Ending, KeyEffect
from threads.models.catalogue import Gateway
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
    # Which parameters were sent, and how many messages and tools (F13); no content.
    request_shape = models.JSONField(default=dict, blank=True)
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
    # What the gateway's answer said of the key that was used (requirement G11).
    key_effect = models.CharField(
        max_length=20,
        choices=[(effect.value, effect.value) for effect in KeyEffect],
        default=KeyEffect.NONE.value,
    )
    # What followed the attempt, and if nothing did, why (requirement D16).
    retry_decision = models.CharField(max_length=20, default="none")
    retry_reason = models.CharField(max_length=30, blank=True)
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
    # Of text that came, be it withdrawn later.
    characters = models.PositiveIntegerField(null=True, blank=True)
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
    # USD; fine enough for one token at a price of millionths a million.
    cost = models.DecimalField(max_digits=22, decimal_places=12, null=True, blank=True)

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


ARGUMENTS_LENGTH = 256_000
"""Characters of arguments with which a tool may run."""


class ToolTurn(models.Model):
    """What a model said as it asked for tools: with the runs, one exchange of a round.

    Written before any of them runs, so that whoever goes on with the round sends
    the same messages. `text_length` is how long the cell's text was then, in
    characters: what the model said of it is its end.
    """

    round = models.ForeignKey(Round, models.CASCADE, related_name="tool_turns")
    call = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    reasoning = models.TextField(blank=True)
    # How long the round's model had reasoned by then.
    reasoning_ms = models.PositiveIntegerField(null=True, blank=True)
    text_length = models.PositiveIntegerField()
    model_served = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("tool turn")
        verbose_name_plural = _("tool turns")
        constraints = [
            models.UniqueConstraint(
                fields=["round", "call"], name="one_tool_turn_for_a_call"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} round {self.round_id} call {self.call}"


class ToolRun(models.Model):
    """One tool call that a model asked for, and what became of it.

    `arguments` are those that it ran with; `arguments_asked` the model's own where
    the person changed them.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting for your decision")
        ALLOWED = "allowed", _("allowed")
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
    # What the tool says of itself, for the person who is to decide on it.
    description = models.TextField(blank=True)
    arguments = models.TextField(blank=True)
    arguments_asked = models.TextField(blank=True)
    has_effects = models.BooleanField(default=False)
    idempotency_key = models.CharField(max_length=100)
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    result = models.TextField(blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True
    )
    asked_at = models.DateTimeField(default=timezone.now)
    # Null as long as it has not begun to run.
    started_at = models.DateTimeField(null=True, blank=True)
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

    @classmethod
    def unknown_names(cls, runs: "models.QuerySet[ToolRun]") -> tuple[str, ...]:
        """Name the tools with effects of which nobody knows whether they have finished."""
        unknown = runs.filter(has_effects=True, state=cls.State.UNKNOWN)
        return tuple(dict.fromkeys(unknown.values_list("name", flat=True)))


class KeyHealth(models.Model):
    """What a gateway says of a key of ours, asked for one model (G11 to G15).

    Of one model, since a gateway that stands before others reports what an
    upstream says of its own key in the same words: the other models still answer.

    The key itself is not here, nor anything it could be guessed from:
    `fingerprint` is a keyed hash over the key and the gateway's address, so a
    changed key is another key at once. A row is gone once the key has proved
    itself, or an operator cleared it; after `expires_at` it no longer holds.
    """

    class Status(models.TextChoices):
        BAD = KeyEffect.BAD.value, _("not accepted")
        EXHAUSTED = KeyEffect.EXHAUSTED.value, _("used up")
        THROTTLED = KeyEffect.THROTTLED.value, _("slowed down")

    gateway = models.ForeignKey(
        Gateway, models.CASCADE, related_name="key_health", verbose_name=_("gateway")
    )
    key_variable = models.CharField(
        _("environment variable of the key"), max_length=100
    )
    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    model = models.CharField(_("model"), max_length=200)
    status = models.CharField(_("status"), max_length=20, choices=Status)
    code = models.CharField(_("code"), max_length=100)
    http_status = models.PositiveIntegerField(_("HTTP status"), null=True, blank=True)
    provider_reason = models.CharField(
        _("the provider's words"), max_length=400, blank=True
    )
    since = models.DateTimeField(_("since"))
    last_seen_at = models.DateTimeField(_("last seen"))
    expires_at = models.DateTimeField(_("expires"))
    count = models.PositiveIntegerField(_("times seen"), default=1)

    class Meta:
        verbose_name = _("key health")
        verbose_name_plural = _("key health")
        constraints = [
            models.UniqueConstraint(
                fields=["gateway", "fingerprint", "model", "status"],
                name="key_health_is_said_once",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.key_variable} {self.status}"
