"""Exchanges with tools: what a model said as it asked, the runs, what they told.

Written before anything runs and read by whoever goes on with a round, so that the
next request is the same whichever process sends it. Plain functions of the ORM.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from threads.core.answer import clean
from threads.core.events import ToolCall
from threads.models import Round, ToolRun, ToolTurn
from threads.tools.arguments import UnfitError, arguments_of
from threads.tools.registry import NAME_LENGTH, UNFIT_IN_NAMES, Tool
from threads.tools.running import MAYBE, ToolResult, problem_with
from threads.tools.toolset import Toolset

Message = dict[str, object]
State = ToolRun.State

NOBODY_THERE = "The tool was not run: a person has to allow it, and nobody is there."
DECLINED = "The person did not allow this tool to run."
NOT_RUN = "The tool was not run."
MOST_IN_ONE_ANSWER = 100
TOO_MANY = f"The tool was not run: more than {MOST_IN_ONE_ANSWER} at once are too many."
NO_RESULT = "(The tool gave no result.)"

NAMELESS = "unknown"
DESCRIPTION_LENGTH = 1_000


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn of the model that asked for tools, and its runs in their order."""

    turn: ToolTurn
    runs: list[ToolRun]

    @property
    def is_open(self) -> bool:
        """Whether a run is still to be decided on or to be run."""
        return any(run.state in {State.WAITING, State.ALLOWED} for run in self.runs)

    @property
    def ready(self) -> list[ToolRun]:
        """The runs that are to begin.

        What changes something does not overtake a run that waits: the model asked
        for them in an order.
        """
        ready, waits = list[ToolRun](), False
        for run in self.runs:
            waits = waits or run.state == State.WAITING
            if run.state == State.ALLOWED and not (waits and run.has_effects):
                ready.append(run)
        return ready

    def messages(self, *, with_reasoning: bool = False) -> list[Message]:
        """The exchange as a request carries it: never the half of one (F10).

        Some models want back what they thought as they asked (classifier Q8).
        """
        asking: Message = {
            "role": "assistant",
            "content": self.turn.text if self.turn.text.strip() else None,
            "tool_calls": [_call(run) for run in self.runs],
        }
        if with_reasoning and self.turn.reasoning:
            asking["reasoning_content"] = self.turn.reasoning
        return [asking, *(_told(run) for run in self.runs)]


def _call(run: ToolRun) -> Message:
    """A call as the model made it, in a form that every gateway takes.

    Many refuse a request in which a name or arguments are not what they should be,
    and would do so for the rest of the thread; what was wrong is in the result.
    """
    asked = run.arguments_asked or run.arguments
    try:
        arguments_of(asked)
    except UnfitError:
        asked = "{}"
    name = UNFIT_IN_NAMES.sub("_", run.name)[:NAME_LENGTH] or NAMELESS
    function = {"name": name, "arguments": asked}
    return {"id": run.call_id, "type": "function", "function": function}


def _told(run: ToolRun) -> Message:
    nothing = MAYBE if run.state == State.UNKNOWN else NOT_RUN
    text = run.result or (NO_RESULT if run.state == State.OK else nothing)
    if run.arguments_asked:
        text = f"[The person changed the arguments to: {run.arguments}]\n{text}"
    return {"role": "tool", "tool_call_id": run.call_id, "content": text}


def exchanges_of(rounds: Iterable[int]) -> dict[int, list[Exchange]]:
    """Read the exchanges of some rounds, by round, in order; two queries."""
    found: dict[int, list[Exchange]] = {}
    runs: dict[tuple[int, int], list[ToolRun]] = {}
    ids = list(rounds)
    for run in ToolRun.objects.filter(round__in=ids).order_by("call", "position"):
        runs.setdefault((run.round_id, run.call), []).append(run)
    for turn in ToolTurn.objects.filter(round__in=ids).order_by("call"):
        exchange = Exchange(turn, runs.get((turn.round_id, turn.call), []))
        found.setdefault(turn.round_id, []).append(exchange)
    return found


def begin(turn: ToolTurn, runs: list[ToolRun]) -> Exchange:
    """Write an exchange before any of its tools runs.

    Some models give every call the same id; in one conversation no two have one.
    """
    with transaction.atomic():
        ids = [run.call_id for run in runs]
        same = ToolRun.objects.filter(
            round__thread__rounds=turn.round_id, call_id__in=ids
        )
        taken = set(same.values_list("call_id", flat=True))
        for run in runs:
            if run.call_id in taken:
                run.call_id = f"{run.call_id[:150]}_{run.round_id}_{run.call}"
        turn.save()
        return Exchange(turn, ToolRun.objects.bulk_create(runs))


def decline(runs: list[ToolRun]) -> None:
    """Record calls of an answer that was cut short: they are not run (F14)."""
    ToolRun.objects.bulk_create(runs)


def new_runs(
    round_id: int,
    call: int,
    asked: Sequence[ToolCall],
    toolset: Toolset,
    *,
    attended: bool,
    may_run: bool = True,
) -> list[ToolRun]:
    """Return a run for each call, not yet written: to be run, asked about, or not run.

    `attended` says that a person can be asked; `may_run` is False for the calls of
    an answer that was cut short.
    """
    runs = [
        _new_run(round_id, call, position, each, toolset, attended, may_run)
        for position, each in enumerate(asked)
    ]
    for run in runs[MOST_IN_ONE_ANSWER:]:
        run.state, run.result, run.ended_at = State.NOT_RUN, TOO_MANY, run.asked_at
    return runs


def _new_run(
    round_id: int,
    call: int,
    position: int,
    asked: ToolCall,
    toolset: Toolset,
    attended: bool,
    may_run: bool,
) -> ToolRun:
    state, result = State.NOT_RUN, ""
    if may_run:
        result = problem_with(asked, toolset)
        if not result and not toolset.must_ask(asked.name):
            state = State.ALLOWED
        elif not result and attended:
            state = State.WAITING
        elif not result:
            result = NOBODY_THERE
    now, tool = timezone.now(), toolset.get(asked.name)
    return ToolRun(
        round_id=round_id,
        call=call,
        position=position,
        call_id=asked.id[:200],
        name=asked.name[:200],
        description=_described(tool) if state == State.WAITING else "",
        arguments=asked.arguments,
        has_effects=toolset.has_effects(asked.name),
        idempotency_key=f"round-{round_id}-call-{call}-{position}",
        state=state,
        result=result,
        asked_at=now,
        ended_at=now if state == State.NOT_RUN else None,
    )


def _described(tool: Tool | None) -> str:
    """What a tool says of itself, on one line: a server's words take no more room."""
    words = " ".join(tool.description.split()) if tool else ""
    return clean(words)[:DESCRIPTION_LENGTH]


def reread(exchange: Exchange) -> Exchange:
    """Read the runs of an exchange anew: somebody may have decided meanwhile."""
    runs = ToolRun.objects.filter(
        round_id=exchange.turn.round_id, call=exchange.turn.call
    )
    return Exchange(exchange.turn, list(runs.order_by("position")))


def start_run(run: ToolRun, worker: str) -> bool:
    """Mark a run as begun; False when it is not to be begun any more.

    The mark comes before the deed: a process that dies in between leaves a run that
    may or may not have finished, and never one that is run twice (F6). Nothing
    begins once the person has pressed Stop, in whatever process.
    """
    with transaction.atomic():
        held = Round.objects.select_for_update().filter(
            pk=run.round_id,
            state=Round.State.RUNNING,
            worker=worker,
            stop_requested_at=None,
        )
        allowed = ToolRun.objects.filter(pk=run.pk, state=State.ALLOWED)
        return held.exists() and bool(
            allowed.update(state=State.RUNNING, started_at=timezone.now())
        )


def never_began(run: ToolRun) -> None:
    """Take a mark back that was set for nothing: its worker was broken off first."""
    running = ToolRun.objects.filter(pk=run.pk, state=State.RUNNING)
    running.update(state=State.NOT_RUN, started_at=None, ended_at=timezone.now())


def end_run(run: ToolRun, result: ToolResult) -> bool:
    """Write what became of a run, unless its round has ended meanwhile."""
    running = ToolRun.objects.filter(pk=run.pk, state=State.RUNNING)
    run.state, run.result = result.state, result.text
    return bool(
        running.update(state=result.state, result=result.text, ended_at=timezone.now())
    )


def end_all(round_id: int) -> None:
    """End the runs of a round that is over.

    Nobody will learn what became of a tool that still runs (F6); what had not begun
    never does.
    """
    now = timezone.now()
    runs = ToolRun.objects.filter(round_id=round_id)
    runs.filter(state=State.RUNNING).update(state=State.UNKNOWN, ended_at=now)
    runs.filter(state__in=[State.WAITING, State.ALLOWED]).update(
        state=State.NOT_RUN, ended_at=now
    )
