"""What a page may say over its socket, checked before anybody believes it."""

import json
from dataclasses import dataclass, field

MESSAGE_LENGTH = 65_536
MOST_CELLS = 200
LARGEST = 2**63 - 1

Place = tuple[int, int, int, int]


class MalformedError(Exception):
    """A page said something that cannot be understood; says what is wrong."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a page shows when its socket opens.

    `position` is that of its last cell, -1 without any; `cells` are those it
    shows as streaming: generation, closed blocks, offset, reasoning offset.
    `shows` are the last of all that it shows.
    """

    position: int
    cells: dict[int, Place] = field(default_factory=dict)
    shows: frozenset[int] = frozenset()
    acks: bool = False


@dataclass(frozen=True, slots=True)
class Resync:
    """A page could not make sense of a frame."""

    cell: int


@dataclass(frozen=True, slots=True)
class Ack:
    """A page has read everything up to this mark."""

    serial: int


def parse(text: str | None) -> Hello | Resync | Ack:
    """Read one message.

    Raises:
        MalformedError: it is too long, no JSON object, or not one of these.
    """
    if text is None or len(text) > MESSAGE_LENGTH:
        raise MalformedError("too long, or not text")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedError("not JSON") from None
    if not isinstance(said, dict):
        raise MalformedError("not an object")
    match said:
        case {"type": "hello"}:
            return _hello(said)
        case {"type": "resync", "cell": cell}:
            return Resync(_number(cell))
        case {"type": "ack", "a": serial}:
            return Ack(_number(serial))
        case _:
            raise MalformedError("not a known message")


def _hello(said: dict[str, object]) -> Hello:
    cells, shows = said.get("cells", {}), said.get("shows", [])
    if not isinstance(cells, dict) or len(cells) > MOST_CELLS:
        raise MalformedError("cells must be an object, and not so many")
    if not isinstance(shows, list) or len(shows) > MOST_CELLS:
        raise MalformedError("shows must be a list, and not so long")
    return Hello(
        position=_number(said.get("position", -1), least=-1),
        cells={_key(name): _place(place) for name, place in cells.items()},
        shows=frozenset(_number(cell) for cell in shows),
        acks=said.get("acks") is True,
    )


def _key(name: str) -> int:
    if not (name.isascii() and name.isdecimal() and len(name) <= len(str(LARGEST))):
        raise MalformedError("a cell is named by its number")
    return _number(int(name))


def _place(place: object) -> Place:
    match place:
        case [generation, blocks, offset, reasoning]:
            return (
                _number(generation),
                _number(blocks),
                _number(offset),
                _number(reasoning),
            )
        case _:
            raise MalformedError("a place has four numbers")


def _number(value: object, *, least: int = 0) -> int:
    if type(value) is not int or not least <= value <= LARGEST:
        raise MalformedError("a number is missing or out of range")
    return value
