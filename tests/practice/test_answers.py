"""Answers that end well, as they look on the wire."""

import json

import httpx2
import pytest

from tests.practice.wiretap import PATH, TOOLS, asking, listen
from threads.practice.wire import estimate_tokens


async def test_a_steady_answer_looks_like_a_real_gateways_stream(
    client: httpx2.AsyncClient,
) -> None:
    wire = await listen(client, asking("practice/steady"))

    assert wire.status == 200
    assert wire.headers["content-type"].startswith("text/event-stream")
    assert wire.headers["x-request-id"].startswith("req_")
    assert wire.deltas[0] == {"role": "assistant", "content": ""}
    assert len(wire.deltas) > 100
    assert {chunk["model"] for chunk in wire.chunks} == {"practice/steady"}
    assert len({(chunk["id"], chunk["created"]) for chunk in wire.chunks}) == 1
    assert wire.finish_reasons == ["stop"]
    assert wire.done


async def test_a_steady_answer_says_what_it_is_and_quotes_the_person(
    client: httpx2.AsyncClient,
) -> None:
    wire = await listen(client, asking("practice/steady", "Why {do} streams\nend?"))

    assert "practice model" in wire.text
    assert '"Why {do} streams end?"' in wire.text
    assert "\n\n" in wire.text


async def test_a_long_prompt_is_quoted_in_part(client: httpx2.AsyncClient) -> None:
    wire = await listen(client, asking("practice/steady", "word " * 5000))

    assert f'"{" ".join(["word"] * 8)}…"' in wire.text


async def test_a_lone_surrogate_in_the_prompt_is_answered_all_the_same(
    client: httpx2.AsyncClient,
) -> None:
    body = json.dumps(asking("practice/steady", "a \ud83d b", stream=False))

    response = await client.post(PATH, content=body)

    answer = response.json()["choices"][0]["message"]["content"]
    assert answer.startswith('You wrote "a ? b"')


async def test_usage_comes_in_a_chunk_without_choices_when_it_is_asked_for(
    client: httpx2.AsyncClient,
) -> None:
    options = {"include_usage": True}

    asked = await listen(client, asking("practice/steady", stream_options=options))
    not_asked = await listen(client, asking("practice/steady"))

    usage = asked.chunks[-1]["usage"]
    assert asked.chunks[-1]["choices"] == []
    assert usage["completion_tokens"] == estimate_tokens(asked.text)
    assert usage["prompt_tokens"] == estimate_tokens("Hello there")
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert asked.done
    assert not any("usage" in chunk for chunk in not_asked.chunks)


async def test_reasoning_comes_before_the_answer_and_counts_as_completion(
    client: httpx2.AsyncClient,
) -> None:
    options = {"include_usage": True}

    wire = await listen(client, asking("practice/reasoning", stream_options=options))

    kinds = ["reasoning_content" in delta for delta in wire.deltas[1:-1]]
    assert kinds == sorted(kinds, reverse=True)
    assert 120 <= sum(kinds) <= 200, "about four seconds at forty a second"
    assert "practice model" in wire.text
    details = wire.chunks[-1]["usage"]["completion_tokens_details"]
    assert details["reasoning_tokens"] == estimate_tokens(wire.reasoning)


async def test_the_markdown_answer_shows_a_little_of_everything(
    client: httpx2.AsyncClient,
) -> None:
    wire = await listen(client, asking("practice/markdown"))

    signs = ("# A", "## ", "1. ", "   - ", "|:--", "```python", "```bash", "\n> ")
    more = ("**bold", "`inline", "](https://", "{self.name}")
    assert [sign for sign in signs + more if sign not in wire.text] == []


async def test_the_long_answer_has_about_three_thousand_tokens(
    client: httpx2.AsyncClient,
) -> None:
    wire = await listen(client, asking("practice/long"))

    assert 2900 <= len(wire.deltas) <= 3200


async def test_two_tools_are_called_in_parallel_when_they_are_offered(
    client: httpx2.AsyncClient,
) -> None:
    wire = await listen(client, asking("practice/tools", tools=TOOLS))

    assert {name: json.loads(text) for name, text in wire.called.items()} == {
        "current_time": {"timezone": "UTC"},
        "calculator": {"expression": "17 * 23"},
    }
    assert wire.finish_reasons == ["tool_calls"]


@pytest.mark.parametrize("offered", [[], [TOOLS[0] | {"function": {"name": "other"}}]])
async def test_without_the_two_tools_the_tools_model_says_so(
    client: httpx2.AsyncClient, offered: list[object]
) -> None:
    wire = await listen(client, asking("practice/tools", tools=offered))

    assert wire.called == {}
    assert "offered me" in wire.text
    assert wire.finish_reasons == ["stop"]


async def test_tool_results_are_answered_from_and_only_since_the_last_question(
    client: httpx2.AsyncClient,
) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "calculator"}}
    messages: list[dict[str, object]] = [
        {"role": "user", "content": [{"type": "text", "text": "17 * 23?"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "391"},
    ]
    body = asking("practice/tools", tools=TOOLS)

    answered = await listen(client, body | {"messages": messages})
    again = {"role": "user", "content": "And now?"}
    asked_again = await listen(client, body | {"messages": [*messages, again]})

    assert "`calculator` said: 391" in answered.text
    assert answered.finish_reasons == ["stop"]
    assert asked_again.finish_reasons == ["tool_calls"]


async def test_an_answer_can_be_had_whole(client: httpx2.AsyncClient) -> None:
    streamed = await listen(client, asking("practice/markdown"))

    response = await client.post(PATH, json=asking("practice/markdown", stream=False))

    answer = response.json()
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["message"]["content"] == streamed.text
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == estimate_tokens(streamed.text)


async def test_whole_answers_carry_tool_calls_and_reasoning(
    client: httpx2.AsyncClient,
) -> None:
    tools = asking("practice/tools", stream=False, tools=TOOLS)
    thinking = asking("practice/reasoning", stream=False)

    calling = (await client.post(PATH, json=tools)).json()["choices"][0]
    reasoned = (await client.post(PATH, json=thinking)).json()["choices"][0]

    assert len(calling["message"]["tool_calls"]) == 2
    assert calling["finish_reason"] == "tool_calls"
    assert reasoned["message"]["reasoning_content"].startswith("The person wrote")
