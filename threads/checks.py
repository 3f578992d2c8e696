"""System checks: a wrong setting is an error with a hint, not a traceback."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from threads import conf


def checked(read: Callable[[], object]) -> list[CheckMessage]:
    """Run one reader of `threads.conf` and report what it refuses."""
    try:
        read()
    except conf.Misconfigured as error:
        return [Error(str(error), hint=error.hint, id="threads.E001")]
    return []


@register()
def bounds_are_usable(**_kwargs: Any) -> list[CheckMessage]:
    """Every variable can be read, and the bounds stand in their order (H12)."""
    messages: list[CheckMessage] = []
    for variable in (
        "CHAT_FIRST_DATA_SECONDS",
        "CHAT_IDLE_SECONDS",
        "CHAT_ROUND_CAP_SECONDS",
        "CHAT_RETRY_WINDOW_SECONDS",
    ):
        messages += checked(partial(conf.positive, variable))
    messages += checked(partial(conf.whole, "CHAT_CALL_RETRIES"))
    messages += checked(partial(conf.waits, "CHAT_RETRY_WAITS"))
    if messages:
        return messages
    bounds = conf.bounds()
    if bounds.first_data_seconds > bounds.round_cap_seconds:
        messages.append(
            Error(
                "CHAT_FIRST_DATA_SECONDS is longer than CHAT_ROUND_CAP_SECONDS",
                hint="A round must be able to outlast the wait for its first data.",
                id="threads.E002",
            )
        )
    if bounds.idle_seconds > bounds.round_cap_seconds:
        messages.append(
            Error(
                "CHAT_IDLE_SECONDS is longer than CHAT_ROUND_CAP_SECONDS",
                hint="A round must be able to outlast one silence.",
                id="threads.E003",
            )
        )
    return messages


@register()
def variables_are_readable(**_kwargs: Any) -> list[CheckMessage]:
    """Flags, database and gateway are given in a form that can be used."""
    messages: list[CheckMessage] = [
        Error(
            f"{name} is neither yes nor no",
            hint="Give 1, true, yes or on; or 0, false, no or off.",
            id="threads.E006",
        )
        for name in settings.UNREADABLE_FLAGS
    ]
    if settings.DATABASE_URL_ERROR:
        messages.append(
            Error(
                "DATABASE_URL cannot be read",
                hint="Give for example sqlite:////data/chat.sqlite3 or postgres://user@host/name.",
                id="threads.E004",
            )
        )
    if settings.CHAT_ROUND_ENGINE not in ("", "inprocess"):
        messages.append(
            Error(
                f"CHAT_ROUND_ENGINE is {settings.CHAT_ROUND_ENGINE!r}, which is not known",
                hint="Leave it out, or give inprocess.",
                id="threads.E007",
            )
        )
    base_url = settings.OPENAI_BASE_URL
    if base_url and not base_url.startswith(("http://", "https://")):
        messages.append(
            Error(
                f"OPENAI_BASE_URL is {base_url!r}, which is not an http address",
                hint="Give for example https://openrouter.ai/api/v1.",
                id="threads.E005",
            )
        )
    if base_url and not settings.OPENAI_API_KEY:
        messages.append(
            Warning(
                "OPENAI_BASE_URL is set and OPENAI_API_KEY is not",
                hint="Only a gateway that asks for no key will answer.",
                id="threads.W001",
            )
        )
    return messages
