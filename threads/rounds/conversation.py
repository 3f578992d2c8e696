"""The conversation up to a question, as a request carries it."""

from threads.models import Cell, Round
from threads.rounds.exchanges import Exchange, Message, exchanges_of


def messages_of(round_: Round, *, with_tools: bool) -> list[Message]:
    """Build the messages from the instructions to the question.

    A sentence of ours never enters a request, nor does an answer of which nothing
    came (requirement F11). What was exchanged with tools is told again only to a
    model that is offered tools: others refuse such messages.
    """
    messages: list[Message] = []
    if round_.agent is not None and round_.agent.instructions:
        messages.append({"role": "system", "content": round_.agent.instructions})
    earlier = list(
        Cell.objects.filter(
            thread_id=round_.thread_id, position__lt=round_.user_cell.position
        )
        .shown()
        .values_list("role", "text", "round")
    )
    answers = [pk for role, _, pk in earlier if role == Cell.Role.ASSISTANT]
    exchanges = exchanges_of(answers if with_tools else [])
    for role, text, pk in earlier:
        messages += _told(role, text, exchanges.get(pk, []))
    messages.append({"role": "user", "content": round_.user_cell.text})
    return messages


def _told(role: str, text: str, exchanges: list[Exchange]) -> list[Message]:
    """One cell: what it says, with the exchanges in their places."""
    messages, said = list[Message](), 0
    for exchange in exchanges:
        messages += exchange.messages()
        said = exchange.turn.text_length
    rest = text[said:].lstrip("\n") if exchanges else text
    if rest.strip():
        messages.append({"role": role, "content": rest})
    return messages
