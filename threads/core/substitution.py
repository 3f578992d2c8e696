"""Telling whether a gateway answered with another model than it was asked for.

Gateways name one model in many ways: with its vendor in front, with the date of
its snapshot behind, with a variant after a colon. Those are the same model.
"""

import re

SNAPSHOT = re.compile(
    r"[-@](?P<date>\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{2}-\d{4}|\d{8}|\d{6}|\d{4}|\d{3})$"
)
LATEST = ("-latest", "@latest", ":latest")

ROUTERS = frozenset({"auto", "router"})
"""Ids that ask the gateway to choose: whatever it chooses was asked for."""


def is_substitute(requested: str, served: str) -> bool:
    """Tell whether `served` is another model than `requested` (requirement B13).

    Both are wire ids. An empty one says nothing. Two snapshots of different dates
    are two models; a snapshot of a model that was asked for without a date is
    that model.
    """
    if not requested.strip() or not served.strip():
        return False
    asked, given = _Name(requested), _Name(served)
    if asked.family in ROUTERS:
        return False
    return not (
        asked.family == given.family
        and _agree(asked.variant, given.variant)
        and _agree(asked.date, given.date)
    )


def _agree(one: str, other: str) -> bool:
    """Two marks agree when they are equal or one of them is not there."""
    return one == other or not one or not other


class _Name:
    """A wire id taken apart: vendor/family-date:variant, in lower case."""

    def __init__(self, wire_id: str) -> None:
        name = wire_id.strip().casefold().rstrip("/").rpartition("/")[2]
        for latest in LATEST:
            name = name.removesuffix(latest)
        name, _, self.variant = name.partition(":")
        found = SNAPSHOT.search(name)
        self.date = found["date"].replace("-", "") if found else ""
        self.family = name[: found.start()] if found else name
