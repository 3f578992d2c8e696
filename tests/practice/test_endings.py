"""Each bad ending, exactly as it comes over the wire."""

import asyncio
import json

import httpx2
import pytest

from tests.loopback import loopback_client
from tests.practice.wiretap import PATH, TOOLS, Wire, asking, listen
from threads.practice.app import PracticeApp
from threads.practice.server import PracticeServer

INTERRUPTED = {
    "practice/length": "length",
    "practice/filtered": "content_filter",
    "practice/fault": "error",
    "practice/unknown-finish": "model_went_fishing",
}


@pytest.mark.parametrize(("model", "reason"), INTERRUPTED.items())
async def test_some_answers_give_another_reason_for_stopping(
    client: httpx2.AsyncClient, model: str, reason: str
) -> None:
    wire = await listen(client, asking(model))

    assert "I am a practice model." in wire.text
    assert wire.finish_reasons == [reason]
    assert wire.done


async def test_an_empty_answer_finishes_without_a_word(
    client: httpx2.AsyncClient,
) -> None:
    wire = await listen(client, asking("practice/empty"))

    assert wire.text == ""
    assert wire.finish_reasons == ["stop"]
    assert wire.done


async def test_a_truncated_answer_ends_cleanly_without_proof(
    client: httpx2.AsyncClient,
) -> None:
    wire = await listen(client, asking("practice/truncate"))

    assert wire.text.endswith("because I had not fin")
    assert (wire.finish_reasons, wire.done, wire.broke) == ([], False, None)


async def test_a_reset_breaks_the_connection_after_the_text(
    client: httpx2.AsyncClient,
) -> None:
    wire = await listen(client, asking("practice/reset"))

    assert wire.text.endswith("half of a wo")
    assert wire.broke is httpx2.ReadError


async def test_a_cut_closes_the_connection_within_a_chunk_each_time(
    client: httpx2.AsyncClient,
) -> None:
    wires = [await listen(client, asking("practice/cut-always")) for _ in range(3)]

    assert {wire.broke for wire in wires} == {httpx2.RemoteProtocolError}
    assert all(wire.text.endswith("keep what I wro") for wire in wires)


@pytest.mark.parametrize(
    ("model", "last_words"),
    [("practice/stall", "you"), ("practice/stall-start", ": PRACTICE PROCESSING")],
)
async def test_a_stall_keeps_the_connection_open_and_says_nothing_more(
    client: httpx2.AsyncClient, model: str, last_words: str
) -> None:
    wire = Wire()

    async with client.stream("POST", PATH, json=asking(model)) as response:
        pieces = response.aiter_text()
        while not (wire.raw.startswith(last_words) or wire.text.endswith(last_words)):
            wire.raw += await anext(pieces)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(pieces), 0.1)

    assert bool(wire.payloads) == (model == "practice/stall")


async def test_an_error_inside_the_stream_names_its_provider(
    client: httpx2.AsyncClient,
) -> None:
    wire = await listen(client, asking("practice/error-chunk"))

    assert wire.text.endswith("this sen")
    assert wire.finish_reasons == ["error"]
    assert wire.error["code"] == 502
    assert wire.error["metadata"]["provider_name"]
    assert (
        "lost its worker"
        in json.loads(wire.error["metadata"]["raw"])["error"]["message"]
    )
    assert not wire.done


@pytest.mark.parametrize(
    ("model", "code", "words"),
    [
        ("practice/error-first", 503, "overloaded"),
        ("practice/blocked", 403, "Request blocked: PII detected"),
    ],
)
async def test_a_lone_error_object_can_be_all_there_is(
    client: httpx2.AsyncClient, model: str, code: int, words: str
) -> None:
    wire = await listen(client, asking(model))

    assert wire.status == 200
    assert [list(chunk) for chunk in wire.chunks] == [["error"]]
    assert wire.error["code"] == code
    assert words in wire.error["message"]


async def test_a_garbled_stream_has_a_frame_that_is_not_json(
    client: httpx2.AsyncClient,
) -> None:
    wire = await listen(client, asking("practice/garbled"))

    assert "practice model" in wire.text
    with pytest.raises(json.JSONDecodeError):
        json.loads(wire.payloads[-1])


async def test_a_web_page_can_come_in_place_of_a_stream(
    client: httpx2.AsyncClient,
) -> None:
    wire = await listen(client, asking("practice/not-a-stream"))

    assert wire.status == 200
    assert wire.headers["content-type"].startswith("text/html")
    assert wire.payloads == []


@pytest.mark.parametrize(
    ("model", "status", "code"),
    [
        ("practice/rate-limited", 429, "rate_limit_exceeded"),
        ("practice/refused", 400, 400),
        ("practice/key-rejected", 401, "invalid_api_key"),
        ("practice/no-credit", 402, "insufficient_credits"),
        ("practice/too-long", 400, "context_length_exceeded"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_refused_request_is_answered_with_a_status_and_a_reason(
    client: httpx2.AsyncClient, model: str, status: int, code: object, stream: bool
) -> None:
    response = await client.post(PATH, json=asking(model, stream=stream))

    assert response.status_code == status
    assert response.json()["error"]["code"] == code
    assert response.headers.get("retry-after") == ("1" if status == 429 else None)
    assert response.headers["x-request-id"]


async def test_a_refusal_can_wrap_the_providers_own_reason(
    client: httpx2.AsyncClient,
) -> None:
    response = await client.post(PATH, json=asking("practice/refused"))

    metadata = response.json()["error"]["metadata"]
    assert metadata["provider_name"]
    assert "no requests of this kind" in json.loads(metadata["raw"])["error"]["message"]


async def test_cut_once_is_cut_then_whole_then_cut_again(
    client: httpx2.AsyncClient,
) -> None:
    tries = [await listen(client, asking("practice/cut-once")) for _ in range(3)]
    other = await listen(client, asking("practice/cut-once", "Something else"))

    assert [wire.finish_reasons for wire in tries] == [[], ["stop"], []]
    assert "second try" in tries[1].text
    assert other.finish_reasons == []


async def test_a_cut_that_nobody_waited_for_is_played_again() -> None:
    body = asking("practice/cut-once")

    with PracticeServer(PracticeApp(pace=0.2)) as server:
        async with loopback_client(base_url=server.base_url) as client:
            async with client.stream("POST", PATH, json=body) as response:
                await anext(response.aiter_bytes())
            wire = await listen(client, body)

    assert wire.finish_reasons == []


async def test_a_flaky_start_fails_before_any_text_and_then_answers(
    client: httpx2.AsyncClient,
) -> None:
    first = await listen(client, asking("practice/flaky-start"))
    second = await listen(client, asking("practice/flaky-start"))

    assert first.error["code"] == 503
    assert first.text == ""
    assert second.finish_reasons == ["stop"]


async def test_a_fault_can_follow_tools_that_have_run(
    client: httpx2.AsyncClient,
) -> None:
    body = asking("practice/tool-then-fault", tools=TOOLS)
    called = await listen(client, body)
    result = {
        "role": "tool",
        "tool_call_id": "call_practice_calculator",
        "content": "391",
    }

    faulted = await listen(client, body | {"messages": [*body["messages"], result]})

    assert len(called.called) == 2
    assert "391" in faulted.text
    assert faulted.error["code"] == 502


async def test_whole_answers_end_badly_too(client: httpx2.AsyncClient) -> None:
    async def whole(model: str) -> httpx2.Response:
        return await client.post(PATH, json=asking(model, stream=False))

    failed = await whole("practice/error-chunk")
    garbled = await whole("practice/garbled")
    truncated = await whole("practice/truncate")

    assert failed.status_code == failed.json()["error"]["code"] == 502
    assert truncated.json()["choices"][0]["finish_reason"] is None
    with pytest.raises(json.JSONDecodeError):
        garbled.json()
    with pytest.raises(httpx2.ReadError):
        await whole("practice/reset")
    with pytest.raises(httpx2.RemoteProtocolError):
        await whole("practice/cut-always")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(whole("practice/stall"), 0.1)
