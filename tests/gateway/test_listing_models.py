"""What a gateway lists: read where it is a list, and nothing where it is not."""

import pytest

from tests.fakegateway import FakeGateway, Script, reply
from tests.gateway.calling import request_to
from threads.gateway.clients import leased
from threads.gateway.listing import ListedModel


async def listed(gateway: FakeGateway) -> list[ListedModel]:
    endpoint = request_to(gateway.base_url).endpoint
    with leased(endpoint) as client:
        return await client.list_models(seconds=10)


async def test_the_wire_ids_are_read(gateway: FakeGateway) -> None:
    rows = [{"id": "one"}, {"id": ""}, {"id": 7}, {}, None, {"id": "two", "more": 1}]
    gateway.play(reply(200, {"object": "list", "data": rows}))

    assert await listed(gateway) == [ListedModel("one"), ListedModel("two")]


@pytest.mark.parametrize(
    ("said", "window", "uses_tools", "must_reason"),
    [
        ({"context_length": 8192, "supported_parameters": ["tools"]}, 8192, True, False),
        ({"context_length": 0, "supported_parameters": ["top_p"]}, None, False, False),
        ({"max_model_len": 40_960, "supported_parameters": []}, 40_960, None, False),
        ({"context_window": 131_072, "reasoning": {"mandatory": True}}, 131_072, None, True),
        (
            {"max_context_length": 32_768, "capabilities": {"function_calling": True}},
            *(32_768, True, False),
        ),
        ({"max_context_length": 1, "capabilities": {"function_calling": 1}}, 1, None, False),
        ({"context_length": True, "max_model_len": 512, "reasoning": True}, 512, None, False),
        ({"context_length": "8192", "context_window": -1}, None, None, False),
        ({"context_length": 10**30, "capabilities": ["function_calling"]}, None, None, False),
    ],
    ids=range(9),
)  # fmt: skip
async def test_what_a_gateway_says_of_a_model_is_read_in_its_own_words(
    gateway: FakeGateway,
    said: dict[str, object],
    window: int | None,
    uses_tools: bool | None,
    must_reason: bool,
) -> None:
    gateway.play(reply(200, {"data": [{"id": "one"} | said]}))

    assert await listed(gateway) == [
        ListedModel("one", window, uses_tools, must_reason)
    ]


@pytest.mark.parametrize(
    "body", [{}, {"data": None}, {"data": "x"}, [], [None], "models", 3, None]
)
async def test_what_is_no_list_lists_nothing(
    gateway: FakeGateway, body: object
) -> None:
    gateway.play(reply(200, body))

    assert await listed(gateway) == []


@pytest.mark.parametrize("text", ["", "<html>", "[" * 100_000, '{"data": ['])
@pytest.mark.parametrize("charset", ["utf-8", "zlib", "nonsense"])
async def test_what_cannot_be_read_lists_nothing(
    gateway: FakeGateway, text: str, charset: str
) -> None:
    kind = {"content-type": f"application/json; charset={charset}"}
    gateway.play(Script(text, headers=kind, framing="length"))

    assert await listed(gateway) == []


async def test_a_gateway_that_is_not_there_lists_nothing() -> None:
    endpoint = request_to("http://127.0.0.1:9/v1").endpoint

    with leased(endpoint) as client:
        assert await client.list_models(seconds=10) == []
