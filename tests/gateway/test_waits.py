"""What a refusal asks us to wait, measured from its arrival, over a real socket."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tests.fakegateway import FakeGateway, reply
from tests.gateway.calling import answered

NOW = datetime.now(UTC)
BAD = {"error": {"message": "bad"}}


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "300"}, 300, 300),
        ({"retry-after-ms": "300500"}, 300.5, 300.5),
        ({"retry-after": format_datetime(NOW + timedelta(hours=9))}, 1, 9 * 3600),
        (
            {
                "retry-after": format_datetime(NOW + timedelta(days=400)),
                "date": format_datetime(NOW + timedelta(days=400, seconds=-150)),
            },
            150,
            150,
        ),
    ],
    ids=["seconds", "milliseconds", "a moment", "a moment of a wrong clock"],
)
async def test_a_wait_that_a_refusal_asks_for_is_in_the_verdict(
    gateway: FakeGateway, headers: dict[str, str], least: float, most: float
) -> None:
    refused = reply(429, BAD, headers=headers | {"x-should-retry": "false"})

    wait = (await answered(gateway, refused)).verdict.retry_after_seconds

    assert wait is not None
    assert least <= wait <= most


async def test_an_accepted_stream_asks_for_no_wait(gateway: FakeGateway) -> None:
    error = reply(200, {"error": {"code": 429, "retry_after": 7}})

    assert (await answered(gateway, error)).verdict.retry_after_seconds == 7.0
