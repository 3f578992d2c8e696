"""Every dialect of a chunk becomes the same few events."""

from tests.cases import cases
from threads.core.events import (
    Envelope,
    ErrorReport,
    Finish,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from threads.gateway.chunks import ChunkReader

USAGE = {"prompt_tokens": 3, "completion_tokens": 5}
ERROR = {"code": 502, "message": "boom"}


def choice(delta: object, finish: object = None, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]}


def call(**fields: object) -> dict[str, object]:
    return choice({"tool_calls": [{"index": 0, **fields}]})


@cases(
    ("chunk", "events"),
    [
        (choice({"content": "a"}), [TextDelta("a")]),
        (choice({"content": ""}), [Envelope("")]),
        (choice({"role": "assistant"}), [Envelope("")]),
        (choice(None), [Envelope("")]),
        ({"choices": []}, [Envelope("")]),
        ({"choices": None}, [Envelope("")]),
        ({"choices": {"index": 0, "delta": {"content": "a"}}}, [TextDelta("a")]),
        ({"choices": [{"index": 0, "text": "a"}]}, [TextDelta("a")]),
        (
            {"choices": [{"delta": {}, "message": {"content": "a"}}]},
            [TextDelta("a")],
        ),
        (
            {"choices": [{"delta": {"content": "a"}, "message": {"content": "xa"}}]},
            [TextDelta("a")],
        ),
        ({"choices": "odd"}, [Envelope("")]),
        ({"choices": ["odd"]}, [Envelope("")]),
        ({}, [Envelope("")]),
        ({"model": "m"}, [Envelope("m")]),
        (choice({"refusal": "no"}), [TextDelta("no")]),
        (choice({"reasoning": "r"}), [ReasoningDelta("r")]),
        (choice({"reasoning_content": "r"}), [ReasoningDelta("r")]),
        (
            choice({"reasoning_content": "r", "reasoning": "r", "content": "a"}),
            [ReasoningDelta("r"), TextDelta("a")],
        ),
        (
            choice({"content": [{"type": "text", "text": "a"}, {"type": "ref"}, 1]}),
            [TextDelta("a")],
        ),
        (
            choice({"content": [{"thinking": [{"text": "r"}]}]}),
            [ReasoningDelta("r")],
        ),
        ({"choices": [{"message": {"content": "a"}}]}, [TextDelta("a")]),
        (choice({"content": "a"}, "stop"), [TextDelta("a"), Finish("stop")]),
        (choice({}, ""), [Envelope("")]),
        (choice({}, "null"), [Envelope("")]),
        (choice({"content": {"type": "text", "text": "a"}}), [TextDelta("a")]),
        (choice({}, 7), [Finish("7")]),
        (choice({}, {"type": "stop", "matched": 5}), [Finish("stop")]),
        (choice({}, {}), [Envelope("")]),
        (
            choice({}, "error", native_finish_reason="BAD"),
            [Finish("error", "BAD")],
        ),
        (
            choice({}, "error", error=ERROR),
            [ErrorReport({"error": ERROR}), Finish("error")],
        ),
        ({"choices": [], "usage": USAGE}, [UsageReport(3, 5)]),
        (choice({}, usage=USAGE), [UsageReport(3, 5)]),
        (
            {"choices": [], "usage": {"input_tokens": 3, "output_tokens": 5}},
            [UsageReport(3, 5)],
        ),
        ({"choices": [], "x_groq": {"usage": USAGE}}, [UsageReport(3, 5)]),
        (
            {"choices": [], "x_groq": {"error": "over_capacity"}},
            [ErrorReport({"error": "over_capacity"})],
        ),
        ({"usage": None}, [Envelope("")]),
        ({"usage": {"total_tokens": 8}}, [Envelope("")]),
        (
            call(id="a", function={"name": "f", "arguments": "{"}),
            [ToolCallDelta(0, "a", "f", "{")],
        ),
        (
            call(id="", function={"name": "", "arguments": "}"}),
            [ToolCallDelta(0, None, None, "}")],
        ),
        (
            call(id="a", function={"name": "f", "arguments": {"q": 1}}),
            [ToolCallDelta(0, "a", "f", {"q": 1})],
        ),
        (call(id="a", function=None), [ToolCallDelta(0, "a", None, None)]),
        (
            choice({"tool_calls": [{"index": "1", "function": {"name": "f"}}]}),
            [ToolCallDelta(1, None, "f", None)],
        ),
        (
            choice({"tool_calls": {"id": "a", "function": {"name": "f"}}}),
            [ToolCallDelta(None, "a", "f", None)],
        ),
        (
            call(id="a", function={"name": "f", "arguments": [1]}),
            [ToolCallDelta(0, "a", "f", "[1]")],
        ),
        (
            call(id="a", function={"name": "f", "arguments": True}),
            [ToolCallDelta(0, "a", "f", "true")],
        ),
        (
            call(id="a", function={"name": "f", "arguments": None}),
            [ToolCallDelta(0, "a", "f", None)],
        ),
        (
            call(id="a", name="f", arguments="{}"),
            [ToolCallDelta(0, "a", "f", "{}")],
        ),
        (
            call(id="a", type="custom", custom={"name": "f", "input": "raw"}),
            [ToolCallDelta(0, "a", "f", "raw")],
        ),
        (
            choice({"tool_calls": [{"index": 1.0, "function": {"name": "f"}}]}),
            [ToolCallDelta(1, None, "f", None)],
        ),
        (
            choice({"tool_calls": [{"index": True, "function": {"name": "f"}}]}),
            [ToolCallDelta(None, None, "f", None)],
        ),
        (
            {"choices": [{"message": {"tool_calls": [{"function": {"name": "f"}}]}}]},
            [ToolCallDelta(None, None, "f", None)],
        ),
        (call(function={}), [Envelope("")]),
        (call(function=None), [Envelope("")]),
        (choice({"tool_calls": [{}]}), [Envelope("")]),
        (choice({"function_call": {}}), [Envelope("")]),
        (choice({"tool_calls": None}), [Envelope("")]),
        (choice({"tool_calls": ["odd"]}), [Envelope("")]),
        (
            choice({"function_call": {"name": "f", "arguments": "{}"}}),
            [ToolCallDelta(0, None, "f", "{}")],
        ),
        ({"error": ERROR}, [ErrorReport({"error": ERROR})]),
        ({"error": {}}, [ErrorReport({"error": {}})]),
        ({"error": None}, [Envelope("")]),
        ({"detail": "x"}, [ErrorReport({"detail": "x"})]),
        ({"message": "x"}, [ErrorReport({"message": "x"})]),
        ({"message": ""}, [Envelope("")]),
        ({"message": {"role": "assistant", "content": []}}, [Envelope("")]),
        ({"code": 0, "message": "Success"}, [Envelope("")]),
        (
            {"choices": [], "message": "x"},
            [ErrorReport({"choices": [], "message": "x"})],
        ),
        (
            {"choices": [], "message": "x", "usage": {"prompt_tokens": 3.0}},
            [UsageReport(3, None)],
        ),
        ({"msg": "x"}, [ErrorReport({"msg": "x"})]),
        ({"error_msg": "x"}, [ErrorReport({"error_msg": "x"})]),
        ({"errors": [{}]}, [ErrorReport({"errors": [{}]})]),
        ({"type": "error"}, [ErrorReport({"type": "error"})]),
        ({"type": "ping"}, [Envelope("")]),
        (
            {"choices": None, "base_resp": {"status_code": 1002}},
            [ErrorReport({"choices": None, "base_resp": {"status_code": 1002}})],
        ),
        ({"choices": [], "base_resp": {"status_code": 0}}, [Envelope("")]),
        ([], [ErrorReport([])]),
        ("text", [ErrorReport("text")]),
        (5, [ErrorReport(5)]),
    ],
)
def test_a_chunk_is_read(chunk: object, events: list[StreamEvent]) -> None:
    assert ChunkReader().read(chunk) == events


def test_text_beside_an_error_comes_first() -> None:
    chunk = choice({"content": "tail"}, "error") | {"error": ERROR}

    events = ChunkReader().read(chunk, http_status=502)

    assert events == [TextDelta("tail"), Finish("error"), ErrorReport(chunk, 502)]


def test_an_error_event_is_one_whatever_it_holds() -> None:
    chunk = {"code": 500}

    assert ChunkReader().read(chunk, event="error") == [ErrorReport(chunk)]
    assert ChunkReader().read(chunk, event="message") == [Envelope("")]


def test_of_several_choices_the_first_to_speak_counts() -> None:
    reader = ChunkReader()
    both = [{"index": i, "delta": {"content": "BA"[i]}} for i in (1, 0)]

    assert reader.read({"choices": both}) == [TextDelta("A")]
    assert reader.read({"choices": both[1:]}) == [Envelope("")]
    assert reader.read({"choices": both[:1]}) == [TextDelta("A")]


def test_a_message_beside_deltas_is_the_same_text_once_more() -> None:
    reader = ChunkReader()
    reader.read(choice({"content": "Find"}))
    last = {"delta": {}, "message": {"content": "Find"}, "finish_reason": "stop"}

    assert reader.read({"choices": [last]}) == [Finish("stop")]


def test_messages_without_deltas_are_the_deltas() -> None:
    reader = ChunkReader()
    chunks = [{"choices": [{"message": {"content": piece}}]} for piece in ("a", "b")]

    assert [reader.read(chunk) for chunk in chunks] == [
        [TextDelta("a")],
        [TextDelta("b")],
    ]


def test_a_character_cut_between_two_chunks_is_whole() -> None:
    reader = ChunkReader()

    pieces = [
        *reader.read(choice({"content": "ok \ud83d", "reasoning": "\ud83d"})),
        *reader.read(choice({"content": "\udc4d!", "reasoning": "\udc4d"})),
    ]

    assert pieces == [TextDelta("ok "), ReasoningDelta("👍"), TextDelta("👍!")]


def test_what_was_held_back_is_given_at_the_end() -> None:
    reader = ChunkReader()
    reader.read(choice({"content": "<thi", "reasoning": "a\ud83d"}))

    assert reader.flush() == [ReasoningDelta("\ufffd"), TextDelta("<thi")]
    assert reader.flush() == []


def test_half_a_character_inside_a_thought_is_no_answer() -> None:
    reader = ChunkReader()
    reader.read(choice({"content": "<think>a\ud83d"}))

    assert reader.flush() == [ReasoningDelta("\ufffd")]


def test_the_first_model_and_provider_that_are_named_stand() -> None:
    reader = ChunkReader()

    for chunk in ({"model": ""}, {"model": "m\n1", "provider": "P"}, {"model": "m2"}):
        reader.read(chunk)

    assert (reader.model, reader.provider) == ("m 1", "P")
