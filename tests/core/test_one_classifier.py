"""There is one classifier: no other place decides what an error means.

A finding is answered by asking `threads.core.faults.classify`, and by a row in the
table where it does not know the answer yet. An exception below wants a reason.
"""

import re
from pathlib import Path

import pytest

import chatsite
import threads
from tests.cases import cases
from tests.core.secondplaces import TELLING, second_places

ROOT = Path(threads.__path__[0]).parent
SITE = Path(chatsite.__path__[0])

CLASSIFIER = {
    f"threads/core/{name}.py"
    for name in ("table", "names", "wordings", "faults", "reasons")
}

NO_CLIENT = ("threads/practice/", "threads/migrations/")
"""The practice gateway is on the other side of the wire: it makes errors. Migrations
only repeat what the models say."""

ALLOWED = {
    "threads/rounds/brief.py": {
        # Found before anything is sent, and given the table's own row by its name.
        "names 'model_not_found'",
        "names 'missing_key'",
        "makes a verdict",
    },
    "threads/tools/mcp/wire.py": {
        # What a tool server answers, which is no gateway: no verdict comes of it.
        "lists 'Connection closed'",
        "compares with a status",
    },
    "threads/rounds/window.py": {
        # Measured before anything is sent, and given the table's own row.
        "makes a verdict",
    },
    "threads/rounds/keyhealth.py": {
        # Says again what the classifier said of this key; nothing is judged anew.
        "makes a verdict",
    },
}


def modules() -> dict[str, Path]:
    return {
        str(path.relative_to(ROOT)): path
        for package in (ROOT / "threads", SITE)
        for path in sorted(package.rglob("*.py"))
    }


SEARCHED = {
    name: path
    for name, path in modules().items()
    if name not in CLASSIFIER and not name.startswith(NO_CLIENT)
}


@cases("name", SEARCHED)
def test_no_other_module_decides_what_an_error_means(name: str) -> None:
    found = second_places(SEARCHED[name].read_text("utf-8"))

    allowed = ALLOWED.get(name, set())
    assert [each for each in found if each.partition(": ")[2] not in allowed] == []


def test_what_is_searched_is_there() -> None:
    assert set(modules()) >= CLASSIFIER
    assert set(ALLOWED) <= set(SEARCHED)
    assert {"threads/gateway/client.py", "threads/rounds/runner.py"} <= set(SEARCHED)
    assert len(SEARCHED) > 50


@pytest.mark.parametrize("name", ALLOWED)
def test_an_exception_is_still_needed(name: str) -> None:
    found = second_places(SEARCHED[name].read_text("utf-8"))

    assert {each.partition(": ")[2] for each in found} == ALLOWED[name]


@cases(
    "path",
    sorted(
        path
        for folder in ("templates", "static")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".html", ".js", ".txt")
    ),
)
def test_no_page_asks_for_a_code_or_a_status(path: Path) -> None:
    """Pages go by ending, condition and `transient`."""
    text = path.read_text("utf-8")
    words = set(re.findall(r"[a-z0-9]+(?:[_.][a-z0-9]+)+", text.lower()))

    assert words & TELLING == set()
    assert re.search(r"http_status\s*(?:[=!<>]|in\b)", text) is None


PLANTED = {
    "a status": "if response.status == 429: retry()",
    "statuses": "RETRY = {408, 429, 500, 502}",
    "statuses in place": "if status in (401, 403): forbid()",
    "a range of statuses": "retry = status >= 500",
    "a range of both sides": "if 400 <= status < 500: fail()",
    "a class of statuses": "if status // 100 == 5: retry()",
    "a status as text": "if code == '429': wait()",
    "a status by name": "if status == HTTPStatus.TOO_MANY_REQUESTS: wait()",
    "a table": "SENTENCES = {401: 'a', 402: 'b'}",
    "a match": "match status:\n case 429:\n  wait()",
    "a code": "if verdict.code == 'http_429': wait()",
    "a code in a query": "attempts.filter(code='quota_exhausted')",
    "a gateway's name": "if name == 'rate_limit_exceeded': wait()",
    "words": "if 'rate limit' in text: wait()",
    "a pattern": r"BUSY = re.compile(r'rate.?limit|too many requests')",
    "a wording": "if text.startswith('Connection error'): wait()",
    "a list of words": "BUSY = ('too many requests', 'overloaded')",
    "a verdict": "v = Verdict('throttled', Ending.FAULTED, Condition.PROVIDER)",
    "a verdict of a variable": "v = Verdict(code=name, ending=e, condition=c)",
    "a changed verdict": "verdict = replace(verdict, transient=True)",
    "an exception's text": (
        "try:\n f()\nexcept OSError as error:\n if 'gone' in str(error): wait()"
    ),
    "an exception's text, later": (
        "try:\n f()\nexcept OSError as e:\n words = str(e).lower()\n"
        " if words.startswith('gone'): wait()"
    ),
    "an exception's fields": (
        "try:\n f()\nexcept OSError as e:\n if e.args[0] == 'gone': wait()"
    ),
    "an exception's status": (
        "try:\n f()\nexcept E as e:\n if e.status_code in RETRY: wait()"
    ),
}


@cases("source", PLANTED.values(), ids=PLANTED)
def test_a_second_classifier_is_found(source: str) -> None:
    assert second_places(source) != []


INNOCENT = {
    "a length": "if len(text) > 500: cut()",
    "a named quantity": "if seconds >= 480: stop()",
    "a success": "if response.status_code == 200: go()",
    "an answer of ours": "return render(request, page, status=422)",
    "an ending": "if verdict.ending is Ending.TRUNCATED: offer()",
    "a condition": "if verdict.condition is Condition.REQUEST: edit()",
    "a label": "label = 'The message was blocked.'",
    "our own code": "STOPPED = Verdict(code='stopped', ending=e, condition=c)",
    "a docstring": '"""Says rate limit and http_429."""',
    "an exception that is passed on": (
        "try:\n f()\nexcept OSError as error:\n raise OurError(str(error)) from error"
    ),
}


@pytest.mark.parametrize("source", INNOCENT.values(), ids=INNOCENT)
def test_ordinary_code_is_left_alone(source: str) -> None:
    assert second_places(source) == []
