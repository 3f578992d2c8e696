"""Notices about a thread, to every process that shows it.

A notice carries ids and never text: who receives it reads the database. Text
travels through the hub.
"""

import logging
from dataclasses import dataclass
from typing import Any

from channels.layers import get_channel_layer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a round happens: whose pages are told of it."""

    round_id: int
    thread_id: int
    owner_id: int
    question_id: int
    answer_id: int


def thread_group(thread_id: int) -> str:
    """The group of the sockets that show a thread."""
    return f"thread.{thread_id}"


def user_group(user_id: int) -> str:
    """The group of the sockets that show a person's list of threads."""
    return f"user.{user_id}"


async def round_started(place: Place) -> None:
    """Tell that two new cells stand in a thread, one of them being answered."""
    await _tell(thread_group(place.thread_id), _round_notice("round.started", place))
    await thread_changed(place.thread_id, place.owner_id)


async def round_ended(place: Place) -> None:
    """Tell that a round's cell is over and can be read from the database."""
    await _tell(thread_group(place.thread_id), _round_notice("round.ended", place))
    await thread_changed(place.thread_id, place.owner_id)


async def round_asks(place: Place) -> None:
    """Tell that a round waits for its person to decide on a tool."""
    notice = {"type": "tools.wait", "cell": place.answer_id}
    await _tell(thread_group(place.thread_id), notice)
    await thread_changed(place.thread_id, place.owner_id)


async def tools_changed(place: Place, call: int) -> None:
    """Tell that a tool run of one call of a round is in another state."""
    notice = {"type": "tools.changed", "cell": place.answer_id, "call": call}
    await _tell(thread_group(place.thread_id), notice)


async def cells_changed(thread_id: int, owner_id: int, cells: list[int]) -> None:
    """Tell that other versions take their places in a thread."""
    await _tell(thread_group(thread_id), {"type": "cells.changed", "cells": cells})
    await thread_changed(thread_id, owner_id)


async def thread_changed(thread_id: int, owner_id: int) -> None:
    """Tell that a row in a list of threads reads differently now."""
    await _tell(user_group(owner_id), {"type": "thread.changed", "thread": thread_id})


def _round_notice(kind: str, place: Place) -> dict[str, Any]:
    return {
        "type": kind,
        "round": place.round_id,
        "cells": [place.question_id, place.answer_id],
    }


async def _tell(group: str, notice: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        await layer.group_send(group, notice)
    except Exception as error:  # noqa: BLE001 - a layer is anybody's code
        # Pages learn of it when they ask next; no round ends because of that.
        logger.warning("NOTICE_NOT_SENT %s", type(error).__name__)
