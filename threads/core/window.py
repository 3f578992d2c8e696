"""Which messages of a conversation fit into what a model can read (requirement F10).

An exchange is a question with everything up to the next question, so a tool call
and its results are never parted. Instructions always stay, and so does the last
question with all that followed it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

Message = Mapping[str, object]


class TooLong(StrEnum):
    """What makes a conversation too long of which nothing more can be left out."""

    MESSAGE = "message"
    RESULTS = "results"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class Fit:
    """The messages to send, by their places, and how many were left out.

    With `too_long` they do not fit even so.
    """

    places: tuple[int, ...]
    left_out: int = 0
    too_long: TooLong | None = None


def fit(messages: Sequence[Message], sizes: Sequence[int], *, room: int) -> Fit:
    """Leave out the oldest exchanges until the rest fits into `room` tokens.

    `sizes` are the tokens of each message; `room` is what is left of the window
    once the tools and the answer have theirs, and may be negative.
    """
    question = _last_question(messages)
    instructions = [n for n in range(question) if messages[n].get("role") == "system"]
    site = sum(sizes[n] for n in instructions)
    asked, results = _asked(sizes, question)
    used = site + asked + results
    too_long = _blamed(site, asked, results, room=room) if used > room else None
    kept: list[int] = []
    for exchange in reversed(_exchanges(messages[:question])):
        used += sum(sizes[n] for n in exchange)
        if used > room:
            break
        kept = exchange + kept
    places = sorted({*instructions, *kept, *range(question, len(messages))})
    return Fit(tuple(places), len(messages) - len(places), too_long)


def _last_question(messages: Sequence[Message]) -> int:
    """The place of the last question; 0 where nobody asked anything."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].get("role") == "user":
            return place
    return 0


def _asked(sizes: Sequence[int], question: int) -> tuple[int, int]:
    """The tokens of the last question, and of all that followed it."""
    return sum(sizes[question : question + 1]), sum(sizes[question + 1 :])


def _exchanges(earlier: Sequence[Message]) -> list[list[int]]:
    """The places of each exchange, oldest first; instructions belong to none."""
    exchanges: list[list[int]] = []
    for place, message in enumerate(earlier):
        if message.get("role") == "system":
            continue
        if message.get("role") == "user" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(place)
    return exchanges


def _blamed(site: int, asked: int, results: int, *, room: int) -> TooLong:
    if site > room:
        return TooLong.SITE
    return TooLong.RESULTS if results > asked else TooLong.MESSAGE
