"""When an attempt is followed by another one: a table, with no clock and no wait."""

from dataclasses import replace
from typing import Any

import pytest

from threads.core.endings import WHOLE, Condition, Ending, Verdict
from threads.core.retry import (
    JITTER,
    ONCE,
    Action,
    Attempted,
    Decision,
    Policy,
    Reason,
    decide,
)

POLICY = Policy(retries=2, waits=(15.0, 45.0), window_seconds=480.0)
KEEPS = replace(POLICY, keeps_cut=True)
BUFFERED = replace(POLICY, is_buffered=True)


def ended(
    ending: Ending = Ending.TRUNCATED,
    *,
    transient: bool = True,
    asked_seconds: float | None = None,
) -> Verdict:
    return Verdict(
        code="some_code",
        ending=ending,
        condition=Condition.PROVIDER,
        transient=transient,
        retry_after_seconds=asked_seconds,
    )


SILENT = Attempted(
    number=1,
    verdict=ended(Ending.STALLED),
    is_withdrawable=True,
    has_text=False,
    elapsed_seconds=0.0,
)
CUT = replace(SILENT, verdict=ended(), has_text=True)
CALLED = replace(SILENT, is_withdrawable=False)


def test_an_attempt_that_showed_no_text_is_sent_again() -> None:
    assert decide(SILENT, POLICY) == Decision(Action.REISSUE, None, 15.0)


def test_an_attempt_that_was_cut_after_text_is_regenerated() -> None:
    assert decide(CUT, POLICY) == Decision(Action.REGENERATE, None, 15.0)


@pytest.mark.parametrize(
    "ending", [Ending.STALLED, Ending.TRUNCATED, Ending.FAULTED, Ending.EMPTY]
)
def test_it_is_the_verdict_that_says_what_passes(ending: Ending) -> None:
    passing, lasting = (
        replace(CUT, verdict=ended(ending, transient=transient))
        for transient in (True, False)
    )

    assert decide(passing, POLICY).action is Action.REGENERATE
    assert decide(lasting, POLICY) == Decision(Action.NONE, Reason.NOT_TRANSIENT)


@pytest.mark.parametrize("ending", sorted(WHOLE))
def test_an_answer_is_not_asked_for_again(ending: Ending) -> None:
    whole = replace(CUT, verdict=ended(ending))

    assert decide(whole, POLICY) == Decision(Action.NONE, Reason.WHOLE)


@pytest.mark.parametrize("status", [Ending.REFUSED, Ending.BLOCKED])
def test_a_refusal_that_does_not_pass_says_so(status: Ending) -> None:
    refused = replace(SILENT, verdict=ended(status, transient=False))

    assert decide(refused, POLICY).reason is Reason.NOT_TRANSIENT


def test_a_refusal_that_passes_belongs_to_the_sdk() -> None:
    refused = replace(SILENT, verdict=ended(Ending.REFUSED))

    assert decide(refused, POLICY) == Decision(Action.NONE, Reason.REFUSED)


@pytest.mark.parametrize("has_text", [False, True])
@pytest.mark.parametrize("policy", [POLICY, KEEPS, BUFFERED], ids=repr)
def test_nothing_is_sent_again_after_a_tool_call(
    has_text: bool, policy: Policy
) -> None:
    called = replace(CALLED, has_text=has_text)

    assert decide(called, policy) == Decision(Action.NONE, Reason.TOOL_CALL)


@pytest.mark.parametrize("attempted", [SILENT, CUT])
def test_without_retries_nothing_is_sent_again(attempted: Attempted) -> None:
    off = replace(POLICY, retries=0)

    assert decide(attempted, off).reason is Reason.SWITCHED_OFF
    assert decide(attempted, ONCE).reason is Reason.SWITCHED_OFF


@pytest.mark.parametrize("attempted", [SILENT, CUT])
def test_a_call_has_one_attempt_more_than_it_has_retries(attempted: Attempted) -> None:
    last, beyond = (replace(attempted, number=number) for number in (2, 3))

    assert decide(last, POLICY).reason is None
    assert decide(beyond, POLICY) == Decision(Action.NONE, Reason.EXHAUSTED)


def test_an_agent_that_keeps_what_was_cut_asks_again_only_where_nothing_came() -> None:
    assert decide(CUT, KEEPS) == Decision(Action.NONE, Reason.CUT_KEPT)
    assert decide(SILENT, KEEPS).action is Action.REISSUE


def test_nothing_is_withdrawn_from_a_call_that_shows_nothing() -> None:
    assert decide(CUT, BUFFERED).action is Action.REISSUE
    assert decide(CUT, replace(BUFFERED, keeps_cut=True)).action is Action.REISSUE


@pytest.mark.parametrize(
    ("number", "waits", "wait"),
    [
        (1, (15.0, 45.0), 15.0),
        (2, (15.0, 45.0), 45.0),
        (3, (15.0, 45.0), 45.0),
        (4, (15.0, 45.0), 45.0),
        (2, (7.0,), 7.0),
        (1, (0.0,), 0.0),
    ],
)
def test_the_last_wait_holds_for_all_that_follow(
    number: int, waits: tuple[float, ...], wait: float
) -> None:
    policy = replace(POLICY, retries=9, waits=waits)

    assert decide(replace(SILENT, number=number), policy).wait_seconds == wait


@pytest.mark.parametrize(
    ("roll", "wait"), [(-1.0, 13.5), (-0.5, 14.25), (0.0, 15.0), (1.0, 16.5)]
)
def test_waits_differ_by_a_tenth_at_most(roll: float, wait: float) -> None:
    assert decide(SILENT, POLICY, roll=roll).wait_seconds == pytest.approx(wait)
    assert JITTER == 0.1


@pytest.mark.parametrize("attempted", [SILENT, CUT])
@pytest.mark.parametrize(
    ("elapsed", "reason"),
    [(465.0, None), (465.01, Reason.WINDOW), (481.0, Reason.WINDOW)],
)
def test_no_attempt_starts_after_the_window_its_wait_included(
    attempted: Attempted, elapsed: float, reason: Reason | None
) -> None:
    late = replace(attempted, elapsed_seconds=elapsed)

    assert decide(late, POLICY).reason is reason


def test_a_longer_wait_closes_the_window_sooner() -> None:
    late = replace(SILENT, elapsed_seconds=464.0)

    assert decide(late, POLICY, roll=1.0).reason is Reason.WINDOW
    assert decide(late, POLICY, roll=-1.0).reason is None
    assert decide(replace(late, number=2), POLICY).reason is Reason.WINDOW


@pytest.mark.parametrize(
    ("asked", "roll", "wait"),
    [
        (40.0, 0.0, 40.0),
        (40.0, 1.0, 40.0),
        (3.0, 0.0, 15.0),
        (15.5, -1.0, 15.5),
        (15.5, 1.0, 16.5),
        (0.0, 0.0, 15.0),
        (480.0, 0.0, 480.0),
    ],
)
def test_the_longer_of_our_wait_and_the_one_asked_for_is_kept(
    asked: float, roll: float, wait: float
) -> None:
    busy = replace(SILENT, verdict=ended(Ending.FAULTED, asked_seconds=asked))

    assert decide(busy, POLICY, roll=roll).wait_seconds == pytest.approx(wait)


@pytest.mark.parametrize(
    ("asked", "elapsed", "reason"),
    [
        (480.01, 0.0, Reason.ASKED_TO_WAIT),
        (3600.0, 0.0, Reason.ASKED_TO_WAIT),
        (40.0, 441.0, Reason.ASKED_TO_WAIT),
        (3.0, 470.0, Reason.WINDOW),
    ],
)
def test_a_wait_that_does_not_fit_ends_the_call_and_says_whose_it_was(
    asked: float, elapsed: float, reason: Reason
) -> None:
    verdict = ended(Ending.FAULTED, asked_seconds=asked)
    busy = replace(SILENT, verdict=verdict, elapsed_seconds=elapsed)

    assert decide(busy, POLICY) == Decision(Action.NONE, reason)


def test_what_can_never_be_sent_again_is_said_before_what_was_set() -> None:
    everything = replace(
        CALLED, has_text=True, number=9, elapsed_seconds=999.0, verdict=ended()
    )
    off = replace(KEEPS, retries=0)

    assert decide(everything, off).reason is Reason.TOOL_CALL
    assert decide(replace(everything, verdict=ended(transient=False)), off).reason is (
        Reason.NOT_TRANSIENT
    )
    assert decide(replace(everything, verdict=ended(Ending.LENGTH)), off).reason is (
        Reason.WHOLE
    )


def test_every_reason_that_the_facts_can_give_is_given() -> None:
    verdicts = [ended(Ending.LENGTH), ended(transient=False), ended(Ending.REFUSED)]
    cases = [
        *((replace(SILENT, verdict=verdict), POLICY) for verdict in verdicts),
        (CALLED, POLICY),
        (SILENT, ONCE),
        (replace(SILENT, number=3), POLICY),
        (CUT, KEEPS),
        (replace(SILENT, elapsed_seconds=470.0), POLICY),
        (replace(SILENT, verdict=ended(asked_seconds=999.0)), POLICY),
    ]

    given = {decide(attempted, policy).reason for attempted, policy in cases}

    # A person's Stop is no outcome of the facts: the record says it by itself.
    assert given == set(Reason) - {Reason.STOPPED}


ROUTE = replace(POLICY, advances_on_refusal=True)
FIRST = replace(SILENT, has_next=True)


@pytest.mark.parametrize(
    ("attempted", "policy", "reason"),
    [
        (FIRST, POLICY, Reason.EXHAUSTED),
        (replace(FIRST, number=2), replace(POLICY, tries=2), Reason.EXHAUSTED),
        (replace(FIRST, number=3, others=2), POLICY, Reason.EXHAUSTED),
        (replace(FIRST, number=7, others=6), POLICY, Reason.EXHAUSTED),
        (FIRST, replace(POLICY, retries=0), Reason.SWITCHED_OFF),
        (
            replace(FIRST, elapsed_seconds=470.0),
            replace(POLICY, tries=3),
            Reason.WINDOW,
        ),
        (
            replace(FIRST, verdict=ended(asked_seconds=3600.0)),
            replace(POLICY, tries=3),
            Reason.ASKED_TO_WAIT,
        ),
        (replace(FIRST, verdict=ended(Ending.REFUSED)), ROUTE, Reason.REFUSED),
        (
            replace(FIRST, verdict=ended(Ending.REFUSED, transient=False)),
            ROUTE,
            Reason.NOT_TRANSIENT,
        ),
        (
            replace(FIRST, verdict=ended(Ending.FAULTED, transient=False)),
            replace(ROUTE, tries=3),
            Reason.NOT_TRANSIENT,
        ),
        (FIRST, replace(POLICY, keeps_cut=True), Reason.EXHAUSTED),
        (FIRST, replace(POLICY, is_buffered=True), Reason.EXHAUSTED),
    ],
)
def test_the_next_model_of_a_route_is_asked_at_once_and_it_is_said_why(
    attempted: Attempted, policy: Policy, reason: Reason
) -> None:
    assert decide(attempted, policy, roll=1.0) == Decision(Action.FALLBACK, reason)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"has_next": False}, None),
        ({"has_text": True}, None),
        ({"had_text": True}, None),
        ({"is_withdrawable": False}, Reason.TOOL_CALL),
        ({"is_withdrawable": False, "has_text": True}, Reason.TOOL_CALL),
        ({"number": 3, "has_text": True}, Reason.EXHAUSTED),
        ({"number": 3, "had_text": True}, Reason.EXHAUSTED),
        ({"elapsed_seconds": 480.1}, Reason.WINDOW),
        ({"verdict": ended(Ending.COMPLETED, transient=False)}, Reason.WHOLE),
        ({"verdict": ended(Ending.BLOCKED, transient=False)}, Reason.NOT_TRANSIENT),
        ({"verdict": ended(Ending.EMPTY, transient=False)}, Reason.NOT_TRANSIENT),
    ],
)
@pytest.mark.parametrize("policy", [ROUTE, replace(ROUTE, is_buffered=True)])
def test_no_other_model_goes_on_with_what_was_begun_or_decided(
    changes: dict[str, Any], reason: Reason | None, policy: Policy
) -> None:
    decision = decide(replace(FIRST, **changes), policy)

    assert decision.action is not Action.FALLBACK
    assert decision.reason is reason


@pytest.mark.parametrize("condition", Condition)
@pytest.mark.parametrize("transient", [False, True])
def test_a_refusal_goes_to_the_next_model_only_where_it_speaks_of_this_one(
    condition: Condition, transient: bool
) -> None:
    refusal = replace(ended(Ending.REFUSED, transient=transient), condition=condition)
    refused = replace(FIRST, verdict=refusal)
    theirs = {Condition.PROVIDER, Condition.ACCOUNT_KEY, Condition.OUR_CONFIG}

    advances = decide(refused, ROUTE).action is Action.FALLBACK

    assert advances == (condition in theirs | {Condition.NETWORK})
    assert decide(refused, POLICY).action is Action.NONE


def test_each_model_of_a_route_waits_as_if_it_were_the_first() -> None:
    second = replace(SILENT, number=2, others=1)

    assert decide(second, POLICY) == Decision(Action.REISSUE, None, 15.0)
    assert decide(replace(second, number=3), POLICY).reason is Reason.EXHAUSTED
