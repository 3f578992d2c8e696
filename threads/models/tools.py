"""What an operator says of tools."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from threads.models.catalogue import Agent

RULED = _("There is a rule for this tool already. Change that one.")


class ToolRule(models.Model):
    """Whether a tool may be used, by one agent or by all that have no rule of their own."""

    class Policy(models.TextChoices):
        ALLOW = "allow", _("Allow")
        ASK = "ask", _("Ask the person first")
        DENY = "deny", _("Do not offer")

    agent = models.ForeignKey(
        Agent,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="tool_rules",
        verbose_name=_("agent"),
        help_text=_(
            "Empty: for chats without an agent, and for agents that have no rule of "
            "their own."
        ),
    )
    tool = models.CharField(_("tool"), max_length=200)
    policy = models.CharField(_("policy"), max_length=10, choices=Policy)

    class Meta:
        verbose_name = _("tool rule")
        verbose_name_plural = _("tool rules")
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "tool"],
                name="one_rule_for_a_tool_and_agent",
                violation_error_message=RULED,
            ),
            models.UniqueConstraint(
                fields=["tool"],
                condition=Q(agent=None),
                name="one_rule_for_a_tool_and_all",
                violation_error_message=RULED,
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.tool} {self.policy}"
