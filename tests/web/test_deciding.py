"""A person's word on a tool: by the script, and without one."""

import re

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from tests.rounds.tooling import function_tool, with_tools
from tests.web.asking import client_of
from tests.web.toolcells import waiting
from threads.models import LanguageModel, Round, Thread, ToolRun

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
CHANGED = '{"word":\r\n "b"}'


def address(run: ToolRun) -> str:
    return reverse("tool-decide", args=[run.round.thread_id, run.pk])


@pytest.fixture
def run(thread: Thread, steady: LanguageModel) -> ToolRun:
    return waiting(thread, steady)[1][0]


@pytest.mark.parametrize("headers", [{}, HTMX])
@pytest.mark.parametrize(
    ("decision", "arguments", "became"),
    [
        ("allow", '{ "word" : "a" }', ("allowed", '{"word": "a"}', "")),
        ("allow", CHANGED, ("allowed", '{"word":\n "b"}', '{"word": "a"}')),
        ("deny", "what [", ("not_run", '{"word": "a"}', "")),
    ],
)
def test_a_decision_is_taken(
    alice: User,
    run: ToolRun,
    headers: dict[str, str],
    decision: str,
    arguments: str,
    became: tuple[str, str, str],
) -> None:
    fields = {"decision": decision, "arguments": arguments}

    answer = client_of(alice).post(address(run), fields, headers=headers)

    run.refresh_from_db()
    assert (run.state, run.arguments, run.arguments_asked) == became
    if headers:
        html = answer.content.decode()
        assert (answer.status_code, html.count('data-state="waiting"')) == (200, 1)
    else:
        assert answer["Location"].endswith(f"/#tool-{run.pk}")
    again = client_of(alice).post(address(run), fields, headers=headers)
    assert again.status_code == 422
    assert b"decided already" in again.content


@pytest.mark.parametrize("headers", [{}, HTMX])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"word": <b>}', "not valid JSON: look at line 1, column 10."),
        ('["a"]', "must be a JSON object"),
        ("[" * 5000, "must be a JSON object"),
        ('{"word": 3}', "3 is not of type"),
        ("x" * 256_001, "too long"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_beside_them_and_not_lost(
    alice: User, run: ToolRun, headers: dict[str, str], arguments: str, said: str
) -> None:
    fields = {"decision": "allow", "arguments": arguments}

    with with_tools(function_tool("echo", str)):
        answer = client_of(alice).post(address(run), fields, headers=headers)

    html = answer.content.decode()
    run.refresh_from_db()
    assert (answer.status_code, run.state) == (422, "waiting")
    assert said in html
    (area,) = re.findall(r'<textarea[^>]* aria-invalid="true">\n([^<]*)', html)
    assert area == arguments.replace("<b>", "&lt;b&gt;").replace('"', "&quot;")


def test_who_decides_is_the_owner_and_nobody_else(
    alice: User, bob: User, run: ToolRun
) -> None:
    fields = {"decision": "allow", "arguments": "{}"}
    other = Thread.objects.create(owner=alice)
    elsewhere = reverse("tool-decide", args=[other.pk, run.pk])

    assert client_of(bob).post(address(run), fields).status_code == 404
    assert client_of(alice).post(elsewhere, fields).status_code == 404
    assert client_of(alice).post(address(run)).status_code == 422
    assert client_of(alice).get(address(run))["Location"].endswith(f"#tool-{run.pk}")
    run.refresh_from_db()
    assert run.state == "waiting"


@pytest.mark.parametrize("state", ["asking", "running", "queued"])
def test_a_message_is_kept_until_the_person_has_decided(
    alice: User, run: ToolRun, thread: Thread, state: str
) -> None:
    Round.objects.update(state=state)
    sending = client_of(alice).post(
        reverse("send", args=[thread.pk]), {"prompt": "And?"}
    )

    html = sending.content.decode()
    assert "The model waits for your decision on a tool." in html
    assert ">And?</textarea>" in html


def test_a_thread_that_waits_says_so_on_the_answer_in_the_list_and_beside_stop(
    alice: User, run: ToolRun, thread: Thread
) -> None:
    html = client_of(alice).get(reverse("thread", args=[thread.pk])).content.decode()

    assert '<p class="note" dir="auto"' in html
    assert ">Waiting for your decision</p>" in html
    assert 'title="waiting for your decision"' in html
    assert 'class="stop"' in html
    token = '<input type="hidden" name="csrfmiddlewaretoken"'
    assert len(re.findall(rf'class="decide"[^>]*>\s*{token}', html)) == 2

    Round.objects.update(state=Round.State.RUNNING)
    html = client_of(alice).get(reverse("thread", args=[thread.pk])).content.decode()
    assert "Waiting for your decision" not in html
