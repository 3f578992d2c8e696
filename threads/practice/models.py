"""The table of practice models: what each is called and what will be seen.

A site reads `PRACTICE_MODELS` to fill its model picker, in this order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from threads.practice import refusals, scripts
from threads.practice.asks import Ask
from threads.practice.steps import Play

Script: TypeAlias = Callable[[Ask], Play]


@dataclass(frozen=True, slots=True)
class PracticeModel:
    """One model; `ending` is how a call to it ends once nothing more is retried."""

    wire_id: str
    name: str
    description: str
    ending: str
    script: Script


PRACTICE_MODELS: tuple[PracticeModel, ...] = (
    PracticeModel(
        "practice/steady",
        "Steady answer",
        "A plain answer that arrives at a steady pace and ends as it should.",
        "completed",
        scripts.steady,
    ),
    PracticeModel(
        "practice/markdown",
        "Markdown",
        "Headings, lists, a table, code and a quotation.",
        "completed",
        scripts.markdown,
    ),
    PracticeModel(
        "practice/reasoning",
        "Reasoning first",
        "Thinks aloud for about four seconds, then answers.",
        "completed",
        scripts.reasoning,
    ),
    PracticeModel(
        "practice/tools",
        "Two tools",
        "Calls two tools side by side and answers from their results.",
        "completed",
        scripts.tools,
    ),
    PracticeModel(
        "practice/slow",
        "Slow answer",
        "Two tokens a second, for trying Stop.",
        "completed",
        scripts.slow,
    ),
    PracticeModel(
        "practice/long",
        "Long answer",
        "Three thousand tokens at a hundred a second.",
        "completed",
        scripts.long,
    ),
    PracticeModel(
        "practice/cut-once",
        "Cut once",
        "The first try is cut off after some text; the next one is whole.",
        "completed",
        scripts.cut_once,
    ),
    PracticeModel(
        "practice/cut-always",
        "Cut every time",
        "Every try is cut off after some text.",
        "truncated",
        scripts.cut_always,
    ),
    PracticeModel(
        "practice/flaky-start",
        "Flaky start",
        "The first try fails before any text; the next one is whole.",
        "completed",
        scripts.flaky_start,
    ),
    PracticeModel(
        "practice/stall",
        "Silence mid-answer",
        "Some text, then silence while the connection stays open.",
        "stalled",
        scripts.stall,
    ),
    PracticeModel(
        "practice/stall-start",
        "Silence from the start",
        "The connection is accepted and no answer ever begins.",
        "stalled",
        scripts.stall_start,
    ),
    PracticeModel(
        "practice/truncate",
        "Cut off",
        "Some text, then the stream ends without saying that it finished.",
        "truncated",
        scripts.truncate,
    ),
    PracticeModel(
        "practice/reset",
        "Connection reset",
        "Some text, then the connection is reset.",
        "truncated",
        scripts.reset,
    ),
    PracticeModel(
        "practice/fault",
        "Provider fault",
        "Some text, then the model stops because of an error.",
        "faulted",
        scripts.fault,
    ),
    PracticeModel(
        "practice/error-chunk",
        "Error inside the stream",
        "Some text, then an error message with the provider's own words.",
        "faulted",
        scripts.error_chunk,
    ),
    PracticeModel(
        "practice/error-first",
        "Error at once",
        "An error in place of the first word.",
        "faulted",
        scripts.error_first,
    ),
    PracticeModel(
        "practice/unknown-finish",
        "Unknown ending",
        "Some text, then a reason for stopping that nobody knows.",
        "faulted",
        scripts.unknown_finish,
    ),
    PracticeModel(
        "practice/garbled",
        "Garbled stream",
        "Some text, then data that cannot be read.",
        "faulted",
        scripts.garbled,
    ),
    PracticeModel(
        "practice/not-a-stream",
        "Web page instead",
        "A web page in place of a stream, as from a wrong address.",
        "faulted",
        scripts.not_a_stream,
    ),
    PracticeModel(
        "practice/tool-then-fault",
        "Fault after tools",
        "Two tools run, then the provider fails: nothing is repeated.",
        "faulted",
        scripts.tool_then_fault,
    ),
    PracticeModel(
        "practice/empty",
        "Empty answer",
        "The model finishes without having written a word.",
        "empty",
        scripts.empty,
    ),
    PracticeModel(
        "practice/length",
        "Length limit",
        "The answer reaches its limit in the middle of a sentence.",
        "length",
        scripts.length,
    ),
    PracticeModel(
        "practice/filtered",
        "Content filter",
        "A filter at the provider stops the answer after some text.",
        "content_filter",
        scripts.filtered,
    ),
    PracticeModel(
        "practice/blocked",
        "Blocked request",
        "The gateway blocks the request because of what it contains.",
        "blocked",
        scripts.blocked,
    ),
    PracticeModel(
        "practice/refused",
        "Refused request",
        "The provider refuses the request and gives its reason.",
        "refused",
        refusals.refused,
    ),
    PracticeModel(
        "practice/rate-limited",
        "Rate limit",
        "Too many requests: the gateway asks to wait a second.",
        "refused",
        refusals.rate_limited,
    ),
    PracticeModel(
        "practice/key-rejected",
        "Rejected key",
        "The gateway does not accept the API key.",
        "refused",
        refusals.key_rejected,
    ),
    PracticeModel(
        "practice/no-credit",
        "No credit left",
        "The account behind the key has run out of credit.",
        "refused",
        refusals.no_credit,
    ),
    PracticeModel(
        "practice/too-long",
        "Thread too long",
        "The messages are longer than the model can read.",
        "refused",
        refusals.too_long,
    ),
)

MODELS_BY_WIRE_ID = {model.wire_id: model for model in PRACTICE_MODELS}
