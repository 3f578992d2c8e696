"""The operator's desk for tools: which may be used, and which ask first."""

from typing import Any

from django import forms
from django.contrib import admin
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from threads.models import Agent, ToolRule
from threads.tools.toolset import known_tools


class ToolRuleForm(forms.ModelForm[ToolRule]):
    """A rule names a tool that there is; one that is gone keeps its rule."""

    tool = forms.ChoiceField(label=capfirst(_("tool")))

    class Meta:
        model = ToolRule
        fields = ("agent", "tool", "policy")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        names = {*known_tools(), *filter(None, [self.instance.tool])}
        field = self.fields["tool"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - declared above
        field.choices = [("", "---------"), *((name, name) for name in sorted(names))]


@admin.register(ToolRule)
class ToolRuleAdmin(admin.ModelAdmin[ToolRule]):
    """Rules for tools. Without one, a tool of this site that changes something asks
    first, and a tool of a server follows that server's policy."""

    form = ToolRuleForm
    list_display = ("tool", "policy", "agent")
    list_filter = ("policy", "agent")
    list_select_related = ("agent",)
    ordering = ("tool", "agent")


class ToolRuleInline(admin.TabularInline[ToolRule, Agent]):
    """The rules of one agent."""

    model = ToolRule
    form = ToolRuleForm
    fields = ("tool", "policy")
    extra = 0
