"""A stall in which the gateway kept the line open is worded so (X13)."""

import pytest

from tests.fakegateway import FakeGateway, Pause, Script, Stall, chunk
from tests.fakescript import Step
from tests.gateway.calling import answered
from threads.core.faults import Ending
from threads.gateway.calls import CallBounds
from threads.gateway.wire import Observed, SseFilter

HALF = chunk(content="Half")
NEVER_BEGUN = CallBounds(first_data_seconds=1, idle_seconds=30)
BEGUN = CallBounds(first_data_seconds=30, idle_seconds=1)

SIGNS = {
    "a comment": b": PROCESSING\n\n",
    "a bare comment": b":\n\n",
    "a ping without data": b"event: ping\n\n",
    "an event of empty data": b"data:\n\n",
    "an id": b"id: 7\n\n",
    "a retry": b"retry: 3000\n\n",
}


def for_ever(sign: bytes) -> list[bytes | str | Step]:
    return [sign, Pause(0.02)] * 500


@pytest.mark.parametrize("sign", SIGNS.values(), ids=SIGNS)
async def test_a_line_that_was_kept_open_is_told(
    gateway: FakeGateway, sign: bytes
) -> None:
    before = await answered(gateway, Script(*for_ever(sign)), bounds=NEVER_BEGUN)
    script = Script(HALF + sign, *for_ever(sign))
    after = await answered(gateway, script, bounds=BEGUN)

    assert before.verdict.code == "stalled_before_start"
    assert before.verdict.sentence_key == "stream.stalled_start_open"
    assert after.verdict.code == "stalled_mid_answer"
    assert after.verdict.sentence_key == "stream.stalled_mid_open"
    assert before.verdict.ending is after.verdict.ending is Ending.STALLED
    assert before.verdict.transient
    assert after.verdict.transient


SILENT = {
    "at the start": (Script(Stall()), "stream.stalled_start"),
    "in the middle": (Script(HALF, Stall()), "stream.stalled_mid"),
    "after comments before the data": (
        Script(b": a\n\n", HALF, Stall()),
        "stream.stalled_mid",
    ),
    "after blank lines": (Script(HALF, b"\n\n\n\n", Stall()), "stream.stalled_mid"),
    "in an unfinished event": (
        Script(HALF, b'data: {"choi', Stall()),
        "stream.stalled_mid",
    ),
}


@pytest.mark.parametrize(("script", "key"), SILENT.values(), ids=SILENT)
async def test_a_silent_line_is_not_called_open(
    gateway: FakeGateway, script: Script, key: str
) -> None:
    bounds = NEVER_BEGUN if key == "stream.stalled_start" else BEGUN

    called = await answered(gateway, script, bounds=bounds)

    assert called.verdict.sentence_key == key


@pytest.mark.parametrize(
    ("body", "keepalives"),
    [
        (b": a\n\n: b\n\n", 2),
        (b": a\n: b\n\n", 2),
        (b"event: ping\n\ndata:\n\n", 2),
        (b": a\n\ndata: 1\n\n", 0),
        (b": a\n\ndata: 1\n\n: b\n\n", 1),
        (b"data: 1\n\n\n\n\n", 0),
        (b": a\nevent: ping\n\n", 2),
    ],
)
def test_signs_of_life_are_counted_since_the_last_data(
    body: bytes, keepalives: int
) -> None:
    observed = Observed()
    SseFilter(observed).feed(body)

    assert observed.keepalives == keepalives
