"""The clients of each event loop: one an endpoint, so that connections are shared.

A client whose connection broke or fell silent is retired: whoever uses it goes on,
everybody else gets a new one. What else lies in its pool may be as dead, and only
a request would show it (requirement A19).
"""

import asyncio
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from threads.gateway.client import Endpoint, GatewayClient
from threads.gateway.transport import CLOSE_SECONDS, close_quietly


@dataclass(slots=True)
class _Clients:
    """`users` counts who is using a client that may have been retired."""

    current: dict[Endpoint, GatewayClient] = field(default_factory=dict)
    users: dict[GatewayClient, int] = field(default_factory=dict)
    closing: set[asyncio.Task[None]] = field(default_factory=set)


_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Clients] = (
    weakref.WeakKeyDictionary()
)


def _here() -> _Clients:
    return _loops.setdefault(asyncio.get_running_loop(), _Clients())


@contextmanager
def leased(endpoint: Endpoint) -> Iterator[GatewayClient]:
    """Lend this loop's client for an endpoint; it is not closed meanwhile."""
    clients = _here()
    if endpoint not in clients.current:
        clients.current[endpoint] = GatewayClient(endpoint)
    client = clients.current[endpoint]
    clients.users[client] = clients.users.get(client, 0) + 1
    try:
        yield client
    finally:
        clients.users[client] -= 1
        if not clients.users[client]:
            del clients.users[client]
            if clients.current.get(endpoint) is not client:
                _close_soon(client, clients)


def retire(client: GatewayClient) -> None:
    """Let nobody else have this client, and close it once nobody uses it.

    Call it while the client is lent.
    """
    current = _here().current
    if current.get(client.endpoint) is client:
        del current[client.endpoint]


def _close_soon(client: GatewayClient, clients: _Clients) -> None:
    task = asyncio.ensure_future(close_quietly(client.aclose, seconds=CLOSE_SECONDS))
    clients.closing.add(task)
    task.add_done_callback(clients.closing.discard)


async def close_clients() -> None:
    """Close the clients of the running loop."""
    clients = _loops.pop(asyncio.get_running_loop(), None)
    if clients is None:
        return
    for client in {*clients.current.values(), *clients.users}:
        await close_quietly(client.aclose, seconds=CLOSE_SECONDS)
    if clients.closing:
        await asyncio.wait(clients.closing)
