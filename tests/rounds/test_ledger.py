"""Opening, claiming, ending and sweeping: of several writers one wins."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone

from tests.rounds.helpers import open_now
from threads.core.faults import Condition, Ending, Verdict
from threads.models import Cell, JournalEntry, LanguageModel, Round, Thread, ToolRun
from threads.rounds import exchanges, ledger, sweep
from threads.rounds.ledger import Outcome, ThreadBusyError
from threads.rounds.opening import title_of
from threads.rounds.worker import is_known_dead, worker_id
from threads.tools.running import ToolResult

pytestmark = pytest.mark.django_db(transaction=True)

COMPLETED = Outcome(Verdict("", Ending.COMPLETED, Condition.UNKNOWN))
FAULTED = Outcome(
    Verdict(
        "finish_error",
        Ending.FAULTED,
        Condition.PROVIDER,
        transient=True,
        sentence_key="stream.faulted",
    )
)
STOPPED = Outcome(ledger.STOPPED)


def at_once(*functions: Callable[[], object]) -> list[object]:
    """Run functions in threads that start together; exceptions are results."""
    barrier = threading.Barrier(len(functions))
    results: list[object] = [None] * len(functions)

    def run(place: int, function: Callable[[], object]) -> None:
        barrier.wait()
        try:
            results[place] = function()
        except Exception as error:  # noqa: BLE001 - a result like any other
            results[place] = error
        finally:
            connections.close_all()

    threads = [
        threading.Thread(target=run, args=(place, function))
        for place, function in enumerate(functions)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return results


def test_a_thread_has_one_round_at_a_time(
    thread: Thread, steady: LanguageModel
) -> None:
    first = open_now(thread, steady)

    with pytest.raises(ThreadBusyError) as refused:
        open_now(thread, steady)

    assert refused.value.round_id == first.pk
    assert Cell.objects.count() == 2


def test_of_questions_sent_at_the_same_moment_one_is_taken(
    thread: Thread, steady: LanguageModel
) -> None:
    results = at_once(*[lambda: open_now(thread, steady)] * 4)

    assert sum(isinstance(result, Round) for result in results) == 1
    assert sum(isinstance(result, ThreadBusyError) for result in results) == 3
    assert Cell.objects.count() == 2


def test_one_submission_opens_one_round_however_often_it_is_sent(
    thread: Thread, steady: LanguageModel
) -> None:
    results = at_once(*[lambda: open_now(thread, steady, submission_key="k")] * 4)

    assert len({result.pk for result in results if isinstance(result, Round)}) == 1
    assert all(isinstance(result, Round) for result in results)


def test_a_submission_is_remembered_after_its_round_is_over(
    thread: Thread, steady: LanguageModel
) -> None:
    first = open_now(thread, steady, submission_key="k")
    ledger.claim_round(first.pk, worker_id())
    ledger.finish_round(first.pk, COMPLETED)

    again = open_now(thread, steady, submission_key="k")

    assert again.pk == first.pk


def test_another_message_with_a_key_that_was_used_is_another_round(
    thread: Thread, steady: LanguageModel
) -> None:
    first = open_now(thread, steady, "One", submission_key="k")
    ledger.request_stop(first.pk)

    second = open_now(thread, steady, "Two", submission_key="k")

    assert second.pk != first.pk
    assert second.user_cell.text == "Two"


def test_two_workers_cannot_both_claim_a_round(
    thread: Thread, steady: LanguageModel
) -> None:
    round_ = open_now(thread, steady)

    results = at_once(
        *[lambda n=n: ledger.claim_round(round_.pk, f"w{n}") for n in range(4)]
    )

    assert sorted(map(bool, results)) == [False, False, False, True]


def test_of_three_terminal_writers_one_wins_and_the_others_leave_a_mark(
    thread: Thread, steady: LanguageModel, caplog: pytest.LogCaptureFixture
) -> None:
    round_ = open_now(thread, steady)
    ledger.claim_round(round_.pk, worker_id())

    results = at_once(
        *[
            lambda o=o: ledger.finish_round(round_.pk, o)
            for o in (COMPLETED, FAULTED, STOPPED)
        ]
    )

    assert sorted(map(bool, results)) == [False, False, True]
    assert caplog.text.count("TERMINAL_WRITE_LOST") == 2
    round_.refresh_from_db()
    cell = Cell.objects.get(pk=round_.answer_cell_id)
    assert (round_.state, round_.ending) == (cell.status, cell.ending)


CAP_IN_PAY = replace(
    FAULTED.verdict, sentence_key="round.cap_tool", params={"tool": "pay"}
)


@pytest.mark.parametrize(
    ("outcome", "told"),
    [(FAULTED, "pay"), (Outcome(CAP_IN_PAY), None), (COMPLETED, None)],
    ids=["fault", "named", "whole"],
)
def test_a_bad_ending_names_the_tool_of_which_nobody_knows_whether_it_finished(
    thread: Thread, steady: LanguageModel, outcome: Outcome, told: str | None
) -> None:
    round_, now = open_now(thread, steady), timezone.now()
    ledger.claim_round(round_.pk, worker_id())
    states = {"mail": "unknown", "pay": "running", "look": "running", "post": "ok"}
    for place, (name, state) in enumerate(states.items()):
        ToolRun.objects.create(
            round=round_,
            call=1,
            position=place,
            name=name,
            state=state,
            has_effects=name != "look",
            started_at=now + timedelta(seconds=place),
        )

    ledger.finish_round(round_.pk, outcome)

    cell = Cell.objects.get(pk=round_.answer_cell_id)
    assert cell.sentence_params.get("unknown_tool") == told
    words = "The tool pay may or may not have finished."
    assert (words in cell.sentence) == (told is not None)


def test_the_stop_marker_wins_over_every_outcome(
    thread: Thread, steady: LanguageModel
) -> None:
    round_ = open_now(thread, steady)
    ledger.claim_round(round_.pk, worker_id())
    ledger.request_stop(round_.pk)

    ledger.finish_round(round_.pk, FAULTED)

    cell = Cell.objects.get(pk=round_.answer_cell_id)
    assert (cell.status, cell.sentence) == ("stopped", "")


def test_an_ending_is_written_with_its_sentence_in_the_round_s_language(
    thread: Thread, steady: LanguageModel
) -> None:
    round_ = open_now(thread, steady, locale="en")
    ledger.claim_round(round_.pk, worker_id())

    ledger.finish_round(round_.pk, FAULTED)

    cell = Cell.objects.get(pk=round_.answer_cell_id)
    assert cell.sentence_params == {"model": "practice/steady"}
    assert "practice/steady" in cell.sentence
    assert (cell.code, cell.condition, cell.transient) == (
        "finish_error",
        "provider",
        True,
    )


def test_tools_that_still_run_at_the_end_are_unknown(
    thread: Thread, steady: LanguageModel
) -> None:
    round_ = open_now(thread, steady)
    ledger.claim_round(round_.pk, worker_id())
    run = ToolRun.objects.create(
        round=round_, call=1, position=0, call_id="c", idempotency_key="k"
    )

    ledger.finish_round(round_.pk, Outcome(sweep.WORKER_LOST))

    run.refresh_from_db()
    assert run.state == "unknown"
    assert not exchanges.end_run(run, ToolResult("ok", "late"))


def test_a_round_of_a_process_that_is_gone_ends_with_what_it_had_flushed(
    thread: Thread, steady: LanguageModel
) -> None:
    host = worker_id().split(":")[0]
    round_ = open_now(thread, steady)
    ledger.claim_round(round_.pk, f"{host}:{2**22 + 1}:token")
    JournalEntry.objects.create(
        cell_id=round_.answer_cell_id, generation=0, offset=0, text="So far"
    )

    assert sweep.end_lost_rounds(timezone.now()) == [round_.pk]

    cell = Cell.objects.get(pk=round_.answer_cell_id)
    assert (cell.status, cell.code, cell.text) == ("error", "worker_lost", "So far")
    assert cell.sentence


def test_a_round_elsewhere_is_lost_when_its_heartbeat_is_old(
    thread: Thread, steady: LanguageModel
) -> None:
    round_ = open_now(thread, steady)
    ledger.claim_round(round_.pk, "another-host:1:token")
    now = timezone.now()

    soon = sweep.end_lost_rounds(now + timedelta(seconds=sweep.STALE_SECONDS - 5))
    later = sweep.end_lost_rounds(now + timedelta(seconds=sweep.STALE_SECONDS + 5))

    assert (soon, later) == ([], [round_.pk])


def test_a_round_that_this_process_holds_is_never_swept(
    thread: Thread, steady: LanguageModel
) -> None:
    round_ = open_now(thread, steady)
    ledger.claim_round(round_.pk, worker_id())
    late = timezone.now() + timedelta(hours=1)

    assert sweep.end_lost_rounds(late, held={round_.pk}) == []
    assert sweep.end_lost_rounds(late) == [round_.pk]


def test_a_round_that_nobody_takes_up_is_offered_again_and_then_ended(
    thread: Thread, steady: LanguageModel
) -> None:
    round_ = open_now(thread, steady)
    now = timezone.now()

    assert sweep.unclaimed_rounds(now) == []
    assert sweep.unclaimed_rounds(now + timedelta(seconds=30)) == [round_.pk]
    assert sweep.end_lost_rounds(now + timedelta(seconds=30)) == []
    assert sweep.end_lost_rounds(now + timedelta(seconds=301)) == [round_.pk]

    cell = Cell.objects.get(pk=round_.answer_cell_id)
    assert (cell.status, cell.code) == ("error", "worker_never_started")


def test_a_round_whose_model_was_deleted_can_still_be_ended(
    thread: Thread, steady: LanguageModel
) -> None:
    round_ = open_now(thread, steady)
    steady.delete()
    ledger.claim_round(round_.pk, worker_id())

    assert ledger.finish_round(round_.pk, FAULTED)

    assert "practice/steady" in Cell.objects.get(pk=round_.answer_cell_id).sentence


def test_a_round_that_is_deleted_while_it_runs_is_a_lost_write(
    thread: Thread, steady: LanguageModel, caplog: pytest.LogCaptureFixture
) -> None:
    round_ = open_now(thread, steady)
    round_id = round_.pk
    thread.delete()

    assert not ledger.finish_round(round_id, COMPLETED)

    assert "TERMINAL_WRITE_LOST" in caplog.text


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Short", "Short"),
        ("  Two\n lines  ", "Two lines"),
        ("x" * 100, "x" * 60 + "…"),
        ("word " * 40, "word " * 11 + "word…"),
        ("", ""),
    ],
)
def test_a_title_is_made_of_whole_words(prompt: str, title: str) -> None:
    assert title_of(prompt) == title


def test_a_worker_is_known_dead_only_on_this_host() -> None:
    host, pid, _ = worker_id().split(":")

    assert not is_known_dead(worker_id())
    assert is_known_dead(f"{host}:{pid}:an-earlier-process")
    assert is_known_dead(f"{host}:{2**22 + 1}:x")
    assert not is_known_dead(f"{host}:1:x")
    assert not is_known_dead(f"elsewhere:{2**22 + 1}:x")
    assert not is_known_dead("nonsense")
    assert not is_known_dead("")


def test_threads_of_two_people_do_not_meet(
    alice: User, bob: User, thread: Thread, steady: LanguageModel
) -> None:
    theirs = Thread.objects.create(owner=bob)

    one, two = open_now(thread, steady), open_now(theirs, steady)

    assert one.thread_id != two.thread_id
    assert Cell.objects.filter(thread=theirs).count() == 2


def test_a_model_that_has_no_name_in_the_round_s_language_is_named_by_its_wire_id(
    thread: Thread, steady: LanguageModel
) -> None:
    round_ = open_now(thread, steady)
    LanguageModel.objects.filter(pk=steady.pk).update(name_en="", name_de="Der Ruhige")
    ledger.claim_round(round_.pk, worker_id())

    ledger.finish_round(round_.pk, FAULTED)

    assert "practice/steady" in Cell.objects.get(pk=round_.answer_cell_id).sentence
