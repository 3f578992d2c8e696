"""What came over the wire in answer to one request, read without any SDK."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx2

PATH = "/chat/completions"
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("current_time", "calculator")
]


@dataclass
class Wire:
    """A stream as it was received, up to its end or its break."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    raw: str = ""
    broke: type[Exception] | None = None

    @property
    def payloads(self) -> list[str]:
        """What followed each `data: ` of a whole event, in order."""
        events = self.raw.split("\n\n")[:-1]
        return [event[6:] for event in events if event.startswith("data: ")]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [json.loads(text) for text in self.payloads if text.endswith("}")]

    @property
    def deltas(self) -> list[dict[str, Any]]:
        return [c["choices"][0]["delta"] for c in self.chunks if c.get("choices")]

    @property
    def text(self) -> str:
        return "".join(delta.get("content", "") for delta in self.deltas)

    @property
    def reasoning(self) -> str:
        return "".join(delta.get("reasoning_content", "") for delta in self.deltas)

    @property
    def finish_reasons(self) -> list[str]:
        reasons = (
            c["choices"][0]["finish_reason"] for c in self.chunks if c["choices"]
        )
        return [reason for reason in reasons if reason is not None]

    @property
    def done(self) -> bool:
        return self.payloads[-1:] == ["[DONE]"]

    @property
    def error(self) -> dict[str, Any]:
        """The error object of the last frame."""
        error: dict[str, Any] = self.chunks[-1]["error"]
        return error

    @property
    def called(self) -> dict[str, str]:
        """Arguments by tool name, put together from the deltas."""
        names: dict[int, str] = {}
        arguments: dict[int, str] = {}
        for delta in self.deltas:
            for call in delta.get("tool_calls", []):
                index, function = call["index"], call["function"]
                names.setdefault(index, function.get("name", ""))
                arguments[index] = arguments.get(index, "") + function["arguments"]
        return {names[index]: arguments[index] for index in names}


def asking(model: str, prompt: str = "Hello there", **more: object) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt}]
    return {"model": model, "messages": messages, "stream": True} | more


async def listen(client: httpx2.AsyncClient, body: dict[str, Any]) -> Wire:
    """Ask, and read until the stream ends or breaks."""
    wire = Wire()
    received = bytearray()
    async with client.stream("POST", PATH, json=body) as response:
        wire.status = response.status_code
        wire.headers = dict(response.headers)
        try:
            async for piece in response.aiter_bytes():
                received += piece
        except httpx2.TransportError as error:
            wire.broke = type(error)
    wire.raw = received.decode()
    return wire
