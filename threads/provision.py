"""Everything a first run needs, and every later run may repeat.

Creates what is missing and follows the environment; never overwrites what an
operator edited.
"""

import asyncio
import json
import logging
import re
from collections.abc import Iterable
from pathlib import Path

from babel.messages import mofile, pofile
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from threads import conf, localmodel
from threads.endpoints import (
    ENVIRONMENT,
    LOCAL,
    PRACTICE,
    endpoint_of,
    environment_url,
    gateways_in_force,
)
from threads.gateway.client import Endpoint, GatewayClient
from threads.gateway.listing import ListedModel
from threads.models import Gateway, LanguageModel, Route, RouteStep, Sentence
from threads.practice.models import PRACTICE_MODELS
from threads.sentences import ENGLISH

logger = logging.getLogger(__name__)

DISCOVERY_SECONDS = 5.0
DISCOVERY_LIMIT = 200
FIRST_OPERATOR = "operator"
PRACTICE_ROUTE = "practice-second"
ROUTE_NAME = "Second model answers"
ROUTE_DESCRIPTION = "The first model fails before a word; the next one answers."
PRACTICE_STEPS = ("practice/error-first", "practice/steady")
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


def ensure_gateways() -> tuple[Gateway, Gateway]:
    """Make the rows of the practice gateway and of the environment's, if missing.

    Which of them is asked is decided by `threads.endpoints`, never stored.
    """
    practice, _ = Gateway.objects.get_or_create(
        slug=PRACTICE, defaults={"name": "Practice gateway", "is_practice": True}
    )
    environment, _ = Gateway.objects.get_or_create(
        slug=ENVIRONMENT, defaults={"name": "Gateway", "key_variable": "OPENAI_API_KEY"}
    )
    return practice, environment


@transaction.atomic
def follow_environment() -> None:
    """List the models that the environment asks for."""
    practice, environment = ensure_gateways()
    if not conf.gateway_configured():
        _offer_practice(practice)
        return
    Gateway.objects.filter(pk=environment.pk).update(base_url=environment_url())
    if settings.CHAT_MODEL:
        LanguageModel.objects.get_or_create(
            gateway=environment,
            wire_id=settings.CHAT_MODEL,
            defaults={"name": settings.CHAT_MODEL[:100], "position": 1},
        )


def _offer_practice(gateway: Gateway) -> None:
    words = _practice_words()
    known = {model.wire_id: model for model in gateway.models.all()}
    LanguageModel.objects.bulk_create(
        LanguageModel(
            gateway=gateway,
            wire_id=model.wire_id,
            name=model.name,
            description=model.description,
            position=place,
            **words.get(model.wire_id, {}),
        )
        for place, model in enumerate(PRACTICE_MODELS, 1)
        if model.wire_id not in known
    )
    for wire_id, model in known.items():
        _add_words(model, words.get(wire_id, {}))
    _offer_practice_route(gateway, words.get(PRACTICE_ROUTE, {}))


def _add_words(row: LanguageModel | Route, words: dict[str, str]) -> None:
    """Fill in what is missing: a release may bring a language, and what an operator
    wrote stays as it is."""
    missing = {name: text for name, text in words.items() if not getattr(row, name)}
    if missing:
        type(row).objects.filter(pk=row.pk).update(**missing)


def _offer_practice_route(gateway: Gateway, words: dict[str, str]) -> None:
    """Make a route in which the second model answers.

    Once: an operator's own steps stay, and so does a route without any.
    """
    route, is_new = Route.objects.get_or_create(
        slug=PRACTICE_ROUTE,
        defaults={"name": ROUTE_NAME, "description": ROUTE_DESCRIPTION},
    )
    _add_words(route, words)
    if is_new:
        models = {model.wire_id: model for model in gateway.models.all()}
        RouteStep.objects.bulk_create(
            RouteStep(route=route, model=models[wire_id], position=place)
            for place, wire_id in enumerate(PRACTICE_STEPS, 1)
            if wire_id in models
        )


def _practice_words() -> dict[str, dict[str, str]]:
    """Read the translations of the practice models: wire id to column to text."""
    fixture: dict[str, dict[str, dict[str, str]]] = json.loads(
        (FIXTURES / "practice.json").read_text("utf-8")
    )
    return {
        wire_id: {
            f"{field}_{language.replace('-', '_')}": text
            for language, fields in languages.items()
            for field, text in fields.items()
        }
        for wire_id, languages in fixture.items()
    }


@transaction.atomic
def offer_local_model(base_url: str) -> None:
    """List the model that runs on this machine, at the address it has this time."""
    gateway, _ = Gateway.objects.update_or_create(
        slug=LOCAL,
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
    Gateway.objects.filter(slug=LOCAL).update(is_enabled=False)


def discover_models() -> int:
    """Ask real gateways which models they serve, and what those can.

    Models are added to the environment's gateway while it has none; of models that
    are here, only what nobody has set is filled in. Bounded; a gateway that does not
    tell is left as it is.

    Returns:
        How many models were added.
    """
    real = gateways_in_force().exclude(is_practice=True).exclude(slug=LOCAL)
    asked = {gateway: _asked_at(gateway) for gateway in real}
    endpoints = {gateway: at for gateway, at in asked.items() if at is not None}
    lists = asyncio.run(_all_listed(endpoints.values()))
    added = 0
    for gateway, listed in zip(endpoints, lists, strict=True):
        if gateway.models.exists():
            _fill_in(gateway, listed)
        else:
            added += _add(gateway, listed[:DISCOVERY_LIMIT])
    return added


UNSET = Q(context_window=None) | Q(uses_tools=None)


def _asked_at(gateway: Gateway) -> Endpoint | None:
    """Where a gateway is asked for its list; None where that would tell us nothing."""
    model = gateway.models.filter(UNSET, is_enabled=True).first()
    if model is not None:
        return endpoint_of(model)
    is_new = gateway.slug == ENVIRONMENT and not gateway.models.exists()
    return endpoint_of(None) if is_new else None


def _add(gateway: Gateway, listed: list[ListedModel]) -> int:
    models = [
        LanguageModel(
            gateway=gateway,
            wire_id=model.wire_id,
            name=model.wire_id[:100],
            position=place,
            context_window=model.context_window,
            uses_tools=model.uses_tools,
            reasoning_effort=_effort(model),
        )
        for place, model in enumerate(listed, 1)
    ]
    return len(LanguageModel.objects.bulk_create(models))


def _fill_in(gateway: Gateway, listed: list[ListedModel]) -> None:
    """Say of known models what nobody has set; each value only where it is empty."""
    said = {model.wire_id: model for model in listed}
    for row in gateway.models.filter(UNSET):
        model = said.get(row.wire_id)
        if model is None:
            continue
        if row.context_window is None and row.uses_tools is None:
            row.reasoning_effort = row.reasoning_effort or _effort(model)
        if row.context_window is None:
            row.context_window = model.context_window
        if row.uses_tools is None:
            row.uses_tools = model.uses_tools
        row.save(update_fields=["context_window", "uses_tools", "reasoning_effort"])


def _effort(model: ListedModel) -> LanguageModel.Effort:
    """A model that has to reason is not told how much (classifier, Q2)."""
    effort = LanguageModel.Effort
    return effort.OMIT if model.must_reason else effort.NEEDED


async def _all_listed(endpoints: Iterable[Endpoint]) -> list[list[ListedModel]]:
    return await asyncio.gather(*(_listed(endpoint) for endpoint in endpoints))


async def _listed(endpoint: Endpoint) -> list[ListedModel]:
    client = GatewayClient(endpoint)
    try:
        return await client.list_models(seconds=DISCOVERY_SECONDS)
    finally:
        await client.aclose()


def operator_without_password() -> User | None:
    """Return the operator who can sign in by a link only.

    Made if the site has no operator at all. None once any operator has a
    password: then nobody is locked out, and no link need be printed.
    """
    operators = (
        get_user_model()
        .objects.filter(is_superuser=True, is_active=True)
        .order_by("pk")
    )
    if not operators.exists():
        user = get_user_model()(
            username=_free_name(FIRST_OPERATOR), is_staff=True, is_superuser=True
        )
        user.set_unusable_password()
        user.save()
        return user
    if any(operator.has_usable_password() for operator in operators):
        return None
    return operators.first()


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
