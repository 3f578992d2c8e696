"""What the bounds of production allow: real settings, real sockets, a clock that jumps."""

import asyncio
import os
import runpy
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.fakegateway import FakeGateway, Pause, Reset, Script, Stall, chunk, frame
from tests.gateway.calling import request_to
from tests.virtualtime import VirtualTimeLoop
from threads import conf
from threads.core.faults import Ending
from threads.core.retry import Policy
from threads.gateway.calls import AttemptRecord, CallBounds, run_call
from threads.gateway.clients import close_clients
from threads.rounds.brief import Brief
from threads.rounds.broadcast import Place
from threads.rounds.folding import Folded
from threads.rounds.progress import retry_policy
from threads.tools.toolset import Toolset

SETTINGS = Path(__file__).parents[2] / "chatsite" / "settings.py"
NOBODY = Brief(
    place=Place(1, 1, 1, 1, 1),
    locale="en",
    model="some-model",
    messages=[],
    exchanges=[],
    written=Folded(0, "", ""),
    toolset=Toolset(),
    attended=True,
    is_practice=False,
    keeps_cut=False,
    is_buffered=False,
    endpoint=None,
    key=None,
    problem=None,
)

Played = tuple[list[AttemptRecord], list[float]]
Player = Callable[..., Played]

SILENCE = Script(Stall())
CUT = Script(chunk(content="Half an ans"), Reset())


@pytest.fixture
def bounds(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> conf.Bounds:
    """The bounds that a site has which sets none of them."""
    for name in [name for name in os.environ if name.startswith("CHAT_")]:
        monkeypatch.delenv(name)
    shipped = runpy.run_path(str(SETTINGS))
    for name in [name for name in shipped if name.startswith("CHAT_")]:
        setattr(settings, name, shipped[name])
    return conf.bounds()


@pytest.fixture
def play(bounds: conf.Bounds) -> Player:
    """Plays scripts to one call: its ledger, and when each request was received.

    Times are seconds after the first request.
    """
    clocks = CallBounds(bounds.first_data_seconds, bounds.idle_seconds)
    shipped = retry_policy(NOBODY, bounds)

    def play(*scripts: Script, policy: Policy = shipped) -> Played:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(_played(scripts, clocks, policy))

    return play


async def _played(
    scripts: tuple[Script, ...], clocks: CallBounds, policy: Policy
) -> Played:
    async with FakeGateway() as gateway:
        gateway.play(*scripts)
        request = request_to(gateway.base_url)
        async with aclosing(run_call(request, bounds=clocks, retry=policy)) as call:
            records = [each async for each in call if isinstance(each, AttemptRecord)]
        await close_clients()
        times = [each.received_at for each in gateway.requests]
        return records, [time - times[0] for time in times]


def decisions(records: list[AttemptRecord]) -> list[tuple[str, str]]:
    return [(each.retry_decision, each.retry_reason) for each in records]


def test_a_first_data_stall_gets_exactly_one_retry(play: Player) -> None:
    records, times = play(SILENCE)

    assert len(times) == 2
    assert times[1] == pytest.approx(300 + 15, abs=1.6)
    assert [each.code for each in records] == ["stalled_before_start"] * 2
    assert decisions(records) == [("reissue", ""), ("none", "window")]
    assert records[-1].ending == Ending.STALLED


def test_cuts_in_the_middle_of_the_text_use_both_retries(play: Player) -> None:
    records, times = play(CUT)

    assert len(times) == 3
    assert [each.wait_ms for each in records] == [
        0,
        pytest.approx(15_000, rel=0.1),
        pytest.approx(45_000, rel=0.1),
    ]
    assert times[1] == pytest.approx(records[1].wait_ms / 1000, abs=0.2)
    assert decisions(records) == [
        ("regenerate", ""),
        ("regenerate", ""),
        ("none", "exhausted"),
    ]


def test_a_stall_in_the_middle_is_found_after_two_minutes(play: Player) -> None:
    records, times = play(Script(chunk(content="Half"), Stall()), CUT)

    assert records[0].code == "stalled_mid_answer"
    assert times[1] == pytest.approx(120 + 15, abs=1.6)


@pytest.mark.parametrize(
    ("seconds", "tries", "reason"), [(463.0, 2, ""), (467.0, 1, "window")]
)
def test_a_late_cut_is_tried_again_inside_the_window_only(
    play: Player, seconds: float, tries: int, reason: str
) -> None:
    word, pause = chunk(content="word "), Pause(seconds / 4)
    slow = Script(word, pause, word, pause, word, pause, word, pause, Reset())

    records, times = play(slow, SILENCE)

    assert (len(times), records[0].retry_reason) == (tries, reason)
    assert times[-1] <= 480


def test_the_wait_that_a_gateway_asks_for_is_kept(play: Player) -> None:
    busy = {"code": 429, "message": "slow down", "availability": {"retry_after": 40}}

    records, times = play(Script(frame({"error": busy})), CUT)

    assert records[1].wait_ms == 40_000
    assert times[1] == pytest.approx(40, abs=0.1)


def test_a_wait_beyond_the_window_ends_the_call_at_once(play: Player) -> None:
    busy = {"code": 429, "message": "slow down", "availability": {"retry_after": 3600}}

    records, times = play(Script(frame({"error": busy})))

    assert len(times) == 1
    assert decisions(records) == [("none", "asked_to_wait")]


def test_without_retries_a_call_is_sent_once(play: Player, bounds: conf.Bounds) -> None:
    policy = retry_policy(NOBODY, replace(bounds, call_retries=0))

    records, times = play(CUT, policy=policy)

    assert len(times) == 1
    assert decisions(records) == [("none", "switched_off")]
