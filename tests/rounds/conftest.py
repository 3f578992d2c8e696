"""What tests of rounds share."""

import logging

import pytest
from pytest_django import Settings

from tests.canaries import KEY
from tests.rounds.keys import VARIABLE

pytest.register_assert_rewrite(
    *(f"tests.rounds.{name}" for name in ("audit", "scene", "theatre", "watching"))
)

LOGGERS = (
    *("", "threads", "chatsite", "openai", "httpx2", "httpcore2", "asyncio"),
    *("django", "django.db.backends", "daphne", "channels", "twisted"),
)
"""Everybody who has something to say while a round runs."""


@pytest.fixture
def key(settings: Settings) -> str:
    """A key in the settings, under the name that `keyed` gives its gateway."""
    setattr(settings, VARIABLE, KEY)
    return KEY


@pytest.fixture
def loud(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Let every logger talk at every level."""
    for name in LOGGERS:
        caplog.set_level(logging.DEBUG, logger=name)
    return caplog


@pytest.fixture
def patient(settings: Settings, retries: None) -> None:
    """Calls are tried again after a wait so long that all can be looked at in it."""
    settings.CHAT_RETRY_WAITS = "30"
