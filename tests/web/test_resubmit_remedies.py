"""Which remedies stand under an answer, and its versions."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from tests.conftest import model_now
from tests.rounds.helpers import open_now
from tests.rounds.resubmitting import COMPLETED, again, ended
from tests.web.asking import client_of, path
from tests.web.test_sending import HTMX
from threads.core.faults import Condition, Ending, Verdict
from threads.models import Cell, LanguageModel, Thread
from threads.rendering import foot_html, versions_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


def test_an_earlier_version_is_shown_whole_and_counts_again(
    alice: User, broken: Cell
) -> None:
    newer = ended(again(broken), COMPLETED, "Whole.")
    client = client_of(alice)

    response = client.post(path("choose", broken))

    where = reverse("thread", args=[broken.thread_id])
    assert response["Location"] == f"{where}#cell-{broken.pk}"
    page = client.get(where).content.decode()
    assert "Half a sen" in page
    assert "interrupted" in page
    assert "Version 1 of 2" in page
    assert "Whole." not in page
    scripted = client.post(path("choose", newer), headers=HTMX).content.decode()
    assert f'id="cell-{newer.pk}"' in scripted
    assert "Version 2 of 2" in scripted
    # Chosen already: said again, and nothing is changed.
    assert (
        f'id="cell-{newer.pk}"'
        in client.post(path("choose", newer), headers=HTMX).content.decode()
    )


def test_signing_in_again_leads_from_a_choice_back_to_the_thread(
    alice: User, broken: Cell
) -> None:
    response = client_of(alice).get(path("choose", broken))

    assert response["Location"] == reverse("thread", args=[broken.thread_id])


def verdict(condition: Condition, *, transient: bool = False) -> Verdict:
    return Verdict("some_code", Ending.FAULTED, condition, transient=transient)


AGAIN, MODEL, CHANGE = "Send again", "Choose another model", "Change the message"


@pytest.mark.parametrize(
    ("condition", "transient", "offered"),
    [
        (Condition.PROVIDER, True, [AGAIN, MODEL]),
        (Condition.PROVIDER, False, [AGAIN, MODEL]),
        (Condition.NETWORK, False, [AGAIN, MODEL]),
        (Condition.UNKNOWN, False, [AGAIN, MODEL]),
        (Condition.OUR_BUG, False, [AGAIN, MODEL]),
        (Condition.REQUEST, False, [CHANGE, MODEL]),
        (Condition.ACCOUNT_KEY, False, [MODEL]),
        (Condition.OUR_CONFIG, False, [MODEL]),
    ],
)
def test_each_condition_offers_what_helps_and_the_best_first(
    thread: Thread,
    steady: LanguageModel,
    practice_url: str,
    condition: Condition,
    transient: bool,
    offered: list[str],
) -> None:
    model_now("practice/markdown", practice_url)
    cell = ended(open_now(thread, steady), verdict(condition, transient=transient))

    html = foot_html(cell)

    buttons = html.split('class="remedies')[1].split("</div>")[0]
    assert re.findall(r">(\w[\w ]+)</", buttons) == offered
    # What does not help is no button here; the quiet line has it all the same.
    assert ("Answer again" in html) == (AGAIN not in offered)


def test_with_one_model_there_is_no_other_to_choose(
    thread: Thread, steady: LanguageModel
) -> None:
    cell = ended(open_now(thread, steady))
    client = client_of(thread.owner)
    page = client.get(reverse("thread", args=[thread.pk])).content.decode()

    for html in (foot_html(cell), page):
        assert "Send again" in html
        assert "data-models" not in html
        assert 'id="models"' not in html


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (COMPLETED, "Answer again"),
        (Verdict("stopped", Ending.STOPPED, Condition.UNKNOWN), "Send again"),
    ],
)
def test_every_answer_can_be_had_again_quietly(
    thread: Thread, steady: LanguageModel, outcome: Verdict, words: str
) -> None:
    html = foot_html(ended(open_now(thread, steady), outcome, "Text."))

    assert "remedies" not in html
    assert f">{words}</button>" in html


def test_versions_cost_one_query_however_many_cells(
    thread: Thread,
    steady: LanguageModel,
    broken: Cell,
    django_assert_num_queries: Any,
) -> None:
    ended(again(broken))
    for _ in range(5):
        ended(open_now(thread, steady), COMPLETED, "Fine.")
    cells = list(thread.cells.shown())

    with django_assert_num_queries(1):
        versions = versions_of(cells)

    assert [(v.number, v.count, v.earlier) for v in versions.values()] == [
        (2, 2, broken.pk)
    ]


def test_what_only_the_end_of_a_thread_can_do_stands_only_there(
    thread: Thread, steady: LanguageModel, broken: Cell
) -> None:
    whole = ended(open_now(thread, steady, "Next"), COMPLETED, "Fine.")
    last = ended(open_now(thread, steady, "Last"), COMPLETED, "Fine too.")

    where = reverse("thread", args=[thread.pk])
    page = client_of(thread.owner).get(where).content.decode()

    assert f'formaction="{path("again", broken)}"' in page
    assert path("again", whole) not in page
    assert f'formaction="{path("again", last)}"' in page
    assert page.count("data-change=") == 1


def test_a_page_that_was_away_gets_both_cells_of_what_it_chooses(
    alice: User, broken: Cell
) -> None:
    question = broken.question
    assert question is not None
    ended(again(broken, text="Why not?"), COMPLETED, "Because.")
    client = client_of(alice)
    client.post(path("choose", question))

    html = client.post(path("choose", question), headers=HTMX).content.decode()

    assert f'id="cell-{question.pk}"' in html
    assert f'id="cell-{broken.pk}"' in html
