"""From a model of ours to the place where it is asked.

The practice gateway belongs to the process that asks it: it is started on
loopback with the first question, so that a server, a worker and `ask` can run
beside each other without sharing a port.
"""

import atexit
import os

from django.conf import settings

from threads.gateway.client import Endpoint
from threads.models import Gateway, LanguageModel
from threads.practice.server import PracticeServer

_practice = PracticeServer()
atexit.register(_practice.stop)


def practice_url() -> str:
    """Return the base URL of this process's practice gateway, started if need be.

    Raises:
        OSError: no loopback port can be opened.
    """
    return _practice.start()


def default_gateway() -> Gateway | None:
    """The gateway that is asked for a model which the catalogue does not list.

    A real one comes before the practice gateway, which is never chosen once a
    real gateway is configured (design section 8).
    """
    return Gateway.objects.filter(is_enabled=True).order_by("is_practice", "pk").first()


def endpoint_of(model: LanguageModel | None) -> Endpoint | None:
    """Return where `model` is asked, or an unlisted one; None when nowhere."""
    gateway = default_gateway() if model is None else model.gateway
    if (
        gateway is None
        or not gateway.is_enabled
        or not (model is None or model.is_enabled)
    ):
        return None
    return Endpoint(
        base_url=practice_url() if gateway.is_practice else gateway.base_url,
        api_key=key_in(gateway.key_variable),
        sends_usage=gateway.sends_usage,
    )


def key_in(variable: str) -> str:
    """Read a key from the setting or environment variable of that name."""
    if not variable:
        return ""
    return str(getattr(settings, variable, "") or os.environ.get(variable, ""))
