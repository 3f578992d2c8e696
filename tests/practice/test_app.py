"""What the gateway says to requests that name no script: lists and refusals."""

import json

import httpx2
import pytest

from tests.practice.wiretap import PATH, asking, listen
from threads.practice.app import PracticeApp
from threads.practice.models import PRACTICE_MODELS


async def test_the_models_are_listed_with_what_will_be_seen(
    client: httpx2.AsyncClient,
) -> None:
    response = await client.get("/models")

    listed = response.json()
    assert listed["object"] == "list"
    assert [(model["id"], model["description"]) for model in listed["data"]] == [
        (model.wire_id, model.description) for model in PRACTICE_MODELS
    ]
    assert {model["object"] for model in listed["data"]} == {"model"}


async def test_one_model_can_be_looked_up(client: httpx2.AsyncClient) -> None:
    known = await client.get("/models/practice/steady")
    unknown = await client.get("/models/practice/nobody")

    assert known.json()["id"] == "practice/steady"
    assert unknown.status_code == 404


async def test_an_unknown_model_is_not_found(client: httpx2.AsyncClient) -> None:
    response = await client.post(PATH, json=asking("practice/nobody"))

    assert response.status_code == 404
    error = response.json()["error"]
    assert error["code"] == "model_not_found"
    assert error["type"] == "invalid_request_error"
    assert "`practice/nobody`" in error["message"]


HELLO = [{"role": "user", "content": "Hello"}]
MALFORMED: list[tuple[str, str | None]] = [
    ("", None),
    ("{", None),
    ("[" * 100_000, None),
    ("[]", None),
    (json.dumps({"messages": HELLO}), "model"),
    (json.dumps({"model": 7, "messages": HELLO}), "model"),
    (json.dumps({"model": "practice/steady"}), "messages"),
    (json.dumps({"model": "practice/steady", "messages": []}), "messages"),
    (json.dumps({"model": "m", "messages": ["Hello"]}), "messages[0]"),
    (json.dumps({"model": "m", "messages": [{"role": None}]}), "messages[0]"),
    (
        json.dumps({"model": "m", "messages": [{"role": "user", "content": 5}]}),
        "messages[0]",
    ),
    (json.dumps({"model": "m", "messages": HELLO, "stream": "yes"}), "stream"),
    (json.dumps({"model": "m", "messages": HELLO, "tools": {}}), "tools"),
    (
        json.dumps({"model": "m", "messages": HELLO, "stream_options": 1}),
        "stream_options",
    ),
]


@pytest.mark.parametrize(("body", "param"), MALFORMED)
async def test_a_malformed_request_is_told_what_is_wrong(
    client: httpx2.AsyncClient, body: str, param: str | None
) -> None:
    response = await client.post(PATH, content=body)

    assert response.status_code == 400
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert error["message"]


async def test_odd_parts_of_a_request_are_overlooked(
    client: httpx2.AsyncClient,
) -> None:
    messages = [
        {"role": "assistant", "content": None, "tool_calls": ["?"]},
        {"role": "user", "content": ["?", {"type": "image_url"}, {"text": "Hi"}]},
    ]
    body = asking("practice/tools", tools=["?", {"function": "?"}])

    wire = await listen(client, body | {"messages": messages})

    assert wire.finish_reasons == ["stop"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/chat/completions", 405),
        ("HEAD", "/chat/completions", 405),
        ("POST", "/models", 405),
        ("GET", "/responses", 404),
        ("GET", "/%2e%2e/%ff", 404),
    ],
)
async def test_other_addresses_are_refused(
    client: httpx2.AsyncClient, method: str, path: str, status: int
) -> None:
    response = await client.request(method, path)

    assert response.status_code == status
    assert method == "HEAD" or response.json()["error"]["message"]


async def test_the_app_serves_http_alone() -> None:
    async def receive() -> dict[str, object]:
        raise AssertionError

    async def send(message: dict[str, object]) -> None:
        raise AssertionError(message)

    with pytest.raises(ValueError, match="lifespan"):
        await PracticeApp()({"type": "lifespan"}, receive, send)
