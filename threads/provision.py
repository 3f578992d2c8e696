"""Everything a first run needs, and every later run may repeat.

Creates what is missing and follows the environment; never overwrites what an
operator edited.
"""

import asyncio
import json
import logging
import re
from pathlib import Path

from babel.messages import mofile, pofile
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction

from threads import conf, localmodel
from threads.endpoints import endpoint_of
from threads.gateway.client import client_for, close_clients
from threads.models import Gateway, LanguageModel, Sentence
from threads.practice.models import PRACTICE_MODELS
from threads.sentences import ENGLISH

logger = logging.getLogger(__name__)

DISCOVERY_SECONDS = 5.0
DISCOVERY_LIMIT = 200
OPENAI = "https://api.openai.com/v1"
FIRST_OPERATOR = "operator"
FIXTURES = Path(__file__).parent / "fixtures"


def compile_catalogues(root: Path) -> int:
    """Compile each `.po` below `root` that is newer than its `.mo`.

    Babel does it, so that no machine needs gettext's tools.

    Returns:
        How many were compiled.
    """
    count = 0
    for source in sorted(root.glob("*/LC_MESSAGES/*.po")):
        target = source.with_suffix(".mo")
        if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
            continue
        with source.open("rb") as file:
            catalogue = pofile.read_po(file)
        with target.open("wb") as file:
            mofile.write_mo(file, catalogue)
        count += 1
    return count


@transaction.atomic
def load_catalogue() -> None:
    """Make a row for every sentence, empty: an operator's words go there.

    A release's own words stay in the code and its fixture, so a later release can
    better them without touching what was edited.
    """
    known = set(Sentence.objects.values_list("key", flat=True))
    Sentence.objects.bulk_create(
        Sentence(key=key) for key in ENGLISH if key not in known
    )


@transaction.atomic
def follow_environment() -> None:
    """Make the gateways and models that the environment asks for.

    With a real gateway the practice gateway is switched off, and on without one.
    """
    real = conf.gateway_configured()
    practice, _ = Gateway.objects.get_or_create(
        slug="practice",
        defaults={"name": "Practice gateway", "base_url": "", "is_practice": True},
    )
    if practice.is_enabled == real:
        practice.is_enabled = not real
        practice.save(update_fields=["is_enabled"])
    if not real:
        _offer_practice(practice)
        return
    gateway, _ = Gateway.objects.update_or_create(
        slug="environment",
        defaults={"base_url": settings.OPENAI_BASE_URL or OPENAI, "is_enabled": True},
        create_defaults={
            "name": "Gateway",
            "base_url": settings.OPENAI_BASE_URL or OPENAI,
            "key_variable": "OPENAI_API_KEY",
        },
    )
    if settings.CHAT_MODEL:
        model, _ = LanguageModel.objects.get_or_create(
            gateway=gateway,
            wire_id=settings.CHAT_MODEL,
            defaults={"name": settings.CHAT_MODEL, "position": 1},
        )
        _make_default(model)


def _offer_practice(gateway: Gateway) -> None:
    words = json.loads((FIXTURES / "practice.json").read_text("utf-8"))
    known = set(gateway.models.values_list("wire_id", flat=True))
    LanguageModel.objects.bulk_create(
        LanguageModel(
            gateway=gateway,
            wire_id=model.wire_id,
            name=model.name,
            description=model.description,
            position=place,
            **{
                f"{field}_{language.replace('-', '_')}": text
                for language, fields in words.get(model.wire_id, {}).items()
                for field, text in fields.items()
            },
        )
        for place, model in enumerate(PRACTICE_MODELS, 1)
        if model.wire_id not in known
    )
    default = LanguageModel.objects.filter(is_default=True, gateway__is_enabled=True)
    if not default.exists():
        _make_default(gateway.models.get(wire_id=PRACTICE_MODELS[0].wire_id))


def _make_default(model: LanguageModel) -> None:
    LanguageModel.objects.filter(is_default=True).exclude(pk=model.pk).update(
        is_default=False
    )
    LanguageModel.objects.filter(pk=model.pk).update(is_default=True)


@transaction.atomic
def offer_local_model(base_url: str) -> None:
    """List the model that runs on this machine, at the address it has this time."""
    gateway, _ = Gateway.objects.update_or_create(
        slug="local",
        defaults={"base_url": base_url, "is_enabled": True},
        create_defaults={"name": "This machine", "base_url": base_url},
    )
    LanguageModel.objects.get_or_create(
        gateway=gateway,
        wire_id=localmodel.WIRE_ID,
        defaults={
            "name": localmodel.NAME,
            "description": localmodel.DESCRIPTION,
            "position": 0,
            "context_window": localmodel.CONTEXT_TOKENS,
        },
    )


def withdraw_local_model() -> None:
    """Offer the local model no longer."""
    Gateway.objects.filter(slug="local").update(is_enabled=False)


def discover_models() -> int:
    """Ask a real gateway that has no model here yet which ones it serves.

    Bounded; a gateway that does not tell is left as it is.

    Returns:
        How many models were added.
    """
    gateway = Gateway.objects.filter(slug="environment", is_enabled=True).first()
    if gateway is None or gateway.models.exists():
        return 0
    wire_ids = asyncio.run(_listed(LanguageModel(gateway=gateway)))
    models = [
        LanguageModel(
            gateway=gateway, wire_id=wire_id, name=wire_id[:100], position=place
        )
        for place, wire_id in enumerate(wire_ids[:DISCOVERY_LIMIT], 1)
    ]
    LanguageModel.objects.bulk_create(models)
    if models:
        _make_default(
            LanguageModel.objects.get(gateway=gateway, wire_id=models[0].wire_id)
        )
    return len(models)


async def _listed(model: LanguageModel) -> list[str]:
    endpoint = endpoint_of(model)
    if endpoint is None:
        return []
    try:
        return await client_for(endpoint).list_models(seconds=DISCOVERY_SECONDS)
    finally:
        await close_clients()


def first_operator() -> User | None:
    """Return the first account of the site until its owner has signed in once.

    Made if the site has no operator; it has no password until one is set. None
    once an operator has been here.
    """
    operators = get_user_model().objects.filter(is_superuser=True)
    if not operators.exists():
        user = get_user_model()(
            username=_free_name(FIRST_OPERATOR), is_staff=True, is_superuser=True
        )
        user.set_unusable_password()
        user.save()
        return user
    waiting = operators.filter(last_login=None).order_by("pk").first()
    if (
        waiting is None
        or waiting.has_usable_password()
        or operators.exclude(last_login=None).exists()
    ):
        return None
    return waiting


def _free_name(wanted: str) -> str:
    taken = set(get_user_model().objects.values_list("username", flat=True))
    names = (
        wanted if number == 1 else f"{wanted}-{number}"
        for number in range(1, len(taken) + 2)
    )
    return next(name for name in names if name not in taken)


def user_named(name: str) -> User:
    """Return the account of an unattended caller, made without a password if new.

    Raises:
        ValueError: the name cannot be a user name.
    """
    if not re.fullmatch(r"[\w.@+-]{1,150}", name):
        raise ValueError(f"{name!r} cannot be a user name")
    user, made = get_user_model().objects.get_or_create(username=name)
    if made:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user
