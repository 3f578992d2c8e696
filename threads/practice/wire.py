"""The OpenAI chat-completions wire: chunks, frames, error bodies and plausible counts.

Pure functions over plain values; nothing here sends anything.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from threads.practice.steps import Fail, ToolCall

DONE = b"data: [DONE]\n\n"
PROVIDER = "Practice"

# A token of a real model is a short piece of a word that carries the space before it.
_TOKEN = re.compile(r"\s*\S{1,6}|\s+")


def tokens_of(text: str) -> Iterator[str]:
    """Pieces of about a token each, whose concatenation is the text, unchanged."""
    for match in _TOKEN.finditer(text):
        yield match.group()


def estimate_tokens(text: str) -> int:
    """A plausible count: 1.3 tokens a word, as English prose has."""
    return math.ceil(len(text.split()) * 1.3)


def encode(value: object) -> bytes:
    """JSON in UTF-8; lone surrogates, which UTF-8 cannot carry, become `?`."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def frame(value: object) -> bytes:
    """One server-sent event holding the value as JSON."""
    return b"data: " + encode(value) + b"\n\n"


def comment(words: str) -> bytes:
    """One SSE comment: it proves that the connection lives and carries nothing."""
    return f": {words}\n\n".encode()


def error_body(
    message: str,
    *,
    kind: str = "invalid_request_error",
    code: str | None = None,
    param: str | None = None,
) -> dict[str, Any]:
    """An error in OpenAI's own shape."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def failure_object(fail: Fail) -> dict[str, Any]:
    """An error object as gateways put it into a stream: an integer code, metadata."""
    error: dict[str, Any] = {"code": fail.code, "message": fail.message}
    if fail.provider_name:
        error["metadata"] = {"provider_name": fail.provider_name, "raw": fail.raw}
    return error


def call_opening(index: int, call: ToolCall) -> dict[str, Any]:
    """The first delta of a tool call: everything but its arguments."""
    function = {"name": call.name, "arguments": ""}
    return _call_delta(
        {"index": index, "id": call.call_id, "type": "function", "function": function}
    )


def call_arguments(index: int, piece: str) -> dict[str, Any]:
    """A later delta of a tool call: a piece of its arguments."""
    return _call_delta({"index": index, "function": {"arguments": piece}})


def _call_delta(call: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [call]}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What every chunk of one answer has in common."""

    answer_id: str
    created: int
    model: str

    def chunk(
        self, delta: dict[str, Any], *, finish_reason: str | None = None
    ) -> dict[str, Any]:
        """A chunk with its one choice."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._around("chat.completion.chunk") | {"choices": [choice]}

    def failure(self, fail: Fail) -> dict[str, Any]:
        """A last chunk carrying both an error object and `finish_reason: error`."""
        last = self.chunk({"role": "assistant", "content": ""}, finish_reason="error")
        return last | {"error": failure_object(fail)}

    def usage(self, usage: dict[str, Any]) -> dict[str, Any]:
        """The usage chunk, which has no choice."""
        return self._around("chat.completion.chunk") | {"choices": [], "usage": usage}

    def completion(
        self,
        message: dict[str, Any],
        *,
        finish_reason: str | None,
        usage: dict[str, Any],
    ) -> dict[str, Any]:
        """The whole answer as one object."""
        choice = {"index": 0, "message": message, "finish_reason": finish_reason}
        return self._around("chat.completion") | {"choices": [choice], "usage": usage}

    def _around(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.answer_id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "provider": PROVIDER,
        }


def usage_of(*, prompt: str, answer: str, reasoning: str) -> dict[str, Any]:
    """Counts for one answer; reasoning is part of the completion, as OpenAI counts."""
    reasoned = estimate_tokens(reasoning)
    read, written = estimate_tokens(prompt), estimate_tokens(answer) + reasoned
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "completion_tokens_details": {"reasoning_tokens": reasoned},
    }
