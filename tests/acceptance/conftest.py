"""The site as its users have it: `manage.py serve` in a process of its own."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    async_playwright,
    expect,
)
from pytest_asyncio import is_async_test

from tests.chromium import FLAGS, chromium

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 60.0


# A machine on which several tests run at once may take its time.
expect.set_options(timeout=20_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of a file share a loop, since they share a browser.

    That belongs to one loop.
    """
    ours = [item for item in items if item.path.parent == Path(__file__).parent]
    for item in ours:
        item.add_marker(pytest.mark.long)
        if is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


def free_port() -> int:
    """Find a loopback port that nothing listens on now."""
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port: int = probe.getsockname()[1]
        return port


def environment(database: Path, **more: str) -> dict[str, str]:
    """A clean environment: no gateway of this machine, short bounds."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "CHAT_"))
        and not name.lower().endswith("_proxy")
    }
    return kept | {
        "DATABASE_URL": f"sqlite:///{database}",
        "SECRET_KEY": "acceptance",
        "REDIS_URL": "",
        "CHAT_FIRST_DATA_SECONDS": "4",
        "CHAT_IDLE_SECONDS": "3",
        "CHAT_CALL_RETRIES": "0",
        "PYTHONUNBUFFERED": "1",
        **more,
    }


def manage(
    *arguments: str, env: dict[str, str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run one management command to its end."""
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@dataclass
class Site:
    """A served site; `start` may be called again after `kill`."""

    env: dict[str, str]
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[str] | None = None
    said: str = ""
    links: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def link(self) -> str:
        """The one-time sign-in link of a first run."""
        found = re.search(r"http://\S+/sign-in/\S+", self.said)
        assert found is not None, self.said
        return found.group(0)

    def start(self) -> None:
        """Serve, and wait until it says that it is ready."""
        self.process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "manage.py", "serve", "--port", str(self.port)],
            cwd=ROOT,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.said = ""
        while "Ready at" not in self.said:
            line = self.process.stdout.readline()
            assert line, f"serve ended early:\n{self.said}"
            self.said += line
        self._wait_for_port()

    def _wait_for_port(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            try:
                with closing(
                    socket.create_connection(("127.0.0.1", self.port), timeout=1)
                ):
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the port was not opened")

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end."""
        assert self.process is not None
        self.process.send_signal(how)
        status = self.process.wait(timeout=30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return status


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One site for the tests that do not end it."""
    site = Site(environment(tmp_path_factory.mktemp("site") / "chat.sqlite3"))
    site.start()
    yield site
    if site.process is not None:
        site.end()


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[Site]:
    """A site that a test may kill."""
    site = Site(environment(tmp_path / "chat.sqlite3"))
    yield site
    if site.process is not None:
        site.end(signal.SIGKILL)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """A real Chromium; each test has a context of its own in it."""
    path = chromium()
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield launched
        await launched.close()


NEW_PEOPLE = """
from django.contrib.auth.models import User
from threads.management.commands.serve import sign_in_path
for _ in range(16):
    user = User(username="person-%d" % User.objects.count())
    user.set_unusable_password()
    user.save()
    print(sign_in_path(user))
"""


def sign_in_link(site: Site) -> str:
    """Return the path that signs in, once, somebody whom the site has not seen yet.

    Accounts are made several at a time: a process takes longer than they do.
    """
    if not site.links:
        ran = manage("shell", "-v0", "-c", NEW_PEOPLE, env=site.env)
        assert ran.returncode == 0, ran.stderr
        site.links = [line for line in ran.stdout.splitlines() if line.startswith("/")]
    return site.links.pop(0)


def is_wrong(said: ConsoleMessage) -> bool:
    """A form that was refused is no mistake of the page, though browsers note it."""
    return said.type == "error" and "status of 422" not in said.text


@pytest_asyncio.fixture(loop_scope="module")
async def person(browser: Browser, served: Site) -> AsyncIterator[BrowserContext]:
    """Somebody new who has just signed in; nothing may go wrong on their pages."""
    context = await browser.new_context(viewport={"width": 1100, "height": 800})
    wrong: list[str] = []
    context.on("weberror", lambda error: wrong.append(str(error.error)))
    context.on(
        "console",
        lambda said: wrong.append(said.text) if is_wrong(said) else None,
    )
    page = await context.new_page()
    await page.goto(served.address + sign_in_link(served))
    await page.locator("form button[type=submit]").first.click()
    await expect(page.locator("#composer-text")).to_be_visible()
    await page.close()
    yield context
    await context.close()
    assert wrong == []
