"""Takes one rule out at a time and counts the named tests that notice.

    python -m tests.mutations

Each rule is reverted in a copy of the source, by replacing an exact piece of it, and
its test files are run there. A rule whose tests do not go red is not tested; one that
makes everything red was not reverted but broken, and does not count either.
"""

import multiprocessing
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = (
    *("chatsite", "locale", "static", "templates", "tests", "threads"),
    *("manage.py", "pyproject.toml"),
)
AT_ONCE = 2
PATIENCE_SECONDS = 240
PLAIN = (
    *("-q", "--tb=line", "--assert=plain", "-o", "addopts="),
    *("-p", "no:xdist", "-p", "no:randomly", "-p", "no:hypothesispytest"),
    *("-p", "no:cacheprovider", "--no-migrations"),
)
"""One process, in one order, and no plugin that only takes time to load."""

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["openai.types", "pytest", "django.db.models"])
"""Each run is a process of its own that has others' packages, and none of ours."""

REPORT, SAID = "report.xml", "said.txt"

TESTS_FAILED = 1
"""pytest's exit status when tests failed, and nothing else was wrong."""

RETRY = "threads/core/retry.py"
CALLS = "threads/gateway/calls.py"
SNAPSHOT = "threads/core/snapshot.py"
EXCHANGES = "threads/rounds/exchanges.py"

DECISIONS = "tests/core/test_retry.py"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: where it stands, what takes it out, and how many tests must notice."""

    name: str
    file: str
    piece: str
    instead: str
    tests: tuple[str, ...]
    at_least: int


RULES = (
    Rule(
        "a call cut after text is regenerated (D7)",
        RETRY,
        "if policy.keeps_cut and attempted.has_text and not policy.is_buffered:",
        "if attempted.has_text and not policy.is_buffered:",
        (DECISIONS, "tests/gateway/test_trying_again.py"),
        5,
    ),
    Rule(
        "nothing is sent again after a tool call (D8)",
        RETRY,
        "if not attempted.is_withdrawable:",
        "if attempted.is_withdrawable is None:",
        (DECISIONS, "tests/gateway/test_sent_once.py"),
        3,
    ),
    Rule(
        "a route's next model is asked only before any output (D17, D8)",
        RETRY,
        "if attempted.has_text or attempted.had_text or not attempted.is_withdrawable:",
        "if attempted.is_withdrawable is None:",
        (DECISIONS, "tests/gateway/test_lineup.py"),
        3,
    ),
    Rule(
        "the last text that was read stands again (X2, E8)",
        SNAPSHOT,
        "stands = next((each for each in reversed(generations) if not each.is_bare), newest)",
        "stands = newest",
        ("tests/core/test_snapshot.py", "tests/rounds/test_reinstatement.py"),
        2,
    ),
    Rule(
        "envelopes are withheld until there is output (D5)",
        CALLS,
        "if evidence.has_output and not had_output:",
        "if evidence.chunks == 1:",
        ("tests/gateway/test_withheld.py",),
        2,
    ),
    Rule(
        "no attempt starts after the window, its wait included (D2)",
        RETRY,
        "if attempted.elapsed_seconds + wait <= policy.window_seconds:",
        "if attempted.elapsed_seconds >= 0:",
        (DECISIONS, "tests/gateway/test_sent_once.py"),
        2,
    ),
    Rule(
        "Stop ends a wait at once (D21)",
        CALLS,
        "        await asyncio.sleep(max(0.0, left))\n",
        "        try:\n"
        "            await asyncio.sleep(max(0.0, left))\n"
        "        except asyncio.CancelledError:\n"
        "            pass\n",
        ("tests/gateway/test_stop_while_waiting.py",),
        1,
    ),
    Rule(
        "what had come of calls in a cut answer is no call (F14, D8)",
        CALLS,
        "tool_calls=calls if is_whole else (),",
        "tool_calls=calls,",
        ("tests/gateway/test_tool_calls.py",),
        1,
    ),
    Rule(
        "a tool run begins once (F6)",
        EXCHANGES,
        "allowed = ToolRun.objects.filter(pk=run.pk, state=State.ALLOWED)",
        "allowed = ToolRun.objects.filter(pk=run.pk)",
        ("tests/rounds/test_run_once.py",),
        2,
    ),
    Rule(
        "a tool that asks first does not run unasked (F6)",
        EXCHANGES,
        "if not result and not toolset.must_ask(asked.name):",
        "if not result:",
        ("tests/rounds/test_run_once.py",),
        2,
    ),
)


@dataclass(frozen=True, slots=True)
class Result:
    """The tests of one run by their functions: red if any of its cases is."""

    status: int
    red: frozenset[str]
    green: frozenset[str]
    said: str


class Problem(Exception):  # noqa: N818 - not an error of this script
    """The rules cannot be tested; the message says why."""


def reverted(source: str, rule: Rule) -> str:
    """Return a file's text without the rule.

    Raises:
        Problem: its piece is not there, or more than once.
    """
    count = source.count(rule.piece)
    if count != 1:
        raise Problem(
            f"{rule.name}: {rule.file} has {rule.piece.strip()!r} {count} times."
            " Name in tests/mutations.py what the rule looks like now."
        )
    return source.replace(rule.piece, rule.instead)


def run(tests: tuple[str, ...], rule: Rule | None = None) -> Result:
    """Run these files in a copy of the source, without the rule if one is given.

    Raises:
        TimeoutError: they did not end.
    """
    with tempfile.TemporaryDirectory(prefix="mutation-") as place:
        copy = Path(place)
        for name in SOURCE:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name)
            else:
                shutil.copy2(ROOT / name, copy / name)
        if rule is not None:
            file = copy / rule.file
            file.write_text(reverted(file.read_text("utf-8"), rule), "utf-8")
        process = PROCESSES.Process(target=_there, args=(copy, tests))
        process.start()
        process.join(PATIENCE_SECONDS)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"{tests} did not end")
        return _read(copy / REPORT, process.exitcode, (copy / SAID).read_text("utf-8"))


def _there(copy: Path, tests: tuple[str, ...]) -> None:
    """Be the process that runs them: what is ours is imported from the copy."""
    os.chdir(copy)
    with open(SAID, "wb") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    for name in [*sys.modules]:
        if name.partition(".")[0] in SOURCE:
            del sys.modules[name]
    sys.path[:] = [
        str(copy),
        *(each for each in sys.path if each not in ("", str(ROOT))),
    ]
    sys.exit(pytest.main([*PLAIN, f"--junitxml={REPORT}", *tests]))


def _read(report: Path, status: int, said: str) -> Result:
    red, all_of_them = set[str](), set[str]()
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - ours
            name = f"{case.get('classname')}.{case.get('name', '').partition('[')[0]}"
            all_of_them.add(name)
            if case.find("failure") is not None or case.find("error") is not None:
                red.add(name)
    green = all_of_them - red
    return Result(status, frozenset(red), frozenset(green), said)


def trouble(rule: Rule, result: Result, named: frozenset[str]) -> str:
    """Say why a rule does not count as tested; nothing when it does."""
    if result.status not in (0, TESTS_FAILED):
        return f"pytest ended with {result.status}"
    if not result.red <= named:
        return "tests went red that are not there without the change"
    if not result.green:
        return "everything went red: that is no rule, that is a breakage"
    if len(result.red) < rule.at_least:
        return "too few tests notice"
    return ""


def main() -> int:
    """Test every rule; returns the exit status."""
    for rule in RULES:
        reverted((ROOT / rule.file).read_text("utf-8"), rule)
    files = tuple(sorted({file for rule in RULES for file in rule.tests}))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        whole = list(pool.map(run, [files[part::AT_ONCE] for part in range(AT_ONCE)]))
        for each in whole:
            if each.status or each.red or not each.green:
                raise Problem(f"The tests are not green to begin with.\n{each.said}")
        results = list(pool.map(lambda rule: run(rule.tests, rule), RULES))
    named = frozenset[str]().union(*(each.green for each in whole))
    failed = 0
    say(f"{'red':>4} {'needs':>6} {'green':>6}  without the rule that…")
    for rule, result in zip(RULES, results, strict=True):
        problem = trouble(rule, result, named)
        counts = f"{len(result.red):4} {rule.at_least:6} {len(result.green):6}"
        say(f"{counts}  {rule.name}" + (f": {problem}" if problem else ""))
        if problem:
            failed += 1
            say("\n".join(result.said.splitlines()[-40:]))
    return 1 if failed else 0


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Problem, TimeoutError) as error:
        say(str(error))
        sys.exit(1)
