"""Names the versions of the openai SDK, beside the locked one, that must keep its facts.

Prints one version a line: the lowest that pyproject.toml allows, and the newest that
pip finds. Nothing is printed for those that are the locked one.
"""

import re
import subprocess
import sys
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent


def found(pattern: str, text: str) -> Version:
    """Return the version that a pattern finds; ends with status 1 without one."""
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        sys.exit(f"No version of the SDK where {pattern!r} should find one.")
    return Version(match[1])


def versions() -> list[Version]:
    """List the versions that have to be tried, lowest first."""
    lowest = found(r'"openai>=([\d.]+)', (ROOT / "pyproject.toml").read_text("utf-8"))
    locked = found(
        r"^openai==([\d.]+)", (ROOT / "tests/requirements.lock").read_text("utf-8")
    )
    index = subprocess.run(
        [sys.executable, "-m", "pip", "index", "versions", "openai"],
        check=True,
        capture_output=True,
        text=True,
    )
    newest = found(r"^openai \(([\d.]+)\)", index.stdout)
    return sorted({lowest, newest} - {locked})


if __name__ == "__main__":
    sys.stdout.write("".join(f"{version}\n" for version in versions()))
