"""How many tokens a text may be, where nobody counted them (requirement G2).

A rule of thumb and said to be one: models split text in their own ways, and their
tables would have to be fetched. Never used for money (X17).
"""

import math
from collections.abc import Iterable, Mapping

LETTERS_A_TOKEN = 4.0
"""Of ASCII text; other scripts take about two tokens for three characters."""
OTHERS_A_TOKEN = 1.5
TOKENS_A_MESSAGE = 4


def tokens_in(text: str) -> int:
    """Estimate the tokens of a text."""
    others = len(text) - len(text.encode("ascii", "ignore"))
    return math.ceil((len(text) - others) / LETTERS_A_TOKEN + others / OTHERS_A_TOKEN)


def tokens_of_messages(messages: Iterable[Mapping[str, object]]) -> int:
    """Estimate the tokens of a request's messages, tool calls included."""
    return sum(
        TOKENS_A_MESSAGE + sum(_tokens(value) for value in message.values())
        for message in messages
    )


def _tokens(value: object) -> int:
    match value:
        case str():
            return tokens_in(value)
        case Mapping():
            return sum(_tokens(inner) for inner in value.values())
        case list():
            return sum(_tokens(inner) for inner in value)
        case _:
            return 0
