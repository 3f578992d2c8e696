"""One attempt of a call: what it was asked, what came, and its ledger row."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from threads.core.answer import Accumulator
from threads.core.estimate import tokens_in, tokens_of_messages
from threads.core.events import Finish, StreamEvent, Usage, UsageSource
from threads.core.evidence import Evidence, StreamEnd
from threads.core.faults import (
    WHOLE,
    Arrival,
    Ending,
    Facts,
    KeyEffect,
    Verdict,
    classify,
)
from threads.core.quirks import PROTECTED, Override, quirks_of, shape
from threads.core.retry import Action, Attempted, Decision, Reason
from threads.gateway.client import Endpoint
from threads.gateway.transport import Wire


@dataclass(frozen=True, slots=True)
class CallRequest:
    """One call of a round; `call` counts from 1.

    `override` is what an operator said of this model; the rest of what differs from
    model to model is known from its wire id (F13).
    """

    endpoint: Endpoint
    model: str
    messages: list[dict[str, object]]
    tools: list[dict[str, object]] = field(default_factory=list)
    call: int = 1
    override: Override = field(default_factory=Override)

    def body(self) -> dict[str, object]:
        """The JSON that is sent; the same request gives the same bytes (D9)."""
        body: dict[str, object] = {
            "model": self.model,
            "messages": self.messages,
            "stream": True,
        }
        if self.tools:
            body["tools"] = self.tools
        if self.endpoint.sends_usage:
            body["stream_options"] = {"include_usage": True}
        return body | self._parameters()

    def shape(self) -> dict[str, object]:
        """What the ledger says of the body: our parameters, names of others, counts."""
        extras = sorted(self.override.extras.keys() - PROTECTED)
        ours = {
            name: value
            for name, value in self.body().items()
            if name not in PROTECTED and name not in extras
        }
        counts = {"messages": len(self.messages), "tools": len(self.tools)}
        return counts | ours | ({"extras": extras} if extras else {})

    def _parameters(self) -> dict[str, object]:
        quirks = quirks_of(self.model, self.endpoint.host)
        return shape(quirks, self.override, has_tools=bool(self.tools))


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """The ledger row of one attempt; fields as in `threads.models.CallAttempt`."""

    call: int
    attempt: int
    model_requested: str
    model_served: str
    request_shape: dict[str, object]
    host: str
    provider: str
    outcome: str
    ending: str
    code: str
    condition: str
    http_status: int | None
    transient: bool
    key_effect: str
    retry_decision: str
    retry_reason: str
    provider_reason: str
    request_id: str
    stream_state: str
    chunks_received: int
    comments_seen: int
    done_received: bool
    output_committed: bool
    finish_reason: str
    native_finish_reason: str
    silent_updates: int
    characters: int
    withdrawn_text: str
    transport_retries: int
    started_at: datetime
    first_data_ms: int | None
    first_output_ms: int | None
    last_update_ms: int | None
    duration_ms: int
    wait_ms: int
    input_tokens: int | None
    output_tokens: int | None
    usage_source: str


class Attempt:
    """The state of one attempt while it runs. Times are monotonic.

    `waited_seconds` passed before it; `end` says how its transport ended, once it
    has, and `decision` what follows it.
    """

    def __init__(
        self, request: CallRequest, number: int, *, waited_seconds: float = 0.0
    ) -> None:
        self.request = request
        self.number = number
        self.end = StreamEnd(Arrival.ENDED)
        self.decision = _STOPPED
        self._waited_seconds = waited_seconds
        self.wire = Wire()
        self.evidence = Evidence()
        self.answer = Accumulator()
        self.model_served = ""
        self.provider = ""
        self.verdict: Verdict | None = None
        self._facts: Facts | None = None
        self._estimate: Usage | None = None
        self._started_at = datetime.now(UTC)
        self._start = time.monotonic()
        self._first_data_ms: int | None = None
        self._first_output_ms: int | None = None
        self._last_update_ms: int | None = None

    def feed(self, events: list[StreamEvent], *, is_rest: bool = False) -> None:
        """Take the events of one chunk, or the rest that was held back of some."""
        now = self._elapsed_ms()
        if self._first_data_ms is None:
            self._first_data_ms = now
        self._last_update_ms = now
        for event in events:
            self.answer.feed(event)
        self.evidence.feed_chunk(events, is_rest=is_rest)
        if self._first_output_ms is None and self.evidence.has_output:
            self._first_output_ms = now

    def judge(self) -> Verdict:
        """Classify the end; keys are taken out of what the provider said."""
        self.evidence.done = self.evidence.done or self.wire.observed.done
        self._facts = self.evidence.facts(
            self.end, secrets=(self.request.endpoint.api_key,)
        )
        self.verdict = classify(self._facts)
        return self.verdict

    def facts_for_retry(self, elapsed_seconds: float) -> Attempted:
        """What the decision about another attempt is made from; judge first.

        White space alone is no text that anybody read.
        """
        if self.verdict is None:
            raise RuntimeError("the attempt has not been judged")
        return Attempted(
            number=self.number,
            verdict=self.verdict,
            is_withdrawable=self.evidence.is_withdrawable,
            has_text=self.evidence.has_text,
            elapsed_seconds=elapsed_seconds,
        )

    @property
    def finish(self) -> Finish | None:
        """The finish reason that stands."""
        return self.evidence.finish

    @property
    def usage(self) -> Usage:
        """The provider's count; estimated where a cut pre-empted it (G2), or unknown."""
        usage = self.answer.usage
        if usage.source is UsageSource.UNKNOWN and self._is_cut:
            self._estimate = self._estimate or self._estimated()
            return self._estimate
        return usage

    @property
    def _is_cut(self) -> bool:
        evidence = self.evidence
        has_any = evidence.has_text or evidence.has_reasoning or evidence.has_tool_calls
        return self.verdict is not None and self.verdict.ending in _CUT and has_any

    def _estimated(self) -> Usage:
        answer = self.answer
        made = (answer.text, answer.reasoning, answer.tool_calls.text)
        return Usage(
            tokens_of_messages(self.request.messages),
            sum(tokens_in(each) for each in made),
            UsageSource.ESTIMATED,
        )

    def record(self, *, stopped: bool = False) -> AttemptRecord:
        """The row as things stand; `stopped` when the person ended it."""
        verdict = self.verdict
        decision = _STOPPED if stopped else self.decision
        ending = Ending.STOPPED if stopped or verdict is None else verdict.ending
        completed = not stopped and verdict is not None and verdict.ending in WHOLE
        usage = self.usage
        return AttemptRecord(
            call=self.request.call,
            attempt=self.number,
            model_requested=self.request.model,
            model_served=self.model_served,
            request_shape=self.request.shape(),
            host=self.request.endpoint.host,
            provider=(verdict.provider if verdict else "") or self.provider,
            outcome=_outcome(ending),
            ending=ending.value,
            code="" if stopped or verdict is None else verdict.code,
            condition=""
            if completed or stopped or verdict is None
            else verdict.condition.value,
            http_status=None if self._facts is None else self._facts.http_status,
            transient=verdict is not None and verdict.transient and not stopped,
            key_effect=KeyEffect.NONE.value
            if stopped or verdict is None
            else verdict.key_effect.value,
            retry_decision=self._retry_decision(decision),
            retry_reason=decision.reason.value if decision.reason else "",
            provider_reason="" if verdict is None else verdict.provider_reason,
            request_id=self.wire.request_id,
            stream_state=self._stream_state(completed),
            chunks_received=self.evidence.chunks,
            comments_seen=self.wire.observed.comments,
            done_received=self.wire.observed.done,
            output_committed=self.evidence.has_text or self.evidence.has_tool_calls,
            finish_reason=self.finish.reason if self.finish else "",
            native_finish_reason=(self.finish.native or "") if self.finish else "",
            silent_updates=self.evidence.silent_updates,
            characters=self.answer.text_length,
            withdrawn_text=self.answer.text
            if decision.action is Action.REGENERATE
            else "",
            transport_retries=max(0, self.wire.tries - 1),
            started_at=self._started_at,
            first_data_ms=self._first_data_ms,
            first_output_ms=self._first_output_ms,
            last_update_ms=self._last_update_ms,
            duration_ms=self._elapsed_ms(),
            wait_ms=round(self._waited_seconds * 1000),
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            usage_source=usage.source.value,
        )

    def _retry_decision(self, decision: Decision) -> str:
        """Name what followed: another attempt, or else the SDK's own tries (D16)."""
        if decision.action is Action.NONE and self.wire.tries > 1:
            return "transport"
        return decision.action.value

    def _stream_state(self, completed: bool) -> str:
        if completed:
            return "complete"
        shown = (
            self.evidence.has_text
            or self.evidence.has_reasoning
            or self.evidence.has_tool_calls
        )
        return "partial" if shown else "failed_before_display"

    def _elapsed_ms(self) -> int:
        return int((time.monotonic() - self._start) * 1000)


_STOPPED = Decision(Action.NONE, Reason.STOPPED)
_CUT = frozenset({Ending.STALLED, Ending.TRUNCATED, Ending.FAULTED})


def _outcome(ending: Ending) -> str:
    """The ledger's word for an ending (requirement F5)."""
    match ending:
        case _ if ending in WHOLE:
            return "completed"
        case Ending.STOPPED:
            return "cancelled"
        case Ending.REFUSED | Ending.BLOCKED:
            return "refused"
        case _:
            return "faulted"
