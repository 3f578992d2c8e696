"""What an operator sets up: gateways, models, agents and sentences."""

import json
from decimal import Decimal

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from threads.core.quirks import PROTECTED, Override

MILLION = Decimal(1_000_000)
"""Prices are those of so many tokens."""


def validate_extras(extras: object) -> None:
    """Refuse what cannot be added to a request, or is not the operator's to say.

    Raises:
        ValidationError: it is no object, no JSON, or names what is ours.
    """
    if not isinstance(extras, dict):
        raise ValidationError(_("This has to be a JSON object."))
    try:
        json.dumps(extras, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        raise ValidationError(_("This cannot be sent as JSON.")) from error
    if named := sorted(PROTECTED & extras.keys()):
        raise ValidationError(
            _("These are said by the site itself: %(names)s."),
            params={"names": ", ".join(named)},
        )


class Gateway(models.Model):
    """An OpenAI-compatible endpoint.

    The key itself never reaches the database: `key_variable` names the
    environment variable that holds it (design section 11).
    """

    slug = models.SlugField(_("identifier"), unique=True)
    name = models.CharField(_("name"), max_length=100)
    base_url = models.CharField(_("base URL"), max_length=500)
    key_variable = models.CharField(
        _("environment variable of the key"), max_length=100, blank=True
    )
    is_practice = models.BooleanField(_("practice gateway"), default=False)
    is_enabled = models.BooleanField(_("enabled"), default=True)
    sends_usage = models.BooleanField(_("ask for usage"), default=True)

    class Meta:
        verbose_name = _("gateway")
        verbose_name_plural = _("gateways")

    def __str__(self) -> str:
        return f"#{self.pk} {self.slug}"


class LanguageModel(models.Model):
    """A model that a gateway serves.

    What is empty was not set by an operator; what the gateway lists of it is filled
    in (`context_window`, `uses_tools`).
    """

    class Effort(models.TextChoices):
        NEEDED = "", _("as the model needs it")
        NONE = "none", _("none")
        MINIMAL = "minimal", _("minimal")
        LOW = "low", _("low")
        MEDIUM = "medium", _("medium")
        HIGH = "high", _("high")
        XHIGH = "xhigh", _("very high")
        MAX = "max", _("the most")
        OMIT = "omit", _("never said")

    gateway = models.ForeignKey(
        Gateway, models.CASCADE, related_name="models", verbose_name=_("gateway")
    )
    wire_id = models.CharField(_("wire id"), max_length=200)
    name = models.CharField(_("name"), max_length=100)
    description = models.CharField(_("description"), max_length=300, blank=True)
    is_enabled = models.BooleanField(_("enabled"), default=True)
    is_default = models.BooleanField(_("default"), default=False)
    position = models.PositiveIntegerField(_("position"), default=100)
    context_window = models.PositiveIntegerField(
        _("context window, tokens"), null=True, blank=True
    )
    uses_tools = models.BooleanField(
        _("uses tools"),
        null=True,
        blank=True,
        help_text=_("Offer tools to this model. It has to support tool calls."),
    )
    # What a request says to this model beside the conversation (`core.quirks`).
    reasoning_effort = models.CharField(
        _("reasoning effort"),
        max_length=10,
        choices=Effort,
        default=Effort.NEEDED,
        blank=True,
    )
    max_output_tokens = models.PositiveIntegerField(
        _("longest answer, tokens"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
    )
    temperature = models.DecimalField(
        _("temperature"),
        max_digits=4,
        decimal_places=2,
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(2)],
    )
    request_extras = models.JSONField(
        _("added to each request"),
        default=dict,
        blank=True,
        validators=[validate_extras],
        help_text=_("A JSON object; it comes last and replaces what it names."),
    )
    # Empty is unknown, and then so is every cost; what is free says 0 (G3).
    input_price = models.DecimalField(
        _("price of a million tokens read, USD"),
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
    )
    output_price = models.DecimalField(
        _("price of a million tokens written, USD"),
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
    )

    class Meta:
        verbose_name = _("model")
        verbose_name_plural = _("models")
        constraints = [
            models.UniqueConstraint(
                fields=["gateway", "wire_id"], name="model_wire_id_is_unique"
            ),
            models.UniqueConstraint(
                fields=["is_default"],
                condition=models.Q(is_default=True),
                name="one_default_model",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.wire_id}"

    def clean(self) -> None:
        """Take an emptied field of extras for none."""
        super().clean()
        if self.request_extras is None:
            self.request_extras = {}

    @property
    def override(self) -> Override:
        """What an operator said of requests to this model."""
        return Override(
            effort=self.reasoning_effort,
            max_output_tokens=self.max_output_tokens,
            temperature=None if self.temperature is None else float(self.temperature),
            extras=self.request_extras or {},
        )

    @property
    def has_price(self) -> bool:
        """Whether it is known what this model costs."""
        return self.input_price is not None and self.output_price is not None

    def cost_of(
        self, input_tokens: int | None, output_tokens: int | None
    ) -> Decimal | None:
        """Return what so many tokens cost, in USD; None where any part is unknown.

        Money is never estimated (requirement G3): the counts are the provider's own.
        """
        if self.input_price is None or self.output_price is None:
            return None
        if input_tokens is None or output_tokens is None:
            return None
        read = input_tokens * self.input_price
        return (read + output_tokens * self.output_price) / MILLION


class Agent(models.Model):
    """A way to answer: instructions, a preferred model, a cut policy."""

    class CutPolicy(models.TextChoices):
        REGENERATE = "regenerate", _("Start the answer again")
        KEEP = "keep", _("Keep what came and stop")

    slug = models.SlugField(_("identifier"), unique=True)
    name = models.CharField(_("name"), max_length=100)
    description = models.CharField(_("description"), max_length=300, blank=True)
    instructions = models.TextField(_("instructions"), blank=True)
    model = models.ForeignKey(
        LanguageModel,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="agents",
        verbose_name=_("model"),
    )
    cut_policy = models.CharField(
        _("when an answer is cut"),
        max_length=20,
        choices=CutPolicy,
        default=CutPolicy.REGENERATE,
    )
    is_enabled = models.BooleanField(_("enabled"), default=True)

    class Meta:
        verbose_name = _("agent")
        verbose_name_plural = _("agents")

    def __str__(self) -> str:
        return f"#{self.pk} {self.slug}"


class Sentence(models.Model):
    """The sentence of one key; a missing one falls back to the code's English."""

    key = models.CharField(_("key"), max_length=100, unique=True)
    text = models.TextField(_("text"), blank=True)

    class Meta:
        verbose_name = _("sentence")
        verbose_name_plural = _("sentences")

    def __str__(self) -> str:
        return f"#{self.pk} {self.key}"
