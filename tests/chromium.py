"""The browser that tests drive: Debian's Chromium, or the one that CHROMIUM names.

The build without a window of its own comes first: pages see no difference, and it takes
a fifth of the processor time, since the other one draws its tabs and menus for nobody.
"""

import os
import shutil

import pytest

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def chromium() -> str:
    """Return its path; without it a test fails in CI and is skipped elsewhere."""
    path = (
        os.environ.get("CHROMIUM")
        or shutil.which("chromium-headless-shell")
        or shutil.which("chromium")
    )
    if path is None:
        hint = (
            "Chromium is missing; get it with: apt-get install chromium-headless-shell"
        )
        if os.environ.get("CI") == "true":
            pytest.fail(hint)
        pytest.skip(hint)
    return path
