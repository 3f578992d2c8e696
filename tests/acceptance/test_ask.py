"""`manage.py ask` as a script uses it: a process, its output, its exit status."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command, load_command_class
from pytest_django import Settings

from tests.acceptance.conftest import environment, manage
from threads.management.asks import one_line
from threads.models import Round

FIELDS = {
    "id", "thread", "round", "cell", "status", "ending", "code", "condition", "transient", "text",
    "reasoning", "sentence", "sentence_key", "locale", "provider_reason", "tool_calls", "usage", "cost",
    "model_requested", "model_served", "route", "calls",
}  # fmt: skip
CALL_FIELDS = {
    "call", "attempt", "model_requested", "model_served", "outcome", "ending", "code", "http_status", "transient", "retry_decision",
    "retry_reason", "request_id", "stream_state", "chunks_received", "done_received", "output_committed", "finish_reason",
    "silent_updates", "withdrawn_chars", "first_data_ms", "first_output_ms", "last_update_ms",
    "duration_ms", "wait_s", "usage",
}  # fmt: skip


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A migrated database that only processes of these tests ask with."""
    env = environment(tmp_path_factory.mktemp("ask") / "ask.sqlite3")
    assert manage("migrate", "-v0", env=env).returncode == 0
    return env


@dataclass(frozen=True)
class Ran:
    """How a command ended: what a shell would know of it."""

    returncode: object
    stdout: str
    stderr: str


Run = Callable[..., Ran]


@pytest.fixture
def run(
    transactional_db: None,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs `manage.py ask` in this process: starting one takes longer than asking."""
    settings.OPENAI_BASE_URL = settings.OPENAI_API_KEY = settings.CHAT_MODEL = ""

    def run(*arguments: str, stdin: str = "") -> Ran:
        monkeypatch.setattr(sys, "stdin", StringIO(stdin))
        status: object = 0
        try:
            load_command_class("threads", "ask").run_from_argv(
                ["manage.py", "ask", *arguments]
            )
        except SystemExit as left:
            status = left.code
        said = capsys.readouterr()
        return Ran(status, said.out, said.err)

    return run


def test_an_outcome_is_one_line_whatever_it_says() -> None:
    said = {"text": "a\u2028b\u2029c\x85d\x0ce\nf"}

    assert len(one_line(said).splitlines()) == 1
    assert json.loads(one_line(said)) == said


def test_a_whole_answer_is_one_json_object_with_every_field(
    env: dict[str, str],
) -> None:
    ran = manage("ask", "--model", "practice/markdown", "--json", "hello", env=env)

    row = json.loads(ran.stdout)
    assert ran.returncode == 0
    assert set(row) == FIELDS
    assert row["status"] == "done"
    assert row["ending"] == "completed"
    assert row["text"].startswith("# ")
    assert row["usage"]["source"] == "provider"
    assert row["usage"]["output"] > 0
    assert [set(call) for call in row["calls"]] == [CALL_FIELDS]
    assert row["calls"][0]["stream_state"] == "complete"
    assert row["calls"][0]["done_received"] is True


def test_a_gateway_that_is_not_there_is_named_with_status_3(
    run: Run, settings: Settings
) -> None:
    settings.OPENAI_BASE_URL, settings.CHAT_MODEL = "http://127.0.0.1:9", "some/model"

    ran = run("--json", "hi")

    row = json.loads(ran.stdout)
    assert ran.returncode == 3
    assert (row["status"], row["code"], row["condition"]) == (
        "error",
        "connect_failed",
        "network",
    )
    assert row["model_requested"] == "some/model"
    assert "could not be reached" in row["sentence"]


def test_an_answer_that_ends_badly_keeps_its_text_and_says_why_on_stderr(
    run: Run,
) -> None:
    ran = run("--model", "practice/error-chunk", "--locale", "de", "hello")

    assert ran.returncode == 3
    assert "practice model" in ran.stdout
    assert "Beim Anbieter von practice/error-chunk" in ran.stderr


def test_a_batch_of_fifty_lines_answers_fifty_lines(env: dict[str, str]) -> None:
    lines = "".join(
        json.dumps({"id": f"n{number}", "prompt": "hi", "model": "practice/empty"})
        + "\n"
        for number in range(50)
    )

    ran = manage("ask", "--batch", "-", "--concurrency", "16", env=env, stdin=lines)

    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {row["id"] for row in rows} == {f"n{number}" for number in range(50)}
    assert {row["ending"] for row in rows} == {"empty"}
    assert ran.returncode == 3


def test_tools_run_once_each_and_the_answer_uses_their_results(run: Run) -> None:
    ran = run("--model", "practice/tools", "--json", "What time is it?")

    row = json.loads(ran.stdout)
    assert {call["name"]: call["state"] for call in row["tool_calls"]} == {
        "current_time": "ok",
        "calculator": "ok",
    }
    assert "391" in row["text"]
    assert len(row["calls"]) == 2


BATCH = ("--batch", "-")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "stdin", "says"),
    [
        ((), "", "prompt"),
        (("",), "", "empty"),
        (("  \n",), "", "empty"),
        (("x" * 100_001,), "", "longer"),
        (BATCH, "not json\n", "Line 1"),
        (BATCH, "[1]\n", "Line 1"),
        (BATCH, '{"prompt": ""}\n', "Line 1"),
        (BATCH, '{"prompt": "hi"}\n{"prompt": 5}\n', "Line 2"),
        (("--batch", "/nowhere/at/all"), "", "cannot be read"),
        (("--agent", "nobody", "hi"), "", "no agent"),
        (("--thread", "999999", "hi"), "", "no thread"),
        (("--locale", "tlh", "hi"), "", "does not speak"),
        (("--concurrency", "0", "--batch", "-"), "", "concurrency"),
        (("--user", "a b", "hi"), "", "user name"),
        (("--model", "route:no-such", "hi"), "", "can be asked"),
        (
            BATCH,
            '{"prompt": "hi"}\n{"prompt": "hi", "model": "route:no"}\n',
            "can be asked",
        ),
    ],
)
def test_bad_usage_is_told_with_status_2_and_asks_nothing(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], stdin: str, says: str
) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO(stdin))

    with pytest.raises(CommandError, match=says) as refused:
        call_command("ask", *arguments)

    assert refused.value.returncode == 2
    assert not Round.objects.exists()


def test_an_option_that_does_not_exist_ends_with_status_2(run: Run) -> None:
    ran = run("--no-such-option", "hi")

    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr


def test_a_prompt_with_nul_and_half_an_emoji_is_asked_all_the_same(run: Run) -> None:
    line = '{"prompt": "a\\u0000b \\ud83d c", "model": "practice/markdown"}\n'

    ran = run("--batch", "-", stdin=line)

    assert json.loads(ran.stdout)["status"] == "done"


def test_a_wrong_setting_is_an_error_with_a_hint(env: dict[str, str]) -> None:
    ran = manage("ask", "hi", env=env | {"CHAT_IDLE_SECONDS": "soon"})

    assert ran.returncode != 0
    assert "CHAT_IDLE_SECONDS is 'soon'" in ran.stderr
    assert "HINT" in ran.stderr


def test_an_unmigrated_database_is_told_without_a_traceback(tmp_path: Path) -> None:
    ran = manage("ask", "hi", env=environment(tmp_path / "new.sqlite3"))

    assert ran.returncode == 2
    assert "migrate" in ran.stderr
    assert "Traceback" not in ran.stderr
