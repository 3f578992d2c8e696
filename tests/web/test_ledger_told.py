"""What a person reads of tries: what followed, what was withdrawn, what it came to."""

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import translation

from tests.rounds.helpers import open_now
from tests.rounds.resubmitting import again, ended
from tests.web.asking import client_of, path
from tests.web.test_resubmit_details import attempt
from tests.web.test_sending import HTMX
from threads.core.retry import Action, Reason
from threads.models import CallAttempt, Cell, LanguageModel, Thread
from threads.rendering.details import account_of
from threads.rendering.figures import dollars

pytestmark = pytest.mark.django_db(transaction=True)

WHY_NOT = {
    Reason.WHOLE: "",
    Reason.STOPPED: "",
    Reason.REFUSED: "",
    Reason.NOT_TRANSIENT: "It was not tried again, because this is not known to pass by itself.",
    Reason.TOOL_CALL: "It was not tried again, because a tool had been asked for.",
    Reason.SWITCHED_OFF: "It was not tried again, because that is switched off.",
    Reason.EXHAUSTED: "It was not tried again, because all tries were used.",
    Reason.CUT_KEPT: "It was not tried again, because this agent keeps what came.",
    Reason.WINDOW: "It was not tried again, because the time for tries was used up.",
    Reason.ASKED_TO_WAIT: "It was not tried again, because the gateway asked to wait too long.",
}  # fmt: skip
"""What is said of each reason; nothing of those that raise no question."""

FOLLOWED = {
    Action.NONE: "",
    Action.REISSUE: "It was tried again.",
    Action.REGENERATE: "The answer was started again.",
    Action.FALLBACK: "The route's next model was asked.",
}
CUT = "It began to answer after 1.2 s. The connection ended after 1,214 characters."


def stories(cell: Cell) -> list[str]:
    """What follows the cut itself in the story of each attempt."""
    return [told.story.partition(CUT)[2].strip() for told in account_of(cell).attempts]


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("decision", ["none", "transport"])
def test_every_reason_not_to_try_again_has_its_words_or_needs_none(
    broken: Cell, reason: Reason, decision: str
) -> None:
    attempt(broken, retry_decision=decision, retry_reason=reason.value)

    assert stories(broken) == [WHY_NOT[reason]]


@pytest.mark.parametrize("decision", Action)
def test_every_decision_says_what_followed(broken: Cell, decision: Action) -> None:
    attempt(broken, retry_decision=decision.value)
    attempt(broken, 2)

    assert stories(broken)[0] == FOLLOWED[decision]


@pytest.mark.parametrize("decision", sorted(set(Action) - {Action.NONE}))
def test_a_try_that_never_came_is_not_said_to_have_been_made(
    broken: Cell, decision: Action
) -> None:
    attempt(broken, retry_decision=decision.value)
    attempt(broken, call=2)

    assert "It was to be tried again." in stories(broken)[0]


@pytest.mark.parametrize("ending", ["refused", "blocked"])
def test_of_a_verdict_nobody_asks_why_it_stood(broken: Cell, ending: str) -> None:
    attempt(broken, ending=ending, retry_reason=Reason.NOT_TRANSIENT.value)

    (told,) = account_of(broken).attempts

    assert "tried" not in told.story


def test_what_was_sent_again_by_hand_is_told_after_why_it_was_not_before(
    thread: Thread, broken: Cell
) -> None:
    attempt(broken, 1, retry_decision="reissue")
    attempt(broken, 2, retry_reason=Reason.EXHAUSTED.value)

    again(broken)

    decisions = CallAttempt.objects.order_by("attempt").values_list("retry_decision")
    assert list(decisions) == [("reissue",), ("manual",)]
    assert stories(broken)[1] == (
        "It was not tried again, because all tries were used. "
        "Later it was sent again by hand."
    )


def test_a_decision_of_ours_stays_and_another_question_is_no_second_sending(
    thread: Thread, steady: LanguageModel, broken: Cell
) -> None:
    attempt(broken, retry_decision="transport")
    second = ended(again(broken))
    attempt(second)

    again(second, text="Why not?")

    decisions = CallAttempt.objects.order_by("pk").values_list("retry_decision")
    assert list(decisions) == [("transport",), ("none",)]


@pytest.mark.parametrize(
    ("text", "later", "is_back"),
    [("One. Half", 0, True), ("One. Half", 4, False), ("Something else", 0, False)],
)
def test_a_withdrawn_text_that_stands_again_is_said_to(
    broken: Cell, text: str, later: int, is_back: bool
) -> None:
    Cell.objects.filter(pk=broken.pk).update(text=text)
    broken.refresh_from_db()
    attempt(broken, retry_decision="regenerate", characters=4, withdrawn_text="Half")
    attempt(broken, 2, characters=later)

    first, second = account_of(broken).attempts

    back = (
        "The answer was started again. No newer text came, so this text was put back."
    )
    assert first.story.endswith(back) is is_back
    assert "put back" not in second.story


def test_a_draft_can_be_read_as_it_came_by_who_may_read_the_answer(
    alice: User, bob: User, broken: Cell
) -> None:
    attempt(broken, withdrawn_text="<b>Half</b> *a*\n\n  sen", characters=22)
    attempt(broken, 2)

    piece = client_of(alice).get(path("details", broken), headers=HTMX)
    page = client_of(alice).get(path("details", broken))

    for response in (piece, page):
        html = response.content.decode()
        assert html.count("<summary>Read what was withdrawn</summary>") == 1
        assert (
            '<div class="draft-text" dir="auto">&lt;b&gt;Half&lt;/b&gt; *a*\n\n  sen</div>'
        ) in html
    for stranger in (client_of(bob), Client()):
        for headers in ({}, HTMX):
            response = stranger.get(path("details", broken), headers=headers)
            assert response.status_code in {302, 404}
            assert "sen" not in response.content.decode()
    assert client_of(bob).get(path("details", broken)).status_code == 404


@pytest.mark.parametrize(
    ("first", "second", "totals"),
    [
        ({}, {}, ["unknown"]),
        ((45, 0, "provider", "0.0012"), (100, 1020, "provider", "0.5"), ["145 read, 1,020 written", "$0.501"]),
        ((45, 0, "provider", "0.0012"), {}, ["≥ 45 read, ≥ 0 written", "≥ $0.0012"]),
        ((45, 3, "estimated", None), (100, 20, "provider", "0.25"), ["145 read, 23 written (estimated)", "≥ $0.25"]),
        ((45, None, "provider", None), (100, None, "provider", None), ["145 read, unknown written"]),
        ((0, 0, "provider", "0"), (0, 0, "provider", "0"), ["0 read, 0 written", "$0.00"]),
    ],
)  # fmt: skip
def test_several_attempts_are_added_up_and_an_unknown_part_is_marked(
    broken: Cell, first: Any, second: Any, totals: list[str]
) -> None:
    names = ("input_tokens", "output_tokens", "usage_source", "cost")
    for number, parts in enumerate((first, second), 1):
        attempt(broken, number, **dict(zip(names, parts, strict=False)))
    broken = Cell.objects.get(pk=broken.pk)

    account = account_of(broken)

    assert [value for _, value in account.totals] == totals
    costs = [dict(told.facts).get("Cost") for told in account.attempts]
    assert (costs[0] is None) is (not first or first[3] is None)


def test_one_attempt_is_not_added_up_and_a_price_makes_a_cost_worth_a_line(
    broken: Cell, steady: LanguageModel
) -> None:
    attempt(broken)
    assert account_of(broken).totals == ()

    attempt(broken, 2)
    LanguageModel.objects.filter(pk=steady.pk).update(input_price=1, output_price=1)
    totals = account_of(Cell.objects.get(pk=broken.pk)).totals

    assert totals == (("Tokens in all", "unknown"), ("Cost in all", "unknown"))


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        ("0", "$0.00"),
        ("0.000000000001", "$0.000000000001"),
        ("0.00123456", "$0.00123"),
        ("0.10", "$0.10"),
        ("0.9999", "$1.00"),
        ("1234.567", "$1,234.57"),
    ],
)
def test_money_is_written_as_finely_as_it_is_small(amount: str, written: str) -> None:
    assert dollars(Decimal(amount)) == written


def test_money_is_written_as_the_language_does() -> None:
    with translation.override("de"):
        assert dollars(Decimal("1234.5")).strip("$ \N{NO-BREAK SPACE}") == "1.234,50"


def test_more_attempts_cost_no_more_queries(alice: User, broken: Cell) -> None:
    client = client_of(alice)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path("details", broken), headers=HTMX).status_code == 200
        return len(captured)

    attempt(broken, withdrawn_text="Half", characters=4)
    attempt(broken, 2)
    few = queries()
    for number in range(3, 9):
        attempt(broken, number, call=number, withdrawn_text="Half", characters=4)

    assert queries() == few


def test_old_rows_say_nothing_of_what_they_do_not_know(
    thread: Thread, steady: LanguageModel
) -> None:
    cell = ended(open_now(thread, steady), text="Half a sen")
    attempt(cell, characters=None, retry_reason="", first_output_ms=None)

    (told,) = account_of(cell).attempts

    assert told.story == "The gateway replied after 0.40 s. Then the connection ended."
    assert told.withdrawn == ""
