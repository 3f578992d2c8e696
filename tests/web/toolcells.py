"""Answers whose tools were asked for, written without a model."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from tests.rounds.helpers import open_now
from threads.models import (
    Cell,
    JournalEntry,
    LanguageModel,
    Round,
    Thread,
    ToolRun,
    ToolTurn,
)

BEFORE, AFTER = "Before the tools.", "\n\nAfter the tools."


def asked(
    cell: Cell, *runs: dict[str, Any], call: int = 1, at: int = 0
) -> list[ToolRun]:
    """Write a turn of a cell's round and its runs; `at` is the length of the text."""
    round_, now = cell.round, timezone.now()
    ToolTurn.objects.create(round=round_, call=call, text_length=at)
    fields = {
        "name": "echo",
        "arguments": '{"word": "a"}',
        "state": "ok",
        "started_at": now - timedelta(seconds=2),
        "ended_at": now,
    }
    return [
        ToolRun.objects.create(
            round=round_,
            call=call,
            position=position,
            call_id=f"c{position}",
            **fields | run,
        )
        for position, run in enumerate(runs)
    ]


def waiting(
    thread: Thread, model: LanguageModel, **more: Any
) -> tuple[Cell, list[ToolRun]]:
    """An answer that waits for its person to decide on two tools."""
    round_ = open_now(thread, model)
    Round.objects.filter(pk=round_.pk).update(state=Round.State.ASKING)
    cell = Cell.objects.get(pk=round_.answer_cell_id)
    JournalEntry.objects.create(cell=cell, generation=0, offset=0, text=BEFORE)
    run = {"state": "waiting", "started_at": None, "ended_at": None} | more
    return cell, asked(
        cell, run, run | {"name": "mail", "has_effects": True}, at=len(BEFORE)
    )
