"""How a stream ended, with what stood beside its events.

Gateways report failures where no event is: in a comment, on a line that is no
field, as JSON in place of a stream. Here that becomes part of the facts; what it
means is for `threads.core.faults` to say.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from threads.core import reasons
from threads.core.evidence import StreamEnd
from threads.core.faults import Arrival
from threads.gateway.transport import Wire


def end_of_stream(wire: Wire, arrival: Arrival, *, words: str = "") -> StreamEnd:
    """Describe an end that came in this way.

    An error that stood beside the events is the body; it counts only where
    nothing proves that the answer is whole.
    """
    observed = wire.observed
    stray = _stray(wire)
    body = stray_error(stray)
    if body is None and observed.remark:
        remark = decoded(observed.remark.decode("utf-8", "replace"))
        body = remark if isinstance(remark, Mapping) else {"error": remark}
    return StreamEnd(
        arrival,
        http_status=observed.http_status,
        body=body,
        words=words or stray,
        headers=wire.headers,
        keepalives=observed.keepalives,
    )


def end_of_body(wire: Wire) -> StreamEnd:
    """Describe a body that was read to its end, or as far as it may be read."""
    observed = wire.observed
    if observed.too_long:
        return end_of_stream(wire, Arrival.UNREADABLE)
    kind = wire.headers.get("content-type", "").lower()
    if observed.frames == 0 and not observed.done:
        stray = _stray(wire)
        if stray or not kind.startswith("text/event-stream"):
            end = end_of_stream(wire, Arrival.NOT_A_STREAM)
            return end if end.body else replace(end, body=decoded(stray))
    return end_of_stream(wire, Arrival.ENDED)


def stray_error(text: str) -> object:
    """Find an error report in lines that are no frames; None when there is none."""
    begin, end = text.find("{"), text.rfind("}")
    if begin < 0 or end < begin:
        return None
    for candidate in (text, *text.splitlines(), text[begin : end + 1]):
        value = decoded(candidate.strip())
        if reasons.says_error(value):
            return value
    return None


def decoded(text: str) -> object:
    """Read JSON; what is none is its own text, and nothing is None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text or None


def _stray(wire: Wire) -> str:
    return bytes(wire.observed.stray).decode("utf-8", "replace").strip()
