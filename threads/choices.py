"""What a person may choose to be answered by: a model, or a route through several."""

from dataclasses import dataclass

from threads.endpoints import default_model, offered_models
from threads.models import LanguageModel, Route, RouteStep, Thread

ROUTE = "route:"
"""Begins the value of a route; that of a model is its number."""

LONGEST_NUMBER = 19
"""Digits of a number that every database can look for."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A model; or a route, and the model that it asks first."""

    model: LanguageModel
    route: Route | None = None

    @property
    def value(self) -> str:
        """What a form and a command line call it."""
        return value_of(self.model.pk, self.route)

    @property
    def name(self) -> str:
        """Its name in the language in force."""
        return (self.route or self.model).name

    @property
    def description(self) -> str:
        """What is to be known of it, in the language in force."""
        return (self.route or self.model).description


def value_of(model_id: int | None, route: Route | None) -> str:
    """Name what was chosen as a form does; empty where it has no row."""
    return f"{ROUTE}{route.slug}" if route is not None else str(model_id or "")


def offered_choices() -> list[Choice]:
    """The models that people may choose, and then the routes that have one to ask."""
    models = {model.pk: model for model in offered_models()}
    steps = (
        RouteStep.objects.filter(route__is_enabled=True)
        .select_related("route")
        .order_by("route__position", "route__slug", "position", "pk")
    )
    routes = dict[int, Choice]()
    for step in steps:
        if (model := models.get(step.model_id)) is not None:
            routes.setdefault(step.route_id, Choice(model, step.route))
    return [*map(Choice, models.values()), *routes.values()]


def offered_choice(value: str) -> Choice | None:
    """Return what a form or a command line names, if it is offered."""
    if value.startswith(ROUTE):
        return next((each for each in offered_choices() if each.value == value), None)
    model = offered_models().filter(pk=value).first() if _is_number(value) else None
    return None if model is None else Choice(model)


def _is_number(value: str) -> bool:
    return value.isascii() and value.isdecimal() and len(value) < LONGEST_NUMBER


def remembered(thread: Thread) -> Choice | None:
    """Return what a thread was asked with last.

    A route that is offered no longer is as if the thread had none; a model is
    asked nevertheless, so that its round says what has become of it.
    """
    if thread.route is not None:
        choice = offered_choice(value_of(None, thread.route))
        if choice is not None:
            return choice
    return None if thread.model is None else Choice(thread.model)


def remember(thread: Thread, choice: Choice) -> None:
    """Let a thread begin with this choice the next time."""
    if choice.route is not None:
        if choice.route.pk != thread.route_id:
            Thread.objects.filter(pk=thread.pk).update(route=choice.route)
    elif choice.model.pk != thread.model_id or thread.route_id is not None:
        Thread.objects.filter(pk=thread.pk).update(model=choice.model, route=None)


def default_choice() -> Choice | None:
    """What answers where nobody chose: a model, since a route is to be chosen."""
    model = default_model(offered_models())
    return None if model is None else Choice(model)


def start_of(choices: list[Choice], thread: Thread | None) -> Choice | None:
    """Return the one that a composer begins with: the thread's, else the default."""
    if thread is not None:
        wanted = [value_of(None, thread.route), value_of(thread.model_id, None)]
        for value in filter(None, wanted):
            for choice in choices:
                if choice.value == value:
                    return choice
    plain = {each.model.pk: each for each in choices if each.route is None}
    model = default_model(each.model for each in plain.values())
    return None if model is None else plain[model.pk]
