"""A fake gateway, and the promise that no call leaves anything behind."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI

from tests.fakegateway import FakeGateway
from tests.loopback import loopback_client
from threads.gateway.clients import close_clients


@pytest.fixture
async def gateway() -> AsyncIterator[FakeGateway]:
    async with FakeGateway() as gateway:
        yield gateway


@pytest.fixture
async def sdk(gateway: FakeGateway) -> AsyncIterator[AsyncOpenAI]:
    """The SDK as it comes; only proxies are left out."""
    async with AsyncOpenAI(
        base_url=gateway.base_url, api_key="sk-raw", http_client=loopback_client()
    ) as sdk:
        yield sdk


@pytest.fixture(autouse=True)
async def _nothing_is_left_behind() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    await close_clients()
    if left := asyncio.all_tasks() - before - {asyncio.current_task()}:
        # The SDK leaves a generator to the garbage collector; that ends by itself.
        await asyncio.wait(left, timeout=1)
    assert [repr(task) for task in left if not task.done()] == []
