"""Whatever the SDK can raise is an end with a meaning, and never goes on from here."""

import inspect

import httpx2
import openai
import pytest
from openai import OpenAIError
from openai.types.chat import ChatCompletion

from tests.fakegateway import FakeGateway, Head, Reset, Script, Stall, chunk, reply
from tests.gateway.calling import answered, request_to
from threads.core.evidence import Evidence
from threads.core.faults import Verdict, classify
from threads.core.table import CODES
from threads.gateway.client import chain_words, end_of
from threads.gateway.clients import leased
from threads.gateway.transport import Wire

REQUEST = httpx2.Request("POST", "http://gateway.test/v1/chat/completions")


def subclasses(kind: type[BaseException]) -> set[type[BaseException]]:
    return {kind}.union(*(subclasses(each) for each in kind.__subclasses__()))


SDK_EXCEPTIONS = sorted(
    (
        kind
        for kind in subclasses(OpenAIError)
        if kind.__module__.partition(".")[0] == "openai"
    ),
    key=lambda kind: kind.__name__,
)

STATUSES = {
    "APIStatusError": 418,
    "BadRequestError": 400,
    "AuthenticationError": 401,
    "OAuthError": 401,
    "PermissionDeniedError": 403,
    "NotFoundError": 404,
    "ConflictError": 409,
    "UnprocessableEntityError": 422,
    "RateLimitError": 429,
    "InternalServerError": 500,
}

MEANINGS = {
    "APIStatusError": "http_other",
    "BadRequestError": "http_400",
    "AuthenticationError": "http_401",
    "OAuthError": "http_401",
    "PermissionDeniedError": "http_403",
    "NotFoundError": "model_not_found",
    "ConflictError": "http_409",
    "UnprocessableEntityError": "http_422",
    "RateLimitError": "http_429",
    "InternalServerError": "http_5xx",
    "APIConnectionError": "connect_failed",
    "APITimeoutError": "connect_failed",
    "APIResponseValidationError": "stream_unreadable",
    "APIError": "http_5xx",
    # Raised by parts of the SDK that we do not use: unknown, and counted as such.
    "OpenAIError": "stream_fault_unknown",
    "LengthFinishReasonError": "stream_fault_unknown",
    "ContentFilterFinishReasonError": "stream_fault_unknown",
    "SubjectTokenProviderError": "stream_fault_unknown",
    "WebSocketConnectionClosedError": "stream_fault_unknown",
    "WebSocketQueueFullError": "stream_fault_unknown",
    "MutuallyExclusiveAuthError": "stream_fault_unknown",
    "StreamAlreadyConsumed": "stream_fault_unknown",
    "APIRemovedInV1": "stream_fault_unknown",
    "_AmbiguousModuleClientUsageError": "stream_fault_unknown",
}

VALUES = {
    "message": "no",
    "request": REQUEST,
    "body": {"code": 502, "message": "no"},
    "completion": ChatCompletion.construct(choices=[]),
    "unsent_messages": [],
    "symbol": "x",
}


def made(kind: type[BaseException]) -> OpenAIError:
    """An exception of this kind, with whatever its constructor asks for."""
    status = STATUSES.get(kind.__name__, 200)
    response = httpx2.Response(status, request=REQUEST, json={"error": "no"})
    values = VALUES | {"response": response}
    if "__init__" not in vars(kind) and kind.__base__ is OpenAIError:
        plain = kind("no")
        assert isinstance(plain, OpenAIError)
        return plain
    asked = inspect.signature(kind.__init__).parameters
    error = kind(**{name: values[name] for name in asked if name in values})
    assert isinstance(error, OpenAIError)
    return error


def verdict_of(error: OpenAIError) -> Verdict:
    return classify(Evidence().facts(end_of(error, Wire())))


def test_every_exception_of_the_sdk_is_listed_here() -> None:
    """Red when the SDK learns a new one: it wants a meaning."""
    assert {kind.__name__ for kind in SDK_EXCEPTIONS} == set(MEANINGS)


@pytest.mark.parametrize("kind", SDK_EXCEPTIONS, ids=lambda kind: kind.__name__)
def test_every_exception_of_the_sdk_is_classified(kind: type[BaseException]) -> None:
    verdict = verdict_of(made(kind))

    assert verdict.code == MEANINGS[kind.__name__]
    assert verdict.code in CODES


def test_other_classes_that_the_sdk_exports_are_no_errors_of_a_call() -> None:
    others = {
        name
        for name, kind in list(vars(openai).items())
        if inspect.isclass(kind)
        and issubclass(kind, Exception)
        and not issubclass(kind, OpenAIError)
    }

    # The first is raised when a webhook is read; there is none here.
    assert others <= {"InvalidWebhookSignatureError"}


def test_a_read_that_timed_out_is_a_stall_and_no_broken_connection() -> None:
    error = openai.APITimeoutError(REQUEST)
    error.__cause__ = httpx2.ReadTimeout("", request=REQUEST)

    assert verdict_of(error).code == "stalled_before_start"


@pytest.mark.parametrize(
    ("scripts", "kind", "code"),
    [
        ([reply(400, {})], "BadRequestError", "http_400"),
        ([reply(401, {})], "AuthenticationError", "http_401"),
        ([reply(403, {})], "PermissionDeniedError", "http_403"),
        ([reply(404, {})], "NotFoundError", "model_not_found"),
        ([reply(409, {}, headers={"x-should-retry": "false"})], "ConflictError", "http_409"),
        ([reply(422, {})], "UnprocessableEntityError", "http_422"),
        ([reply(429, {}, headers={"x-should-retry": "false"})], "RateLimitError", "http_429"),
        ([reply(503, {}, headers={"x-should-retry": "false"})], "InternalServerError", "overloaded"),
        ([reply(413, {})], "APIStatusError", "context_too_long"),
        ([Script(Reset(), framing="raw")], "APIConnectionError", "connect_failed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
async def test_what_a_gateway_provokes_is_classified_through_the_client(
    gateway: FakeGateway, scripts: list[Script], kind: str, code: str
) -> None:
    gateway.play(*scripts)

    with (
        leased(request_to(gateway.base_url).endpoint) as client,
        pytest.raises(OpenAIError) as raised,
    ):
        await client._sdk.post("/chat/completions", body={}, cast_to=object)
    called = await answered(gateway, *scripts)

    assert type(raised.value).__name__ == kind
    assert called.verdict.code == code
    assert verdict_of(raised.value).code == code


async def test_a_read_timeout_inside_a_stream_is_a_stall(gateway: FakeGateway) -> None:
    """Ours never fires: the clocks are the guard's. If one did, it would be no cut."""
    called = []
    for script in (
        Script(chunk(content="Half"), Stall()),
        Script(Head(), Stall()),
    ):
        with leased(request_to(gateway.base_url).endpoint) as client:
            client._http.timeout = httpx2.Timeout(0.2)
            client._sdk.timeout = httpx2.Timeout(0.2)
            called.append(await answered(gateway, script))
    middle, start = called

    assert middle.verdict.code == "stalled_mid_answer"
    assert middle.shown == "Half"
    assert start.verdict.code == "stalled_before_start"


def test_the_chain_of_causes_is_read_so_far_and_no_further() -> None:
    error: BaseException = ValueError("innermost")
    for number in range(100):
        outer = RuntimeError(f"number {number} " + "x" * 100_000)
        outer.__cause__, error = error, outer

    words = chain_words(error)

    assert words.startswith("RuntimeError number 99 ")
    assert words.count(" < ") == 3
    assert len(words) <= 4 * 200 + 3 * 3


def test_a_chain_that_bites_its_tail_ends() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__context__ = other, one

    assert chain_words(one) == "ValueError one < ValueError other"
