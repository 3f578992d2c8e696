"""From a model of ours to the place where it is asked.

The practice gateway belongs to the process that asks it: it is started on
loopback with the first question, so that a server, a worker and `ask` can run
beside each other without sharing a port.
"""

import atexit
import os
from collections.abc import Iterable

from django.conf import settings
from django.db.models import Case, QuerySet, When

from threads import conf
from threads.gateway.client import Endpoint
from threads.models import Gateway, LanguageModel, Route
from threads.practice.server import PracticeServer

ENVIRONMENT, LOCAL, PRACTICE = "environment", "local", "practice"
"""The gateways that we make ourselves, by their identifiers."""

OPENAI = "https://api.openai.com/v1"

_practice = PracticeServer()
atexit.register(_practice.stop)


def practice_url() -> str:
    """Return the base URL of this process's practice gateway, started if need be.

    Raises:
        OSError: no loopback port can be opened.
    """
    return _practice.start()


def gateways_in_force() -> QuerySet[Gateway]:
    """The gateways that may be asked, as the environment is now.

    Decided when it is asked and never stored: a command with another environment
    than the server's changes nothing for the server. The practice gateway is in
    force only while no real one is configured (design section 8).
    """
    enabled = Gateway.objects.filter(is_enabled=True)
    configured = conf.gateway_configured()
    if not configured:
        enabled = enabled.exclude(slug=ENVIRONMENT)
    if configured or enabled.exclude(is_practice=True).exclude(slug=LOCAL).exists():
        enabled = enabled.exclude(is_practice=True)
    return enabled


def default_gateway() -> Gateway | None:
    """The gateway that is asked for a model which the catalogue does not list."""
    preferred = Case(
        When(slug=ENVIRONMENT, then=0), When(slug=LOCAL, then=2), default=1
    )
    return gateways_in_force().order_by(preferred, "pk").first()


def offered_models() -> QuerySet[LanguageModel]:
    """The models that people may choose, in the operator's order."""
    return (
        LanguageModel.objects.filter(is_enabled=True, gateway__in=gateways_in_force())
        .select_related("gateway")
        .order_by("position", "wire_id")
    )


def models_of(route: Route) -> list[LanguageModel]:
    """The models that a route asks, in its order; those not offered are left out."""
    if not route.is_enabled:
        return []
    steps = route.steps.filter(model__in=offered_models())
    steps = steps.select_related("model__gateway").order_by("position", "pk")
    return [step.model for step in steps]


def default_model(offered: Iterable[LanguageModel]) -> LanguageModel | None:
    """The one of `offered` that answers where nobody chose; None of none.

    CHAT_MODEL comes first, then the operator's default, then the first of all.
    """
    return min(
        offered,
        key=lambda model: (
            model.wire_id != settings.CHAT_MODEL,
            not model.is_default,
            model.position,
            model.wire_id,
        ),
        default=None,
    )


def endpoint_of(model: LanguageModel | None) -> Endpoint | None:
    """Return where `model` is asked, or an unlisted one; None when nowhere."""
    gateway = default_gateway() if model is None else model.gateway
    if gateway is None or not (model is None or is_offered(model)):
        return None
    if gateway.is_practice:
        base_url = practice_url()
    elif gateway.slug == ENVIRONMENT:
        base_url = environment_url()
    else:
        base_url = gateway.base_url
    return Endpoint(
        base_url=base_url,
        api_key=key_in(gateway.key_variable),
        sends_usage=gateway.sends_usage,
    )


def is_offered(model: LanguageModel) -> bool:
    """Tell whether a model may still be asked."""
    return model.is_enabled and gateways_in_force().filter(pk=model.gateway_id).exists()


def environment_url() -> str:
    """Return the base URL that the environment names, or its vendor's own."""
    return settings.OPENAI_BASE_URL or OPENAI


def key_in(variable: str) -> str:
    """Read a key from the setting or environment variable of that name."""
    if not variable:
        return ""
    return str(getattr(settings, variable, "") or os.environ.get(variable, ""))
