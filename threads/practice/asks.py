"""Reading a chat-completions request: its bytes in, an `Ask` out, or the reason why not.

It checks only what an answer depends on. Everything else that a client may send is
accepted and ignored, as gateways do.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

Message: TypeAlias = Mapping[str, Any]


class BadRequestError(Exception):
    """The request cannot be answered; says which parameter is at fault, if one is."""

    def __init__(
        self, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, as far as the scripts and the players need to know it.

    `turn` counts how far a script that changes its mind has come with this very
    request; it is 0 for a request that is new.
    """

    model: str
    messages: tuple[Message, ...]
    tool_names: tuple[str, ...] = ()
    stream: bool = False
    include_usage: bool = False
    turn: int = 0

    def at_turn(self, turn: int) -> "Ask":
        """The same request, come so far with a script that changes its mind."""
        return replace(self, turn=turn)

    @property
    def last_words(self) -> str:
        """What the person said last, or an empty string."""
        for message in reversed(self.messages):
            if message.get("role") == "user":
                return text_of(message)
        return ""

    @property
    def tool_results(self) -> tuple[tuple[str, str], ...]:
        """Name and result of each tool that ran since the person last spoke."""
        names: dict[str, str] = {}
        results: list[tuple[str, str]] = []
        for message in self.messages:
            match message.get("role"):
                case "user":
                    results.clear()
                case "assistant":
                    names.update(_called(message))
                case "tool":
                    call_id = str(message.get("tool_call_id"))
                    results.append((names.get(call_id, "tool"), text_of(message)))
                case _:
                    pass
        return tuple(results)

    @property
    def prompt_text(self) -> str:
        """Everything in the messages that a model would have read."""
        return " ".join(text_of(message) for message in self.messages)

    @property
    def fingerprint(self) -> str:
        """Equal for requests that ask the same model with the same messages."""
        said = json.dumps([self.model, self.messages], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()


def text_of(message: Message) -> str:
    """The text of a message whose content is a string, a list of parts, or null."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, Mapping))
    return " ".join(part for part in parts if isinstance(part, str))


def read_ask(body: bytes) -> Ask:
    """Parse a request body.

    Raises BadRequestError, whose words are meant for whoever wrote the client.
    """
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(
            "We could not parse the JSON body of your request."
        ) from error
    if not isinstance(asked, dict):
        raise BadRequestError("The request body must be a JSON object.")
    stream = _flag(asked, "stream")
    options = asked.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise BadRequestError(
            "'stream_options' must be an object.", param="stream_options"
        )
    return Ask(
        model=_model(asked),
        messages=_messages(asked),
        tool_names=_tool_names(asked),
        stream=stream,
        include_usage=_flag(options or {}, "include_usage"),
    )


def _flag(holder: Mapping[str, Any], name: str) -> bool:
    value = holder.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise BadRequestError(f"'{name}' must be a boolean.", param=name)


def _model(asked: Mapping[str, Any]) -> str:
    model = asked.get("model")
    if isinstance(model, str) and model:
        return model
    raise BadRequestError(
        "You must provide a model parameter.",
        param="model",
        code="missing_required_parameter",
    )


def _messages(asked: Mapping[str, Any]) -> tuple[Message, ...]:
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequestError(
            "'messages' must be a list with at least one message.", param="messages"
        )
    for position, message in enumerate(messages):
        where = f"messages[{position}]"
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise BadRequestError(f"'{where}' must have a role.", param=where)
        if not isinstance(message.get("content"), str | list | None):
            raise BadRequestError(
                f"'{where}.content' must be a string or a list of parts.", param=where
            )
    return tuple(messages)


def _tool_names(asked: Mapping[str, Any]) -> tuple[str, ...]:
    tools = asked.get("tools")
    if tools is None:
        return ()
    if not isinstance(tools, list):
        raise BadRequestError("'tools' must be a list.", param="tools")
    return tuple(name for tool in tools if (name := _function_name(tool)))


def _function_name(holder: object) -> str:
    function = holder.get("function") if isinstance(holder, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else ""


def _called(message: Message) -> Iterator[tuple[str, str]]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            yield str(call.get("id")), _function_name(call)
