"""What tools do for an answer, told as cards that stand in it (requirements E6, E7, F6).

The caller has activated the viewer's language. Arguments and results are anybody's
words: templates escape them, and long ones are shown in part.
"""

import json
import sys
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from django.db.models.functions import Left
from django.utils.translation import gettext as _

from threads.models import Cell, ToolRun, ToolTurn
from threads.rendering.figures import seconds
from threads.rendering.slots import tools_slot
from threads.rendering.stream import Slot

LONGEST_SHOWN = 4_000
"""Characters of arguments or of a result that a card shows."""

SEEN = "\n\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
"""Ends of lines; parts of words in some scripts, and of emoji."""

UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
BRIEF_LENGTH = 120
SHORTEST_MS = 10

State = ToolRun.State

ICONS = {
    State.WAITING: "hand-raised",
    State.ALLOWED: "clock",
    State.RUNNING: "arrow-path",
    State.OK: "check-circle",
    State.ERROR: "x-circle",
    State.NOT_RUN: "minus-circle",
    State.UNKNOWN: "question-mark-circle",
}


@dataclass(frozen=True, slots=True)
class Value:
    """Arguments or a result as they are shown; JSON is laid out in lines."""

    text: str
    is_json: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """One tool run. `brief` is one line of its arguments; `asked` are the model's own
    where a person changed them."""

    run_id: int
    name: str
    description: str
    state: str
    words: str
    icon: str
    duration: str
    brief: str
    arguments: Value
    asked: Value
    result: Value
    has_effects: bool

    @property
    def is_waiting(self) -> bool:
        """Whether a person is to say if it may run."""
        return self.state == State.WAITING

    @property
    def is_unknown(self) -> bool:
        """Whether nobody can tell what became of it."""
        return self.state == State.UNKNOWN


class ToolsOf:
    """The tools of some cells, read for all of them together when first needed.

    Two queries, however many cells there are.
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._ids = [cell.pk for cell in cells if cell.role == Cell.Role.ASSISTANT]

    def slots(self, cell_id: int) -> tuple[Slot, ...]:
        """Return where the tools of a cell stand: each call's in its place.

        Calls that asked for tools as their answer was cut short have none of their
        own: they stand at the end.
        """
        places = dict.fromkeys(self._cards.get(cell_id, {}), sys.maxsize)
        places |= self._places.get(cell_id, {})
        return tuple(
            tools_slot(cell_id, call, place) for call, place in sorted(places.items())
        )

    def calls(self, cell_id: int) -> list[int]:
        """Return the calls of a cell that asked for tools."""
        return sorted(self._cards.get(cell_id, {}))

    def cards(self, cell_id: int, call: int) -> list[Card]:
        """Return the cards of one call, in the order in which it asked."""
        return self._cards.get(cell_id, {}).get(call, [])

    @cached_property
    def _places(self) -> dict[int, dict[int, int]]:
        found: dict[int, dict[int, int]] = {}
        turns = ToolTurn.objects.filter(round__answer_cell__in=self._ids)
        rows = turns.values_list("round__answer_cell", "call", "text_length")
        for cell_id, call, place in rows if self._ids else ():
            found.setdefault(cell_id, {})[call] = place
        return found

    @cached_property
    def _cards(self) -> dict[int, dict[int, list[Card]]]:
        found: dict[int, dict[int, list[Card]]] = {}
        # Of a result only as much is read as is shown.
        runs = (
            ToolRun.objects.filter(round__answer_cell__in=self._ids)
            .defer("result")
            .annotate(shown=Left("result", LONGEST_SHOWN + 1))
            .select_related("round")
            .order_by("call", "position")
        )
        for run in runs if self._ids else ():
            cards = found.setdefault(run.round.answer_cell_id, {})
            cards.setdefault(run.call, []).append(card_of(run, run.shown))
        return found


def card_of(run: ToolRun, result: str) -> Card:
    """Tell one run; `result` is its result, or the beginning of a long one."""
    # Who is to decide must see all that is to run.
    limit = sys.maxsize if run.state == State.WAITING else LONGEST_SHOWN
    return Card(
        run_id=run.pk,
        name=run.name or _("A tool without a name"),
        description=visible(run.description) if run.state == State.WAITING else "",
        state=run.state,
        words=run.get_state_display(),
        icon=ICONS[State(run.state)],
        duration=_duration(run),
        brief=_brief(run.arguments),
        arguments=_value(run.arguments, limit),
        asked=_value(run.arguments_asked, limit),
        result=_value(result, LONGEST_SHOWN),
        has_effects=run.has_effects,
    )


def _duration(run: ToolRun) -> str:
    if run.started_at is None or run.ended_at is None:
        return ""
    took = (run.ended_at - run.started_at).total_seconds() * 1000
    return _("%(seconds)s s") % {"seconds": seconds(max(SHORTEST_MS, round(took)))}


def _parsed(text: str) -> object:
    """Read JSON that has parts; None for anything else."""
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        if isinstance(value, dict | list):
            return value
    return None


def _value(text: str, limit: int) -> Value:
    if len(text) > limit:
        return Value(text[:limit], is_cut=True)
    value = _parsed(text)
    if value is None:
        return Value(text)
    if not value:
        return Value("")
    with suppress(RecursionError):
        laid_out = visible(json.dumps(value, ensure_ascii=False, indent=2))
        # What is nested deeply is mostly indentation.
        if len(laid_out) <= 4 * len(text) + 100:
            return Value(laid_out, is_json=True)
    return Value(visible(text), is_json=True)


def visible(text: str) -> str:
    """Write what cannot be seen as JSON escapes it: who decides sees what will run.

    Signs that turn the direction of text or have no width, and halves of pairs, which
    no page can carry. Inside of JSON the value stays the same.
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        json.dumps(sign)[1:-1]
        if unicodedata.category(sign) in UNSEEN and sign not in SEEN
        else sign
        for sign in text
    )


def _brief(arguments: str) -> str:
    """Say on one line what a tool was asked: the values, without their names."""
    words, value = arguments, _parsed(arguments[: 4 * LONGEST_SHOWN])
    if isinstance(value, dict):
        with suppress(RecursionError):
            words = ", ".join(map(_in_a_word, value.values()))
    line = visible(" ".join(words[: 4 * BRIEF_LENGTH].split()))
    return line if len(line) <= BRIEF_LENGTH else line[: BRIEF_LENGTH - 1] + "…"


def _in_a_word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
