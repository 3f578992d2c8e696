"""One finished round as one JSON object (design section 9).

Every field is always there; null is unknown or does not apply.
"""

from threads.core.events import UsageSource
from threads.models import CallAttempt, Round, ToolRun
from threads.models.totals import total

Report = dict[str, object]


def report(round_: Round, *, id: object = None) -> Report:
    """Describe a round that is over; `id` is the caller's own name for it."""
    cell = round_.answer_cell
    attempts = list(round_.attempts.order_by("call", "attempt"))
    return {
        "id": id,
        "thread": round_.thread_id,
        "round": round_.pk,
        "cell": cell.pk,
        "status": cell.status,
        "ending": cell.ending or None,
        "code": cell.code or None,
        "condition": cell.condition or None,
        "transient": cell.transient,
        "text": cell.text,
        "reasoning": cell.reasoning,
        "sentence": cell.sentence or None,
        "sentence_key": cell.sentence_key or None,
        "locale": round_.locale,
        "provider_reason": cell.provider_reason or None,
        "tool_calls": [
            _tool_call(run) for run in round_.tool_runs.order_by("call", "position")
        ],
        "usage": _total(attempts),
        "cost": _cost(attempts),
        "model_requested": round_.model_requested,
        "model_served": round_.model_served or None,
        "route": round_.route.slug if round_.route else None,
        "calls": [_attempt(attempt) for attempt in attempts],
    }


def _tool_call(run: ToolRun) -> Report:
    return {
        "id": run.call_id,
        "name": run.name,
        "arguments": run.arguments,
        "state": run.state,
        "result": run.result,
    }


def _usage(attempt: CallAttempt) -> Report:
    return {
        "input": attempt.input_tokens,
        "output": attempt.output_tokens,
        "source": attempt.usage_source,
    }


def _total(attempts: list[CallAttempt]) -> Report:
    """Sum the usage; one unknown part makes the whole unknown (G3, G4, D18)."""
    sources = {attempt.usage_source for attempt in attempts}
    unknown = UsageSource.UNKNOWN.value
    if not attempts or unknown in sources:
        return {"input": None, "output": None, "source": unknown}
    estimated = UsageSource.ESTIMATED.value
    return {
        "input": total(attempt.input_tokens for attempt in attempts).exact,
        "output": total(attempt.output_tokens for attempt in attempts).exact,
        "source": estimated if estimated in sources else UsageSource.PROVIDER.value,
    }


def _cost(attempts: list[CallAttempt]) -> float | None:
    """Sum the cost in USD; None where any part of it is unknown (G3)."""
    cost = total(attempt.cost for attempt in attempts).exact
    return None if cost is None else float(cost)


def _attempt(attempt: CallAttempt) -> Report:
    return {
        "call": attempt.call,
        "attempt": attempt.attempt,
        "model_requested": attempt.model_requested,
        "model_served": attempt.model_served or None,
        "outcome": attempt.outcome,
        "ending": attempt.ending,
        "code": attempt.code or None,
        "http_status": attempt.http_status,
        "transient": attempt.transient,
        "retry_decision": attempt.retry_decision,
        "retry_reason": attempt.retry_reason or None,
        "request_id": attempt.request_id or None,
        "stream_state": attempt.stream_state,
        "chunks_received": attempt.chunks_received,
        "done_received": attempt.done_received,
        "output_committed": attempt.output_committed,
        "finish_reason": attempt.finish_reason or None,
        "silent_updates": attempt.silent_updates,
        "withdrawn_chars": len(attempt.withdrawn_text),
        "first_data_ms": attempt.first_data_ms,
        "first_output_ms": attempt.first_output_ms,
        "last_update_ms": attempt.last_update_ms,
        "duration_ms": attempt.duration_ms,
        "wait_s": attempt.wait_ms / 1000,
        "usage": _usage(attempt),
    }
