"""A close that fails never replaces how a call ended (requirement A15)."""

import anyio
import h11
import httpx2
import pytest
from httpcore2._async.connection_pool import PoolByteStream

from tests.fakegateway import (
    DONE,
    FakeGateway,
    Reset,
    Script,
    Stall,
    chunk,
    frame,
    reply,
)
from tests.gateway.calling import answered

HALF = chunk(content="Half")
BOOM = {"error": {"code": 502, "message": "boom"}}
FAILURES = (
    RuntimeError("closing"),
    OSError("closing"),
    anyio.BrokenResourceError(),
    h11.LocalProtocolError("closing"),
    httpx2.ReadError("closing"),
)


@pytest.fixture(params=FAILURES, ids=lambda failure: type(failure).__name__)
def failing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets every close of a response's connection fail once it is done."""
    close = PoolByteStream.aclose

    async def aclose(self: PoolByteStream) -> None:
        await close(self)
        raise request.param

    monkeypatch.setattr(PoolByteStream, "aclose", aclose)


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize(
    ("script", "code", "shown"),
    [
        (Script(HALF, chunk(finish="stop"), DONE), "", "Half"),
        (Script(HALF, chunk(finish="stop"), DONE, Stall()), "", "Half"),
        (Script(HALF, frame(BOOM), Stall()), "http_5xx", "Half"),
        (Script(HALF), "truncated", "Half"),
        (Script(HALF, Reset()), "truncated", "Half"),
        (Script(HALF, b"data: {\n\n", Stall()), "stream_unreadable", "Half"),
        (reply(401, BOOM), "http_401", ""),
        (reply(500, BOOM, headers={"retry-after-ms": "1"}), "http_5xx", ""),
    ],
    ids=["whole", "open", "fault", "cut", "reset", "unreadable", "refused", "tried"],
)
async def test_the_ending_stands_whatever_the_close_raises(
    gateway: FakeGateway,
    script: Script,
    code: str,
    shown: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    result = await answered(gateway, script)

    assert (result.verdict.code, result.shown) == (code, shown)
    assert "[OpenAIWire] close failed" in caplog.text
