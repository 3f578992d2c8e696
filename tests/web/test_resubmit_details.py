"""How an answer came about, told from the ledger."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import translation

from tests.rounds.helpers import open_now
from tests.rounds.resubmitting import TRUNCATED, ended, verdict_of
from tests.web.test_sending import HTMX
from threads.core.faults import Verdict
from threads.models import CallAttempt, Cell, LanguageModel, Thread
from threads.rendering.details import account_of
from threads.rounds import ledger

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def broken(thread: Thread, steady: LanguageModel) -> Cell:
    return ended(open_now(thread, steady, "Why?"), TRUNCATED, "x" * 1214)


def attempt(cell: Cell, number: int = 1, call: int = 1, **fields: Any) -> None:
    CallAttempt.objects.create(
        round=cell.round,
        call=call,
        attempt=number,
        **{
            "model_requested": "owl-1",
            "outcome": "faulted",
            "ending": "truncated",
            "code": "truncated",
            "condition": "network",
            "stream_state": "partial",
            "characters": 1214,
            "first_data_ms": 400,
            "first_output_ms": 1234,
            **fields,
        },
    )


@pytest.mark.parametrize(
    ("fields", "story"),
    [
        ({}, "It began to answer after 1.2 s. The connection ended after 1,214 characters."),
        ({"ending": "stalled"}, "It began to answer after 1.2 s. Nothing more came after 1,214 characters."),
        ({"ending": "faulted"}, "It began to answer after 1.2 s. It failed after 1,214 characters."),
        ({"ending": "stopped"}, "It began to answer after 1.2 s. It was broken off after 1,214 characters."),
        ({"ending": "completed"}, "It began to answer after 1.2 s. It ended as it should, with 1,214 characters."),
        ({"ending": "length"}, "It began to answer after 1.2 s. It reached its output limit."),
        ({"characters": 1, "withdrawn_text": "y"}, "It began to answer after 1.2 s. The connection ended after 1 character. The 1 character was withdrawn."),
        ({"characters": None}, "It began to answer after 1.2 s. Then the connection ended."),
        ({"characters": None, "ending": "completed"}, "It began to answer after 1.2 s. It ended as it should."),
        ({"characters": 0, "first_output_ms": None}, "The gateway replied after 0.40 s. The connection ended before any text."),
        ({"characters": 0, "first_output_ms": None, "first_data_ms": None, "ending": "stalled"}, "No text ever came."),
        ({"characters": 0, "first_output_ms": None, "first_data_ms": None, "ending": "refused"}, "The gateway could not be reached."),
        ({"ending": "refused", "condition": "account_key", "first_output_ms": None, "first_data_ms": None}, "The gateway refused the request."),
        ({"ending": "blocked", "first_output_ms": None, "first_data_ms": None, "wait_ms": 15_000, "transport_retries": 2}, "Waited 15.0 s first. The connection took 3 tries. The message was blocked."),
        ({"ending": "empty", "first_output_ms": None}, "The gateway replied after 0.40 s. It finished without any text."),
    ],
)  # fmt: skip
def test_an_attempt_is_told_in_a_line(
    broken: Cell, fields: dict[str, Any], story: str
) -> None:
    attempt(broken, **fields)

    (told,) = account_of(broken).attempts

    assert (told.title, told.story) == ("Try 1", story)


def test_every_attempt_of_every_call_is_counted_by_itself(broken: Cell) -> None:
    attempt(broken, call=2, number=2, characters=1)
    attempt(broken, call=2, characters=214, withdrawn_text="z" * 214)
    attempt(broken, ending="completed", characters=7)

    told = account_of(broken).attempts

    assert [each.title for each in told] == [
        "Call 1, try 1",
        "Call 2, try 1",
        "Call 2, try 2",
    ]
    assert told[0].story.endswith("It ended as it should, with 7 characters.")
    assert "after 214 characters. The 214 characters were withdrawn." in told[1].story
    assert told[2].story.endswith("The connection ended after 1 character.")


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({}, "unknown"),
        ({"input_tokens": 12_345, "output_tokens": 0, "usage_source": "provider"}, "12,345 read, 0 written"),
        ({"output_tokens": 7}, "unknown read, 7 written"),
        ({"input_tokens": 1, "output_tokens": 2, "usage_source": "estimated"}, "1 read, 2 written (estimated)"),
    ],
)  # fmt: skip
def test_unknown_is_said_and_never_zero(
    broken: Cell, fields: dict[str, Any], tokens: str
) -> None:
    attempt(broken, **fields)

    facts = dict(account_of(broken).attempts[0].facts)

    assert facts["Tokens"] == tokens
    assert (facts["Model that answered"], facts["Provider"]) == ("unknown", "unknown")
    assert "HTTP status" not in facts


def test_numbers_are_those_of_the_language(broken: Cell) -> None:
    attempt(broken)

    with translation.override("de"):
        story = account_of(broken).attempts[0].story

    assert "1,2" in story
    assert "1.214" in story


def test_details_come_alone_for_the_script_and_as_a_page_without(
    alice: User, broken: Cell
) -> None:
    attempt(
        broken, request_id="req_<1>", http_status=200, provider_reason="over<b>loaded"
    )
    client = Client()
    client.force_login(alice)
    where = reverse("cell-details", args=[broken.thread_id, broken.pk])

    piece = client.get(where, headers=HTMX).content.decode()
    page = client.get(where).content.decode()

    assert "<html" not in piece
    assert "<html" in page
    back = reverse("thread", args=[broken.thread_id])
    assert f'href="{back}#cell-{broken.pk}"' in page
    for html in (piece, page):
        assert "The connection ended after 1,214 characters." in html
        assert 'data-copy="req_&lt;1&gt;"' in html
        assert "over&lt;b&gt;loaded" in html
        assert "<code>truncated</code>" in html


def test_an_answer_for_which_nothing_was_sent_says_so(
    alice: User, broken: Cell
) -> None:
    client = Client()
    client.force_login(alice)
    where = reverse("cell-details", args=[broken.thread_id, broken.pk])

    assert "No request was sent." in client.get(where).content.decode()


@pytest.mark.parametrize(
    ("verdict", "says_nothing_was_sent"),
    [(TRUNCATED, False), (verdict_of("refused"), True)],
)
def test_an_attempt_that_died_unrecorded_is_not_said_to_be_unsent(
    alice: User,
    thread: Thread,
    steady: LanguageModel,
    verdict: Verdict,
    says_nothing_was_sent: bool,
) -> None:
    round_ = open_now(thread, steady, "Why?")
    assert ledger.claim_round(round_.pk, "some worker")
    cell = ended(round_, verdict, "Half")
    client = Client()
    client.force_login(alice)

    where = reverse("cell-details", args=[thread.pk, cell.pk])
    html = client.get(where).content.decode()

    assert ("No request was sent." in html) is says_nothing_was_sent
    assert ("<dt>Request id</dt> <dd>unknown</dd>" in html) is not says_nothing_was_sent
