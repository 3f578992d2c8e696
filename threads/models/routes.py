"""Routes: models that are asked one after another until one of them answers."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from threads.models.catalogue import LanguageModel

MOST_TRIES = 3


class Route(models.Model):
    """A named, ordered list of models with a policy, chosen like a model.

    The next one is asked only where nothing of an answer came (design section 4);
    `threads.core.retry` decides.
    """

    slug = models.SlugField(_("identifier"), unique=True)
    name = models.CharField(_("name"), max_length=100)
    description = models.CharField(_("description"), max_length=300, blank=True)
    is_enabled = models.BooleanField(_("enabled"), default=True)
    position = models.PositiveIntegerField(_("position"), default=100)
    tries = models.PositiveSmallIntegerField(
        _("tries of each model"),
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_TRIES)],
        help_text=_(
            "How often a model is asked before the next one is, 1 to 3. Once something "
            "of its answer was shown, that model begins anew instead."
        ),
    )
    advances_on_refusal = models.BooleanField(
        _("go on after a refusal"),
        default=True,
        help_text=_(
            "Also ask the next model when one refuses: rate limits, errors of the "
            "provider, an unknown model, a key that is not accepted. Otherwise only "
            "when a stream ends before it has brought anything."
        ),
    )

    objects: models.Manager["Route"] = models.Manager()

    class Meta:
        verbose_name = _("route")
        verbose_name_plural = _("routes")
        constraints = [
            models.CheckConstraint(
                condition=Q(tries__gte=1, tries__lte=MOST_TRIES),
                name="route_tries_are_few",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.slug}"


class RouteStep(models.Model):
    """One model of a route."""

    route = models.ForeignKey(
        Route, models.CASCADE, related_name="steps", verbose_name=_("route")
    )
    model = models.ForeignKey(
        LanguageModel,
        models.CASCADE,
        related_name="route_steps",
        verbose_name=_("model"),
    )
    position = models.PositiveIntegerField(_("position"), default=1)

    class Meta:
        verbose_name = _("model of a route")
        verbose_name_plural = _("models of a route")
        constraints = [
            models.UniqueConstraint(
                fields=["route", "model"], name="route_asks_a_model_once"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.position}"
