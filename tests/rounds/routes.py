"""Routes for tests: models at fake gateways, asked one after another."""

from typing import Any

from asgiref.sync import sync_to_async

from tests.conftest import model_now
from tests.fakegateway import DONE, FakeGateway, Script, chunk, reply
from tests.rounds.helpers import answered
from threads.models import Cell, LanguageModel, Route, RouteStep, Thread

MISSING = reply(404, {"error": {"code": "model_not_found", "message": "No such model"}})
SAID = Script(
    chunk(content="Good day.", model="vendor/second-2026-01-05"),
    chunk(finish="stop"),
    DONE,
)
NAMES = ("vendor/first", "vendor/second", "vendor/third")


def route_of(*models: LanguageModel, **policy: Any) -> Route:
    """A route through these models."""
    route = Route.objects.create(slug="surely", name="Surely answered", **policy)
    RouteStep.objects.bulk_create(
        RouteStep(route=route, model=model, position=place)
        for place, model in enumerate(models, 1)
    )
    return route


def through_now(*gateways: FakeGateway, **policy: Any) -> list[LanguageModel]:
    """The models of a route: one of each gateway, in this order."""
    models = [
        model_now(name, gateway.base_url)
        for name, gateway in zip(NAMES, gateways, strict=False)
    ]
    route_of(*models, **policy)
    return models


through = sync_to_async(through_now)


async def asked_along(thread: Thread, **more: Any) -> Cell:
    """Ask the route, wait for the end, and return the answer's cell."""
    route = await Route.objects.aget()
    step = await RouteStep.objects.select_related("model").order_by("position").afirst()
    assert step is not None
    return await answered(thread, step.model, route=route, **more)
