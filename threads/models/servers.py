"""The tool servers that an operator has set up, and how they fare."""

from datetime import timedelta

from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from threads.models.tools import ToolRule

RETRY_MINUTES = 5
"""After how long a server that never worked is tried again by itself."""


class ToolServerQuerySet(models.QuerySet["ToolServer"]):
    """Servers, filtered."""

    def enabled(self) -> "ToolServerQuerySet":
        """Those whose tools may be offered; always in the same order."""
        return self.filter(is_enabled=True).order_by("slug")


class ToolServer(models.Model):
    """A server of the Model Context Protocol. Its secret is named here, not kept.

    `tools` is what it offered when it was last asked; a server that cannot be
    reached keeps its tools, and a call of one says so.
    """

    class Transport(models.TextChoices):
        STDIO = "stdio", _("A command on this machine (stdio)")
        HTTP = "http", _("An address (streamable HTTP)")

    class Health(models.TextChoices):
        UNTRIED = "untried", _("never tried")
        WORKS = "works", _("works")
        PROBLEM = "problem", _("problem")

    slug = models.CharField(
        _("identifier"),
        max_length=20,
        unique=True,
        validators=[
            RegexValidator(
                r"\A[a-z0-9]+(?:-[a-z0-9]+)*\Z",
                _("Use small letters a to z, digits, and single hyphens between them."),
            )
        ],
        help_text=_("The names of its tools begin with it, as in files__read."),
    )
    name = models.CharField(_("name"), max_length=100)
    transport = models.CharField(
        _("reached by"), max_length=10, choices=Transport, default=Transport.STDIO
    )
    command = models.CharField(
        _("command"),
        max_length=500,
        blank=True,
        help_text=_("The program, without its arguments. It runs on this machine."),
    )
    arguments = models.JSONField(
        _("arguments"),
        default=list,
        blank=True,
        help_text=_('A JSON list of texts, for example ["-m", "some_server"].'),
    )
    url = models.CharField(
        _("address"),
        max_length=500,
        blank=True,
        help_text=_("Begins with https://, or with http:// inside of this network."),
    )
    secret_variable = models.CharField(
        _("variable of the secret"),
        max_length=100,
        blank=True,
        help_text=_(
            "The environment variable with the server's token. It is sent as a "
            "bearer token, or passed on to the command. The token is not stored here."
        ),
    )
    extra_variables = models.CharField(
        _("other variables"),
        max_length=500,
        blank=True,
        help_text=_(
            "Names of environment variables that the command gets as well, "
            "with spaces between them."
        ),
    )
    policy = models.CharField(
        _("policy"),
        max_length=10,
        choices=ToolRule.Policy,
        default=ToolRule.Policy.ASK,
        help_text=_("For its tools that have no rule of their own."),
    )
    is_enabled = models.BooleanField(_("enabled"), default=True)

    tools = models.JSONField(_("tools"), default=list, editable=False)
    last_ok_at = models.DateTimeField(_("last worked"), null=True, editable=False)
    last_checked_at = models.DateTimeField(_("last tried"), null=True, editable=False)
    problem = models.CharField(_("problem"), max_length=300, blank=True, editable=False)

    objects = ToolServerQuerySet.as_manager()

    class Meta:
        verbose_name = _("tool server")
        verbose_name_plural = _("tool servers")

    def __str__(self) -> str:
        return f"#{self.pk} {self.slug}"

    @property
    def health(self) -> Health:
        """How it fared when it was last used or tried."""
        if self.last_checked_at is None:
            return self.Health.UNTRIED
        is_well = self.last_ok_at == self.last_checked_at
        return self.Health.WORKS if is_well else self.Health.PROBLEM

    @property
    def wants_trying(self) -> bool:
        """Tell whether its tools are still unknown and it is time to ask for them."""
        if self.last_ok_at is not None:
            return False
        since = timezone.now() - timedelta(minutes=RETRY_MINUTES)
        return self.last_checked_at is None or self.last_checked_at < since
