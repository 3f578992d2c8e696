"""A practice gateway that hurries, and a client of it that honours no proxy."""

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from tests.loopback import loopback_client
from threads.practice.app import PracticeApp
from threads.practice.server import PracticeServer


@pytest.fixture
def base_url() -> Iterator[str]:
    with PracticeServer(PracticeApp(pace=0)) as server:
        yield server.base_url


@pytest.fixture
async def client(base_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with loopback_client(base_url=base_url) as client:
        yield client
