"""Streams that end in ways which pass by themselves, and a call that meets them."""

from collections.abc import Mapping

import pytest

from tests.fakegateway import (
    DONE,
    Close,
    FakeGateway,
    Head,
    Reset,
    Script,
    Stall,
    chunk,
    frame,
    tool_call,
)
from tests.fakescript import Step
from tests.gateway.calling import AGAIN, PATIENT, Called, answered
from threads.core.retry import Policy
from threads.gateway.calls import CallBounds

WHOLE = Script(chunk(content="All of it"), chunk(finish="stop"), DONE)
HALF = chunk(content="Half an ans")
CUT = Script(HALF, Reset())
SILENT = Script(Head())
"""Accepted, and ended with nothing in it."""

HURRIED = CallBounds(first_data_seconds=1.5, idle_seconds=1)
"""For calls that fall silent."""

ENDS: Mapping[str, tuple[Step | bytes, ...]] = {
    "end": (),
    "close": (Close(),),
    "reset": (Reset(),),
    "half a chunk": (Close(b'data: {"choices": [{"delta": {"con'),),
    "silence": (Stall(),),
    "502": (frame({"error": {"code": 502, "message": "no"}}), DONE),
    "429": (frame({"error": {"code": 429, "message": "slow down"}}),),
    "408": (frame({"error": {"code": 408, "message": "late"}}),),
    "overloaded": (frame({"error": {"type": "overloaded_error", "message": "x"}}),),
    "finish": (chunk(finish="error"), DONE),
}
"""Ways in which a stream ends that pass by themselves (requirement D3)."""

NAME_ONLY = chunk(tool_calls=[{"index": 0, "function": {"name": "look"}}])
ARGUMENTS_ONLY = chunk(tool_calls=[tool_call(arguments="{")])
CALL = chunk(tool_calls=[tool_call(call_id="a", name="look", arguments="{}")])

every_end = pytest.mark.parametrize("end", ENDS)


def ending(end: str, *came: bytes) -> Script:
    """A response that is accepted, gives this, and ends so."""
    return Script(Head(), *came, *ENDS[end])


async def recovered(
    gateway: FakeGateway, *scripts: Script, retry: Policy = AGAIN
) -> Called:
    """Make a call that may be tried again twice."""
    is_silent = any(Stall() in script.steps for script in scripts)
    bounds = HURRIED if is_silent else PATIENT
    return await answered(gateway, *scripts, bounds=bounds, retry=retry)
