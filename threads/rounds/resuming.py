"""Going on with a cell where an earlier worker of its round left it."""

from threads.rounds.brief import Brief
from threads.rounds.live import LiveCell


def go_on(live: LiveCell, brief: Brief) -> None:
    """Let a cell begin where an earlier worker of its round left it."""
    written, said = brief.written, 0
    live.generation = written.generation
    if written.reasoning:
        live.reason(written.reasoning)
    for exchange in brief.exchanges:
        upto = min(exchange.turn.text_length, len(written.text))
        live.append(written.text[said:upto])
        live.place_tools(exchange.turn.call)
        said = upto
    live.append(written.text[said:])
    live.publish()
