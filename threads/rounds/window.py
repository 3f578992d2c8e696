"""What of a conversation is sent, so that the model can read it all (F10).

The whole conversation stays with the round; before each call it is measured anew
and the oldest exchanges are left out of what is sent, where they do not fit.
"""

import json
import logging
from collections.abc import Sequence
from contextlib import suppress

from django.db import DatabaseError, InterfaceError

from threads.core.estimate import tokens_in, tokens_of_messages
from threads.core.faults import Ending, Verdict
from threads.core.reasons import redacted
from threads.core.table import ERRORS
from threads.core.window import TooLong, fit
from threads.models import Round
from threads.rounds.brief import Brief
from threads.rounds.database import in_database
from threads.rounds.exchanges import Message

logger = logging.getLogger(__name__)

GUESSED_TOKENS = 32_768
"""The window of a model of which none is declared: enough to leave old exchanges
out, too little known to refuse anybody."""

MOST_RESERVED = 4_096
"""What is kept free for an answer; of a small window, a quarter."""


_warned: set[str] = set()


class Window:
    """The window of a round's model; `messages` are those of the next call."""

    def __init__(self, brief: Brief) -> None:
        self.messages: list[Message] = []
        self._round_id = brief.place.round_id
        self._left_out = 0
        self._is_declared = brief.context_window is not None
        self._room = _room(brief)
        self._measured: list[tuple[Message, int]] = []
        if not self._is_declared and not brief.is_practice:
            _warn_once(brief.model)

    async def fit(self, messages: Sequence[Message]) -> Verdict | None:
        """Choose what is sent of a conversation; returns how the round ends instead.

        The number of messages that were left out is written to the round (F10).
        """
        chosen = fit(messages, self._sizes(messages), room=self._room)
        if chosen.too_long is not None and self._is_declared:
            return _refused(chosen.too_long)
        self.messages = [messages[place] for place in chosen.places]
        if chosen.left_out != self._left_out:
            # The answer matters more: what cannot be written now is with the next.
            with suppress(DatabaseError, InterfaceError):
                await in_database(_write_down, self._round_id, chosen.left_out)
                self._left_out = chosen.left_out
        return None

    def _sizes(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of each message; what has been measured is not measured again."""
        for place, message in enumerate(messages):
            if place < len(self._measured) and self._measured[place][0] is message:
                continue
            self._measured[place:] = [(message, tokens_of_messages([message]))]
        return [size for _, size in self._measured[: len(messages)]]


def _refused(reason: TooLong) -> Verdict:
    """End a round before it asks what its model cannot read."""
    error = ERRORS[f"context_too_long.{reason.value}"]
    return Verdict(
        code=error.code,
        ending=Ending.REFUSED,
        condition=error.condition,
        sentence_key=error.sentence_key,
    )


def _room(brief: Brief) -> int:
    """How many tokens the messages may have: the tools and the answer need theirs."""
    window = brief.context_window or GUESSED_TOKENS
    reserve = min(MOST_RESERVED, window // 4)
    if brief.override.max_output_tokens is not None:
        reserve = min(brief.override.max_output_tokens, window // 2)
    offers = brief.toolset.offers()
    tools = tokens_in(json.dumps(offers, ensure_ascii=False)) if offers else 0
    return window - reserve - tools


def _warn_once(model: str) -> None:
    if model not in _warned:
        _warned.add(model)
        logger.warning("CONTEXT_WINDOW_UNDECLARED model=%s", redacted(model))


def _write_down(round_id: int, count: int) -> None:
    Round.objects.filter(pk=round_id).update(left_out=count)
