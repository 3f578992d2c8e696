"""The operator's desk: every page opens, and rules for tools are set there."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from threads.models import Agent, ToolRule

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk(client: Client) -> Client:
    operator = User.objects.create_superuser("operator", password="desk-desk")
    client.force_login(operator)
    return client


def test_every_page_of_the_desk_opens(desk: Client) -> None:
    agent = Agent.objects.create(slug="helper", name="Helper")
    for model, page in admin.site._registry.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        request = desk.get(reverse(f"{name}_changelist"))
        assert request.status_code == 200, model
        if page.has_add_permission(request.wsgi_request):
            assert desk.get(reverse(f"{name}_add")).status_code == 200, model
    change = reverse("admin:threads_agent_change", args=[agent.pk])
    assert b"tool_rules-0" not in desk.get(change).content


def test_a_rule_is_made_for_a_tool_that_there_is(desk: Client) -> None:
    add = reverse("admin:threads_toolrule_add")

    assert b'value="calculator"' in desk.get(add).content
    desk.post(add, {"agent": "", "tool": "calculator", "policy": "ask"})
    again = desk.post(add, {"agent": "", "tool": "calculator", "policy": "deny"})
    unknown = desk.post(add, {"agent": "", "tool": "no_such", "policy": "deny"})

    assert (again.status_code, unknown.status_code) == (200, 200)
    assert b"There is a rule for this tool already." in again.content
    rules = ToolRule.objects.filter(agent=None).values_list("tool", "policy")
    assert list(rules) == [("calculator", "ask")]
