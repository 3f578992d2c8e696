"""What operators search the log for: every marker, pinned; and how lines are made."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from threads.gateway import calls
from threads.rounds import keyhealth

ROOT = Path(__file__).resolve().parent.parent
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
MARKER = re.compile(r"(\[\w+\] [A-Za-z_ ]+|[A-Z]{5,}(?:_[A-Z]+)*|[A-Z]+(?:_[A-Z]+)+)\b")

MARKERS = {
    "ATTEMPT_NOT_RECORDED",
    "HISTORY_UNREADABLE",
    "CONTEXT_WINDOW_UNDECLARED",
    "INTERNAL_ERROR",
    "JOURNAL_NOT_WRITTEN",
    "KEY_CLEARED",
    "KEY_EXHAUSTED",
    "KEY_REJECTED",
    "KEY_THROTTLED",
    "MODEL_SUBSTITUTED",
    "NOTICE_NOT_SENT",
    "PROVIDER_REFUSED",
    "PROVIDER_STREAM_EMPTY",
    "PROVIDER_STREAM_FAULTED",
    "PROVIDER_STREAM_STALLED",
    "PROVIDER_STREAM_TRUNCATED",
    "RESUBMITTED",
    "SCHEDULE_SKIPPED",
    "SCHEDULE_STARTED",
    "SCHEDULE_SWITCHED_OFF",
    "STOP_MARKER_UNREADABLE",
    "SWEEP_FAILED",
    "TERMINAL_WRITE_LOST",
    "TOOL_FAILED",
    "TOOL_OUTCOME_UNKNOWN",
    "TOOL_RESULT_NOT_WRITTEN",
    "TOOL_SERVER_FAILED",
    "TOOL_SERVER_NOT_RECORDED",
    "[OpenAIWire] close failed",
    "[ProviderRetry] FALLBACK",
    "[ProviderRetry] REGENERATE",
    "[ProviderRetry] RETRY",
    "[ThreadExec] REGENERATE",
    "[ThreadExec] ROUND_CAP_WHILE_REASONING",
}
"""One per condition; a change of this list is a change of an interface (I8)."""


def sources() -> list[Path]:
    folders = ("threads", "chatsite")
    return sorted(path for name in folders for path in (ROOT / name).rglob("*.py"))


def log_calls(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in {"logger", "log"}
            and node.func.attr in LEVELS
        ):
            yield node


def constants(path: Path) -> dict[str, str]:
    """Texts that a module gives a name."""
    return {
        target.id: node.value.value
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def formats() -> Iterator[str]:
    """The text of every log call, as it stands in the source."""
    for path in sources():
        names = constants(path)
        for call in log_calls(path):
            first = call.args[0]
            if isinstance(first, ast.Name):
                yield names[first.id]
            else:
                assert isinstance(first, ast.Constant), f"{path}:{call.lineno}"
                yield str(first.value)


def test_every_marker_of_the_source_is_pinned() -> None:
    found = {
        marker[0] for text in formats() if (marker := MARKER.match(text)) is not None
    }
    found |= set(calls.MARKERS.values()) | set(keyhealth.MARKERS.values())

    assert found == MARKERS


def test_each_bad_ending_of_a_call_has_one_marker() -> None:
    assert set(calls.MARKERS.values()) == {
        "PROVIDER_REFUSED",
        *(f"PROVIDER_STREAM_{kind}" for kind in ("EMPTY", "FAULTED", "STALLED")),
        "PROVIDER_STREAM_TRUNCATED",
    }


CONTENT = re.compile(
    r"\b(?:text|prompt|content|messages?|answer|reasoning|arguments|result|body|words"
    r"|reason|provider_reason|api_key|headers|title|sentence)\b"
)


def test_no_line_is_given_what_people_and_models_wrote() -> None:
    looked_at = 0
    for path in sources():
        for call in log_calls(path):
            for argument in call.args[1:]:
                looked_at += 1
                # Of an alternative only what is written: whether, not what.
                told = (
                    (argument.body, argument.orelse)
                    if isinstance(argument, ast.IfExp)
                    else (argument,)
                )
                for part in told:
                    is_word = isinstance(part, ast.Constant)
                    written = ast.unparse(part)
                    assert is_word or not CONTENT.search(written), (
                        f"{path}:{call.lineno}: {written}"
                    )

    assert looked_at > 20
