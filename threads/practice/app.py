"""The practice gateway as an ASGI application.

It speaks `GET /v1/models` and `POST /v1/chat/completions` as OpenAI-compatible gateways
do, and plays for each request what the named model is for. It knows nothing of the
site that it is practised with.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeAlias

from threads.practice import wire
from threads.practice.asks import Ask, BadRequestError, read_ask
from threads.practice.memory import TurnMemory
from threads.practice.models import MODELS_BY_WIRE_ID, PRACTICE_MODELS, PracticeModel
from threads.practice.players import (
    ABORT,
    Headers,
    Send,
    Stage,
    StreamPlayer,
    WholePlayer,
)
from threads.practice.steps import Answer

Scope: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]

# A day on which every practice model may be said to have been created.
MODELS_CREATED = 1_767_225_600


class ClientGoneError(Exception):
    """The client went away before its request was read to the end."""


class PracticeApp:
    """The ASGI callable; one instance remembers which models have failed once."""

    def __init__(
        self,
        *,
        pace: float = 1.0,
        max_body_bytes: int = 8 * 1024 * 1024,
        memory: TurnMemory | None = None,
    ) -> None:
        self._pace = pace
        self._max_body_bytes = max_body_bytes
        self._memory = TurnMemory() if memory is None else memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, and stop as soon as its client has gone away."""
        if scope["type"] != "http":
            raise ValueError(f"Unsupported scope: {scope['type']}")
        request_id = f"req_{uuid.uuid4().hex}"
        try:
            body = await self._read_body(receive)
        except ClientGoneError:
            return
        await _until_disconnect(self._respond(scope, body, send, request_id), receive)

    async def _read_body(self, receive: Receive) -> bytes | None:
        """The body, or None when it is larger than allowed."""
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            body += message.get("body", b"")
            if len(body) > self._max_body_bytes:
                return None
            if not message.get("more_body", False):
                return bytes(body)

    async def _respond(
        self, scope: Scope, body: bytes | None, send: Send, request_id: str
    ) -> None:
        headers = [(b"x-request-id", request_id.encode())]
        answer = self._answer_without_model(scope)
        if answer is None and body is None:
            answer = _error(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request body is too large."
            )
        if answer is None:
            answer = await self._complete(scope, body or b"", send, headers)
        if answer is not None:
            await _send_answer(answer, send, headers)

    def _answer_without_model(self, scope: Scope) -> Answer | None:
        """The answer to everything but a well-addressed chat completion."""
        method, path = scope["method"], scope["path"].rstrip("/")
        allowed = "POST" if path == "/v1/chat/completions" else "GET"
        wire_id = path.removeprefix("/v1/models").removeprefix("/")
        if path != "/v1/chat/completions" and not path.startswith("/v1/models"):
            return _error(HTTPStatus.NOT_FOUND, f"Unknown request URL: {method} {path}")
        if method != allowed:
            return _error(
                HTTPStatus.METHOD_NOT_ALLOWED,
                f"Not allowed to {method} on {path}.",
                headers={"allow": allowed},
            )
        if method == "POST":
            return None
        if not wire_id:
            listed = [_describe(model) for model in PRACTICE_MODELS]
            return _json(HTTPStatus.OK, {"object": "list", "data": listed})
        model = MODELS_BY_WIRE_ID.get(wire_id)
        return _json(HTTPStatus.OK, _describe(model)) if model else _unknown(wire_id)

    async def _complete(
        self, scope: Scope, body: bytes, send: Send, headers: Headers
    ) -> Answer | None:
        """Play the model, or return the answer that is given in place of it."""
        try:
            ask = read_ask(body)
        except BadRequestError as error:
            return _error(
                HTTPStatus.BAD_REQUEST,
                error.message,
                code=error.code,
                param=error.param,
            )
        model = MODELS_BY_WIRE_ID.get(ask.model)
        if model is None:
            return _unknown(ask.model)
        fingerprint = ask.fingerprint
        play = model.script(ask.at_turn(self._memory.recall(fingerprint)))
        if isinstance(play, Answer):
            return play
        stage = Stage(
            send=send,
            ask=ask,
            envelope=_envelope(ask),
            headers=headers,
            keep_turn=lambda turn: self._memory.keep(fingerprint, turn),
            pace=self._pace,
            can_abort=ABORT in (scope.get("extensions") or {}),
        )
        player = StreamPlayer(stage) if ask.stream else WholePlayer(stage)
        await player.play(play)
        return None


async def _until_disconnect(work: Awaitable[None], receive: Receive) -> None:
    """Run the work to its end, or cancel it when the client goes away."""
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_disconnect(receive))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        working.cancel()
        watching.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _envelope(ask: Ask) -> wire.Envelope:
    return wire.Envelope(
        answer_id=f"chatcmpl-{uuid.uuid4().hex}",
        created=int(time.time()),
        model=ask.model,
    )


def _describe(model: PracticeModel) -> dict[str, Any]:
    return {
        "id": model.wire_id,
        "object": "model",
        "created": MODELS_CREATED,
        "owned_by": "practice",
        "name": model.name,
        "description": model.description,
    }


def _json(
    status: int, value: object, *, headers: dict[str, str] | None = None
) -> Answer:
    return Answer(status, wire.encode(value).decode(), headers=headers or {})


def _error(
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    body = wire.error_body(message, code=code, param=param)
    return _json(status, body, headers=headers)


def _unknown(wire_id: str) -> Answer:
    return _error(
        HTTPStatus.NOT_FOUND,
        f"The model `{wire_id[:200]}` does not exist or you do not have access to it.",
        code="model_not_found",
        param="model",
    )


async def _send_answer(answer: Answer, send: Send, headers: Headers) -> None:
    body = answer.body.encode()
    await send(
        {
            "type": "http.response.start",
            "status": answer.status,
            "headers": [
                (b"content-type", answer.content_type.encode()),
                (b"content-length", str(len(body)).encode()),
                *((k.encode(), v.encode()) for k, v in answer.headers.items()),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
