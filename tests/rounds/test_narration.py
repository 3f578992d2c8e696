"""What a page says while a call waits to be tried again (requirements B14, J2)."""

import re
from time import monotonic

import pytest
from pytest_django import Settings

from tests.fakegateway import FakeGateway, Head, Script, Stall
from tests.rounds.helpers import until
from tests.rounds.recovering import CUT, SILENT, begun
from threads.models import Thread
from threads.rounds.hub import hub
from threads.rounds.live import LiveCell
from threads.rounds.notes import Note, note
from threads.rounds.published import Activity


@pytest.mark.parametrize(
    ("kind", "seconds", "said"),
    [
        ("reissue", 15.0, r"No answer came\. Trying again in 1[45] s \(2/3\)…"),
        (
            "regenerate",
            15.0,
            r"The answer was cut\. Starting again in 1[45] s \(2/3\)…",
        ),
        ("regenerate", 2.0, r"The answer was cut\. Starting again \(2/3\)…"),
        ("regenerate", 0.0, r"The answer was cut\. Starting again \(2/3\)…"),
        ("model", 0.0, ""),
    ],
)
def test_a_long_wait_is_counted_down(kind: str, seconds: float, said: str) -> None:
    now = monotonic()
    live = LiveCell(1, 1, touch=lambda _: None)
    live.activity = Activity(kind, now, attempt=2, total=3, until=now + seconds)

    assert re.fullmatch(said, note(live).text)
    assert note(live).again == (2 if said else 0)


def test_a_wait_that_has_passed_is_not_counted_below_zero() -> None:
    now = monotonic()
    live = LiveCell(1, 1, touch=lambda _: None)
    live.activity = Activity("reissue", now - 30, attempt=3, total=3, until=now - 1)

    assert note(live) == Note("No answer came. Trying again (3/3)…", again=3)


def test_nothing_is_narrated_of_a_cell_that_is_over() -> None:
    live = LiveCell(1, 1, touch=lambda _: None)
    live.activity = Activity("regenerate", monotonic(), attempt=2, total=3)
    live.finish()

    assert note(live) == Note()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("rounds", "retries")
@pytest.mark.parametrize(
    ("script", "seconds", "said"),
    [
        (SILENT, "15", r"No answer came\. Trying again in 1\d s \(2/3\)…"),
        (SILENT, "2", ""),
        (CUT, "15", r"The answer was cut\. Starting again in 1\d s \(2/3\)…"),
        (CUT, "2", r"The answer was cut\. Starting again \(2/3\)…"),
    ],
    ids=["silence, long", "silence, short", "cut, long", "cut, short"],
)
async def test_a_round_tells_of_a_long_wait_and_of_every_withdrawal(
    thread: Thread,
    gateway: FakeGateway,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    script: Script,
    seconds: str,
    said: str,
) -> None:
    settings.CHAT_RETRY_WAITS = seconds
    watched = await begun(thread, gateway, script)
    await until(lambda: "[ProviderRetry]" in caplog.text)

    told = note(live_cell(thread, watched.round.answer_cell_id))
    assert re.fullmatch(said, told.text)
    await watched.stopped()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("rounds", "retries")
async def test_what_is_tried_again_is_said_until_something_comes(
    thread: Thread, gateway: FakeGateway
) -> None:
    watched = await begun(thread, gateway, CUT, Script(Head(), Stall()))
    await until(lambda: len(gateway.requests) == 2)

    told = note(live_cell(thread, watched.round.answer_cell_id))

    assert told == Note("The answer was cut. Starting again (2/3)…", again=2)
    await watched.stopped()


def live_cell(thread: Thread, cell_id: int) -> LiveCell:
    """The cell that a page of this thread follows."""
    watcher = hub().watch(thread.pk)
    hub().leave(watcher)
    return watcher.cells[cell_id]
