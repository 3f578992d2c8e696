"""What the database must say of a round that is over: its cell, its rows, its tools."""

from tests.rounds.drivengateway import Exchange
from tests.rounds.expected import Expected
from tests.rounds.tries import CUT, WHOLE, Try
from threads.models import CallAttempt, Cell, JournalEntry, Round, ToolRun, ToolTurn
from threads.rounds.exchanges import exchanges_of
from threads.rounds.report import report

CONCLUDED = {
    "completed": ("done", "completed"),
    "length": ("done", "completed"),
    "stopped": ("stopped", "cancelled"),
    "refused": ("error", "refused"),
}
"""State of the round and outcome of its last attempt, by ending; else error, faulted."""


def ended_well(round_: Round, may_end: set[tuple[str, str]]) -> None:
    """See that round, cell and thread are in one terminal state."""
    cell = round_.answer_cell
    assert (round_.ending, round_.code) in may_end
    assert (cell.ending, cell.code) == (round_.ending, round_.code)
    state, _ = CONCLUDED.get(round_.ending, ("error", "faulted"))
    assert (round_.state, cell.status) == (state, state)
    assert bool(cell.sentence) is (state == "error" or round_.ending == "length")
    assert not cell.sentence or cell.sentence not in cell.text
    assert round_.ended_at is not None
    assert cell.ended_at is not None
    active = Round.objects.filter(thread=round_.thread_id, state__in=Round.ACTIVE)
    assert not active.exists()
    assert not JournalEntry.objects.filter(cell=cell).exists()


def ledger_tells_the_truth(
    round_: Round, expected: Expected, log: list[Exchange], *, is_vague: bool
) -> None:
    """See that the rows are the attempts that were made, and the gateway's own log."""
    rows = list(CallAttempt.objects.filter(round=round_).order_by("call", "attempt"))
    known = expected.tries[:-1] if is_vague else expected.tries
    assert len(rows) >= len(expected.tries)
    for row, attempt in zip(rows, known, strict=False):
        _row_is_true(row, attempt)
    tries = sum(1 + row.transport_retries for row in rows)
    if is_vague:
        # Stop may have come before the request of an attempt went out.
        assert tries - len(log) in (0, 1)
        return
    assert len(rows) == len(known)
    assert tries == len(log)
    if round_.ending in WHOLE:
        assert round_.model_served == f"served-{expected.now.name}"
    played = [exchange for attempt in known for exchange in attempt.exchanges]
    assert [each.number for each in played] == [each.number for each in log]
    _sums_are_true(round_, rows)


def _row_is_true(row: CallAttempt, attempt: Try) -> None:
    _, outcome = CONCLUDED.get(attempt.ending, ("error", "faulted"))
    assert (row.call, row.attempt) == (attempt.call, attempt.number)
    assert (row.ending, row.code, row.outcome) == (
        *(attempt.ending, attempt.code, outcome),
    )
    tries = len(attempt.exchanges)
    assert row.transport_retries == tries - 1
    decision = attempt.decision
    if decision == "none" and tries > 1:
        decision = "transport"
    assert row.retry_decision == decision
    reasons = attempt.reasons if attempt.decision == "none" else {""}
    assert row.retry_reason in reasons, (row.retry_reason, reasons)
    assert abs(row.wait_ms - attempt.waited * 1000) <= 1
    is_held = bool(attempt.text) and not attempt.is_readable
    assert row.chunks_received == attempt.chunks
    lost = is_held and attempt.ending == "stopped"
    assert row.characters == (0 if lost else len(attempt.text))
    assert row.model_served in ("", f"served-{attempt.name}")
    assert row.output_committed is (attempt.is_readable or bool(attempt.tools))
    withdrawn = attempt.text if decision == "regenerate" else ""
    assert row.withdrawn_text == withdrawn
    is_whole = attempt.ending in WHOLE
    has_shown = attempt.is_readable or attempt.thoughts or attempt.tools
    shown = "partial" if has_shown else "failed_before_display"
    assert row.stream_state == ("complete" if is_whole else shown)
    _usage_is_true(row, attempt)


def _usage_is_true(row: CallAttempt, attempt: Try) -> None:
    came = attempt.is_readable or attempt.thoughts or attempt.tools
    counts = (row.input_tokens, row.output_tokens)
    if attempt.usage is not None:
        assert (*counts, row.usage_source) == (*attempt.usage, "provider")
    elif attempt.ending in CUT and came:
        assert row.usage_source == "estimated"
        assert row.input_tokens
        assert row.output_tokens
    elif attempt.ending != "stopped":
        assert (*counts, row.usage_source) == (None, None, "unknown")


def _sums_are_true(round_: Round, rows: list[CallAttempt]) -> None:
    told = report(round_)["usage"]
    assert isinstance(told, dict)
    if any(row.usage_source == "unknown" for row in rows):
        assert (told["input"], told["output"]) == (None, None)
    else:
        assert told["output"] == sum(row.output_tokens or 0 for row in rows)
        assert told["input"] == sum(row.input_tokens or 0 for row in rows)


def tools_ran_once(round_: Round, expected: Expected, *, is_vague: bool) -> None:
    """See that every call that stood in a whole answer ran once, and no other.

    What had come of a call in an answer that was cut is told as not run (D8), and so
    is what an answer asks for with which its model goes round in circles (F7).
    """
    circles = expected.tries[-1] if expected.ended[1].startswith("repeated_") else None
    runs = ToolRun.objects.filter(round=round_).order_by("call", "position")
    done = [(run.call, run.call_id, run.state) for run in runs]
    asked = [
        (
            attempt.call,
            tool.id,
            "not_run" if attempt is circles else _state_of(attempt, tool.state),
        )
        for attempt in expected.tries
        if attempt.ending in WHOLE | CUT
        for tool in attempt.tools
    ]
    assert done[: len(asked)] == asked
    assert is_vague or len(done) == len(asked)


def _state_of(attempt: Try, state: str) -> str:
    return state if attempt.ending == "completed" else "not_run"


def told_later(
    round_: Round, cell: Cell, told: list[dict[str, object]]
) -> list[dict[str, object]]:
    """What the next question carries of an answer: the exchanges with tools as the
    gateway was sent them (`told`), those it was not sent any more, the last words."""
    turns = list(ToolTurn.objects.filter(round=round_).order_by("call"))
    messages = list(told)
    sent = sum(message["role"] == "assistant" for message in told)
    for exchange in exchanges_of([round_.pk]).get(round_.pk, [])[sent:]:
        messages += exchange.messages()
    rest = cell.text[turns[-1].text_length :].lstrip("\n") if turns else cell.text
    if rest.strip():
        messages.append({"role": "assistant", "content": rest})
    return messages


def stored(round_: Round) -> tuple[Round, Cell]:
    """Read a round and its cell anew."""
    again = Round.objects.select_related("answer_cell").get(pk=round_.pk)
    return again, again.answer_cell
