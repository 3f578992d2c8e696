"""What a gateway lists: read where it is a list, and nothing where it is not."""

import pytest

from tests.fakegateway import FakeGateway, Script, reply
from tests.gateway.calling import request_to
from threads.gateway.clients import leased


async def listed(gateway: FakeGateway) -> list[str]:
    endpoint = request_to(gateway.base_url).endpoint
    with leased(endpoint) as client:
        return await client.list_models(seconds=10)


async def test_the_wire_ids_are_read(gateway: FakeGateway) -> None:
    rows = [{"id": "one"}, {"id": ""}, {"id": 7}, {}, None, {"id": "two", "more": 1}]
    gateway.play(reply(200, {"object": "list", "data": rows}))

    assert await listed(gateway) == ["one", "two"]


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
