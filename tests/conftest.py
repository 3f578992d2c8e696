"""What tests share: people, gateways, a running site. Nothing of ours is mocked."""

import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import translation
from pytest_django import Settings

from tests.canaries import APART, CANARY, OURS, CanaryNet
from tests.fakegateway import FakeGateway
from tests.hurry import hurry
from threads.models import Gateway, LanguageModel, Thread
from threads.practice.app import PracticeApp
from threads.practice.server import PracticeServer
from threads.rounds import engine
from threads.rounds.database import WRITER

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 20.0


def pytest_configure(config: pytest.Config) -> None:
    """Give each process of a run its own `--log-file`: they would overwrite one."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and config.option.log_file:
        config.option.log_file += f".{worker}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long, so that none is alone at the end."""
    long = {
        item.path
        for item in items
        if item.get_closest_marker("long")
        or "site" in getattr(item, "fixturenames", ())
    }
    items.sort(key=lambda item: item.path not in long)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Begin the next test when all is done that this one left to the writing thread.

    A round that a view starts ends with the request's loop, if that is the test
    client's, and leaves its claim there. Where the test is rolled back, the next
    test's round has the same number, and would be taken by nobody.
    """
    try:
        yield
    finally:
        WRITER.submit(int).result(PATIENCE_SECONDS)


@pytest.fixture(scope="session", autouse=True)
def canary_net() -> Iterator[CanaryNet]:
    """Hang the net under all loggers, our own at every level, for the whole run."""
    net = CanaryNet()
    for name in OURS:
        logging.getLogger(name).setLevel(logging.DEBUG)
    for name in ("", *APART):
        logging.getLogger(name).addHandler(net)
    yield net
    for name in ("", *APART):
        logging.getLogger(name).removeHandler(net)
    assert net.take() == []


@pytest.fixture(autouse=True)
def _no_canary_reaches_a_log(canary_net: CanaryNet) -> Iterator[None]:
    """Fail the test during which a record carried a prompt, an answer or a key."""
    yield
    assert canary_net.take() == []


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give each run a SQLite file of its own: runs side by side do not meet.

    A file, since threads and a site in another process use it too.
    """
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        name = tmp_path_factory.mktemp("database") / "test.sqlite3"
        settings["TEST"]["NAME"] = str(name)


@pytest.fixture(autouse=True)
def _no_call_is_tried_again(settings: Settings) -> None:
    """Endings are looked at one by one; tests of recovery switch it on (`retries`)."""
    settings.CHAT_CALL_RETRIES = "0"


@pytest.fixture
def retries(settings: Settings) -> None:
    """Calls may be tried again twice, at once: waits are looked at by themselves."""
    settings.CHAT_CALL_RETRIES = "2"
    settings.CHAT_RETRY_WAITS = "0.01,0.02"


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Begin every test in English, whatever language another one left behind."""
    with translation.override("en"):
        yield


@pytest.fixture(scope="session", autouse=True)
def _quick() -> Iterator[None]:
    """Spare what takes long and what no test is about."""
    with pytest.MonkeyPatch.context() as patch:
        hurry(patch)
        yield


def person(name: str, password: str) -> User:
    """Make an account."""
    return User.objects.create(username=name, password=make_password(password))


@pytest.fixture
def alice(db: None) -> User:
    """The owner; her password is "wonderland"."""
    return person("alice", "wonderland")


@pytest.fixture
def bob(db: None) -> User:
    """A stranger; his password is "builder"."""
    return person("bob", "builder")


@pytest.fixture
def thread(alice: User) -> Thread:
    """A thread of Alice's, empty."""
    return Thread.objects.create(owner=alice)


@pytest.fixture(scope="session")
def practice_url() -> Iterator[str]:
    """A practice gateway that hurries: its answers come twenty times as fast."""
    with PracticeServer(PracticeApp(pace=0.05)) as server:
        yield server.base_url


def model_now(
    wire_id: str, base_url: str, *, is_practice: bool = False
) -> LanguageModel:
    """Return a model at a gateway of that address, both made if need be."""
    gateway, _ = Gateway.objects.get_or_create(
        base_url=base_url,
        defaults={
            "slug": f"gateway-{Gateway.objects.count()}",
            "name": "Test gateway",
            "is_practice": is_practice,
        },
    )
    model, _ = LanguageModel.objects.get_or_create(
        gateway=gateway,
        wire_id=wire_id,
        defaults={"name": wire_id, "uses_tools": True},
    )
    return model


model_at = sync_to_async(model_now)


@pytest.fixture
def steady(db: None, practice_url: str) -> LanguageModel:
    """A practice model that answers as it should."""
    return model_now("practice/steady", practice_url)


@pytest_asyncio.fixture
async def gateway() -> AsyncIterator[FakeGateway]:
    """A gateway that plays scripts, on the test's own loop."""
    async with FakeGateway() as fake:
        yield fake


@pytest_asyncio.fixture
async def rounds(transactional_db: None) -> AsyncIterator[None]:
    """Rounds may run on the test's loop; what still runs at its end is ended."""
    yield
    await engine.shutdown()


@dataclass
class Site:
    """The site in a process of its own, on a loopback port, with the test's database."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket_url(self) -> str:
        """The same for sockets."""
        return f"ws://127.0.0.1:{self.port}"

    def sign_in(self, user: User) -> dict[str, str]:
        """Return the headers with which this person's browser would come."""
        client = Client()
        client.force_login(user)
        session, token = client.cookies["sessionid"].value, "t" * 32
        return {
            "Cookie": f"sessionid={session}; csrftoken={token}",
            "X-CSRFToken": token,
            "Origin": self.url,
        }

    def kill(self) -> None:
        """End the process as a power cut would."""
        self.process.kill()
        self.process.wait()


def free_port() -> int:
    """Return a port of loopback that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.fixture(scope="session")
def site_starter(
    django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Site]]:
    """Starts the site when it is first asked for, and again when it was killed."""
    running: list[Site] = []
    log = tmp_path_factory.mktemp("site") / "site.log"

    def start() -> Site:
        if not running or running[-1].process.poll() is not None:
            running.append(start_site(log))
        return running[-1]

    yield start
    for site in running:
        site.process.terminate()
        site.process.wait(timeout=PATIENCE_SECONDS)
    if log.exists():
        assert CANARY.findall(log.read_text("utf-8", "replace")) == []


@pytest.fixture
def site(transactional_db: None, site_starter: Callable[[], Site]) -> Site:
    """The real ASGI application under Daphne, on the test's database."""
    return site_starter()


def start_site(log: Path, **more: str) -> Site:
    """Start the site on a free port, and wait until it listens.

    Its calls are not tried again, unless `more` of the environment says so.
    """
    port = free_port()
    name = connection.settings_dict["NAME"]
    environment = os.environ | {
        "DATABASE_URL": f"sqlite:///{name}",
        "DJANGO_SETTINGS_MODULE": "chatsite.settings",
        "CHAT_CALL_RETRIES": "0",
        **more,
    }
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [
                *(sys.executable, "-m", "daphne", "--bind", "127.0.0.1"),
                *("--port", str(port), "chatsite.asgi:application"),
            ],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
        )
    wait_for_port(port, process)
    return Site(port, process, log)


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until somebody listens; fails when the process ends instead."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail("the site did not start")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the site does not listen")
