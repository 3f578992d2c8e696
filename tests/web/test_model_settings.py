"""What an operator may say of a model, and what its gateway's list says of it."""

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ValidationError
from pytest_django import Settings

from tests.conftest import model_now
from tests.fakegateway import FakeGateway, reply
from threads.models import LanguageModel
from threads.provision import discover_models, follow_environment

LIST = reply(
    200,
    {
        "data": [
            {"id": "new", "context_length": 8192, "supported_parameters": ["tools"]},
            {"id": "thinks", "reasoning": {"mandatory": True}, "max_model_len": 512},
            {"id": "silent"},
        ]
    },
)


@sync_to_async
def found(*, chosen: str = "", settings: Settings, base_url: str) -> tuple[int, object]:
    """Provision a site of that environment; what was added, and the models then."""
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = base_url, "sk-none"
    settings.CHAT_MODEL = chosen
    follow_environment()
    added = discover_models()
    fields = ("wire_id", "context_window", "uses_tools", "reasoning_effort")
    return added, list(
        LanguageModel.objects.filter(gateway__slug="environment")
        .order_by("position")
        .values_list(*fields)
    )


@pytest.mark.django_db(transaction=True)
async def test_a_first_run_takes_over_what_the_gateway_lists(
    gateway: FakeGateway, settings: Settings
) -> None:
    gateway.play(LIST)

    added, models = await found(settings=settings, base_url=gateway.base_url)

    assert added == 3
    assert models == [
        ("new", 8192, True, ""),
        ("thinks", 512, None, "omit"),
        ("silent", None, None, ""),
    ]


@pytest.mark.django_db(transaction=True)
async def test_the_chosen_model_is_filled_in_and_no_operator_is_overruled(
    gateway: FakeGateway, settings: Settings
) -> None:
    gateway.play(LIST)
    setup = {"settings": settings, "base_url": gateway.base_url}

    assert await found(chosen="new", **setup) == (0, [("new", 8192, True, "")])  # type: ignore[arg-type]
    await LanguageModel.objects.aupdate(context_window=100, uses_tools=None)
    assert await found(chosen="new", **setup) == (0, [("new", 100, True, "")])  # type: ignore[arg-type]
    await LanguageModel.objects.aupdate(context_window=None, uses_tools=False)
    assert await found(chosen="new", **setup) == (0, [("new", 8192, False, "")])  # type: ignore[arg-type]
    assert len(gateway.requests) == 3
    # Nothing is left to learn, so nobody is asked.
    await found(chosen="new", **setup)  # type: ignore[arg-type]
    assert len(gateway.requests) == 3


@pytest.mark.parametrize(
    ("extras", "problem"),
    [
        ({"provider": {"order": ["a"]}}, ""),
        (None, ""),
        ([], ""),
        ([1], "a JSON object"),
        ("x", "a JSON object"),
        ({"n": float("nan")}, "cannot be sent"),
        ({"n": "\ud800"}, "cannot be sent"),
        ({"tools": [], "n": 1, "model": "x"}, "model, tools"),
        ({"messages": []}, "messages"),
        ({"stream": False}, "stream"),
    ],
)
@pytest.mark.django_db
def test_what_an_operator_adds_has_to_be_the_operator_s_to_say(
    extras: object, problem: str
) -> None:
    model = model_now("some/model", "http://127.0.0.1:9/v1")
    model.request_extras = extras

    if problem:
        with pytest.raises(ValidationError, match=problem):
            model.full_clean()
    else:
        model.full_clean()
        model.save()
        model.refresh_from_db()
        assert model.override.extras == (extras or {})
