"""Any round, whatever its gateway does and whenever it is stopped, keeps its promises.

A gateway on real loopback is played step by step, while the round runs through the
real engine, database and hub. `ROUND_EXAMPLES` sets how many rounds are played (else
some in CI and fewer elsewhere); with it the examples are drawn anew, and
`--hypothesis-seed` counts.
"""

import os
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, ClassVar, TypeVar

import pytest
from django.conf import settings as site
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pytest_django import Settings

from tests.rounds import audit
from tests.rounds.helpers import open_now
from tests.rounds.play import After, Amid, Cut, Fragment, Hint, Play
from tests.rounds.scene import FIRST_DATA, IDLE, Message
from tests.rounds.theatre import Theatre, open_theatre
from tests.rounds.tries import Rules
from threads.models import Round, Thread

Taken = TypeVar("Taken", bound=Callable[..., None])

ASKED_FOR = os.environ.get("ROUND_EXAMPLES")
EXAMPLES = int(ASKED_FOR or (60 if os.environ.get("CI") == "true" else 40))
MOST_ROUNDS = 2

many = settings(
    deadline=None,
    derandomize=ASKED_FOR is None,
    max_examples=EXAMPLES,
    stateful_step_count=20,
    suppress_health_check=list(HealthCheck),
)

RULES = st.builds(
    Rules,
    retries=st.sampled_from((2, 2, 2, 1, 0)),
    window=st.sampled_from((60.0, 60.0, 8.0, 3.0)),
    keeps=st.sampled_from((False, False, False, True)),
    is_buffered=st.sampled_from((False, False, False, True)),
)
PIECES = st.lists(
    st.sampled_from(("one ", "two ", "ha ", "ha ", "end. ", "wo", "😀", " ", "\n\n")),
    min_size=1,
    max_size=3,
)
Parts = tuple[str, ...]
CALLS_NAME, CALLS_HALF = "<name>", "<half>"
FIRST: st.SearchStrategy[Parts] = st.sampled_from(
    (
        *((), (), ("half ",), ("ha ", "ha "), (" ",)),
        *((CALLS_NAME,), ("So ", CALLS_NAME), ("So ", CALLS_HALF)),
    )
)
"""What comes right before the end of a response: text, or a fragment of a call."""
TEXT = st.sampled_from(((), (), ("half ",), ("ha ", "ha "), (" ",)))
SEEN = st.booleans()


def when(*states: str) -> Callable[[Taken], Taken]:
    """A step that is possible in these states of the round only."""
    return precondition(lambda self: self.play.state in states)


class AnyRound(RuleBasedStateMachine):
    """One thread: a round, and perhaps more after it."""

    theatre: ClassVar[Theatre]

    def __init__(self) -> None:
        super().__init__()
        self.is_intact = True
        self.rounds = 0
        self.history: list[Message] = []
        self.theatre.said.clear()
        self.theatre.mishaps.clear()
        self.thread = Thread.objects.create(owner=self.theatre.owner)

    @initialize(rules=RULES, seed=st.integers(0, 7))
    def asks(self, rules: Rules, seed: int) -> None:
        random.seed(seed)  # The jitter's: hypothesis seeds it alike for every example.
        self.ask(rules)

    @when("over")
    @precondition(lambda self: self.rounds < MOST_ROUNDS)
    @rule(rules=RULES)
    def asks_again(self, rules: Rules) -> None:
        self.ask(rules)

    # What the gateway does.

    @when("asked")
    @rule(pieces=PIECES, together=st.booleans(), passes=SEEN)
    def says(self, pieces: list[str], together: bool, passes: bool) -> None:
        self.do(self.play.say(pieces, together=together, passes=passes))

    @when("asked")
    @rule(piece=st.sampled_from(("Let me see. ", "Hm")), passes=SEEN)
    def thinks(self, piece: str, passes: bool) -> None:
        self.do(self.play.think(piece, passes=passes))

    @when("asked")
    @rule(kind=st.sampled_from(("name", "half", "whole")))
    def calls_a_tool(self, kind: Fragment) -> None:
        self.do(self.play.call_tool(kind))

    @when("asked")
    @rule(kind=st.sampled_from(("role", "comment", "usage", "empty")))
    def hints(self, kind: Hint) -> None:
        self.do(self.play.hint(kind))

    @when("asked")
    @precondition(lambda self: self.play.may_pass(1.0))
    @rule()
    def is_silent_for_a_while(self) -> None:
        self.do(self.play.pass_time(1.0))

    @when("asked")
    @rule(
        how=st.sampled_from(("eof", "half", "reset", "silence")),
        first=FIRST,
        is_stubborn=st.booleans(),
    )
    def is_cut(self, how: Cut, first: Parts, is_stubborn: bool) -> None:
        self.do(self.play.cut(how), first=first)
        while is_stubborn and self.play.state in ("waiting", "refused"):
            self.do(self.play.wait())
            self.do(self.play.cut(how))

    @when("asked")
    @rule(
        code=st.sampled_from(
            ("http_5xx", "http_429", "finish_error", "http_403", "http_400")
        ),
        asked_wait=st.sampled_from((None, None, None, 1.5, 5.0, 90.0)),
        first=FIRST,
    )
    def fails(self, code: str, asked_wait: float | None, first: Parts) -> None:
        self.do(self.play.fail(code, asked_wait=asked_wait), first=first)

    @when("asked")
    @rule(
        finish=st.sampled_from(("stop", "stop", "tool_calls", "length")),
        then=st.sampled_from(("done", "done", "eof", "reset", "error", "silence")),
        has_usage=st.booleans(),
        first=TEXT,
    )
    def completes(
        self, finish: str, then: After, has_usage: bool, first: Parts
    ) -> None:
        step = self.play.complete(finish, then, has_usage=has_usage)
        self.do(step, first=first)

    @when("asked")
    @rule(first=TEXT)
    def asks_for_a_tool(self, first: Parts) -> None:
        self.do(self.play.call_tool("whole"), first=first)
        self.do(self.play.complete("tool_calls", "done", has_usage=True))

    @when("asked")
    @precondition(lambda self: not self.play.exchange.has_head)
    @rule(status=st.sampled_from((0, 403, 429, 503)), is_stubborn=st.booleans())
    def refuses(self, status: int, is_stubborn: bool) -> None:
        self.do(self.play.refuse(status))
        while is_stubborn and self.play.state == "refused":
            self.do(self.play.wait())
            self.do(self.play.refuse(status))

    @when("waiting", "refused")
    @rule()
    def the_wait_passes(self) -> None:
        self.do(self.play.wait())

    # What people do.

    @when("asked", "waiting", "refused")
    @rule(
        sees=st.booleans(),
        amid=st.sampled_from(("", "", "text", "end", "cut", "tools")),
        turns=st.integers(0, 30),
    )
    def stop_is_pressed(self, sees: bool, amid: Amid, turns: int) -> None:
        self.do(self.play.press_stop(sees=sees, amid=amid, turns=turns))

    @when("asked", "waiting")
    @precondition(lambda self: not self.play.visitors and self.may_look)
    @rule()
    def a_page_opens(self) -> None:
        self.do(self.play.open_page())

    @when("asked", "waiting")
    @precondition(lambda self: self.play.visitors and self.may_look)
    @rule()
    def a_page_comes_back(self) -> None:
        self.do(self.play.lose_page())

    @rule()
    def a_slow_page_looks(self) -> None:
        self.play.lazy.look()

    @property
    def may_look(self) -> bool:
        """Time passes meanwhile, which may be too much."""
        return self.play.state == "asked" and self.play.may_pass(1.0)

    # How a round is begun, and looked at when it is over.

    def ask(self, rules: Rules) -> None:
        """Ask once more in this thread."""
        # Not by the fixture, which lays one layer of settings over another each time.
        site.CHAT_CALL_RETRIES = rules.retries
        site.CHAT_RETRY_WAITS = ",".join(map(str, rules.waits))
        site.CHAT_RETRY_WINDOW_SECONDS = rules.window
        self.rounds += 1
        prompt = f"Question {self.rounds}"
        agent = self.theatre.agents["keep" if rules.keeps else "regenerate"]
        round_ = open_now(self.thread, self.theatre.model, prompt, agent=agent)
        Round.objects.filter(pk=round_.pk).update(is_buffered=rules.is_buffered)
        self.history.append({"role": "user", "content": prompt})
        self.play = Play(self.theatre, self.thread, round_, rules)
        self.do(self.play.begin(self.history))

    def do(self, step: Coroutine[Any, Any, None], *, first: Parts = ()) -> None:
        """Take one step; what comes after a failed one says nothing."""
        self.is_intact = False
        for part in first:
            if part in (CALLS_NAME, CALLS_HALF):
                kind: Fragment = "name" if part == CALLS_NAME else "half"
                self.theatre.run(self.play.call_tool(kind))
            else:
                self.theatre.run(self.play.say([part], together=True, passes=False))
        self.theatre.run(step)
        if self.play.state == "over":
            self.look_back()
        self.is_intact = True

    def look_back(self) -> None:
        """Hold a round that is over against what the gateway sent."""
        play, expected = self.play, self.play.expected
        round_, cell = audit.stored(play.round)
        event(f"{round_.state} {round_.code}")
        audit.ended_well(round_, play.may_end)
        assert cell.text in play.may_stand
        if not play.is_vague:
            assert cell.text_generation == expected.generation
        audit.ledger_tells_the_truth(round_, expected, play.log, is_vague=play.is_vague)
        audit.tools_ran_once(round_, expected, is_vague=play.is_vague)
        stands = (cell.text, cell.text_generation, cell.status)
        self.theatre.run(play.pages_agree(*stands))
        play.late_page_agrees(*stands)
        self.leaves_nothing_behind()
        self.history += audit.told_later(round_, cell, play.told[len(self.history) :])

    def leaves_nothing_behind(self) -> None:
        """No task, no connection, no mishap, no second terminal write."""
        self.theatre.run(self.theatre.is_still())
        assert not self.theatre.mishaps, self.theatre.mishaps
        assert self.theatre.unexpected() == []

    def teardown(self) -> None:
        """Bring a round that still runs to a good end; let go of everything."""
        if self.is_intact and self.play.state != "over":
            self.finish()
        if not self.is_intact:
            self.theatre.run(self.play.leave())

    def finish(self) -> None:
        """Answer what is left to be answered."""
        while self.play.state in ("waiting", "refused"):
            self.do(self.play.wait())
        self.do(self.play.say(["so."], together=True, passes=True))
        self.do(self.play.complete("length", "done", has_usage=True))


@pytest.fixture
def theatre(transactional_db: None, settings: Settings) -> Iterator[Theatre]:
    settings.CHAT_CALL_RETRIES = settings.CHAT_RETRY_WINDOW_SECONDS = 0
    settings.CHAT_RETRY_WAITS = ""
    settings.CHAT_FIRST_DATA_SECONDS = FIRST_DATA
    settings.CHAT_IDLE_SECONDS = IDLE
    with open_theatre() as theatre:
        yield theatre


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_any_round_keeps_its_promises(theatre: Theatre) -> None:
    AnyRound.theatre = theatre

    run_state_machine_as_test(AnyRound, settings=many)
