"""What a runner needs to know of a round, read in one go when it is claimed."""

from dataclasses import dataclass

from threads.core.faults import Condition, Ending, Verdict
from threads.core.table import ERRORS
from threads.endpoints import default_gateway, endpoint_of
from threads.gateway.client import Endpoint
from threads.models import Cell, LanguageModel, Round
from threads.rounds import ledger
from threads.rounds.broadcast import Place

Message = dict[str, object]


@dataclass(frozen=True, slots=True)
class Brief:
    """One round's task. Without an endpoint, `problem` says what is missing."""

    place: Place
    locale: str
    model: str
    messages: list[Message]
    is_practice: bool
    endpoint: Endpoint | None
    problem: Verdict | None


def claim(round_id: int, worker: str) -> bool:
    """Claim a queued round; False when it is not to be had.

    A round that was stopped while it waited ends here, without a request.
    """
    if ledger.end_if_stopped_unclaimed(round_id):
        return False
    return ledger.claim_round(round_id, worker)


def read(round_id: int) -> Brief:
    """Read the brief of a claimed round."""
    round_ = Round.objects.select_related(
        "thread", "model__gateway", "agent", "user_cell"
    ).get(pk=round_id)
    model = round_.model
    gateway = default_gateway() if model is None else model.gateway
    endpoint, problem = _endpoint(model)
    return Brief(
        place=Place(
            round_.pk,
            round_.thread_id,
            round_.thread.owner_id,
            round_.user_cell_id,
            round_.answer_cell_id,
        ),
        locale=round_.locale,
        model=round_.model_requested if model is None else model.wire_id,
        messages=_messages(round_),
        is_practice=gateway is not None and gateway.is_practice,
        endpoint=endpoint,
        problem=problem,
    )


def _endpoint(model: LanguageModel | None) -> tuple[Endpoint | None, Verdict | None]:
    """Return where the model is asked, or what is missing for that (G16)."""
    endpoint = endpoint_of(model)
    if endpoint is None:
        return None, _missing("model_not_found")
    if not endpoint.api_key and not endpoint.is_local:
        return None, _missing("missing_key")
    return endpoint, None


def _missing(code: str) -> Verdict:
    error = ERRORS[code]
    return Verdict(
        code=error.code,
        ending=Ending.REFUSED,
        condition=Condition.OUR_CONFIG,
        sentence_key=error.sentence_key,
    )


def _messages(round_: Round) -> list[Message]:
    """Build the conversation up to the question.

    Texts only: a sentence of ours never enters a request, nor does an answer of
    which nothing came (requirement F11).
    """
    messages: list[Message] = []
    if round_.agent is not None:
        instructions = round_.agent.instructions
        if instructions:
            messages.append({"role": "system", "content": instructions})
    earlier = (
        Cell.objects.filter(
            thread=round_.thread, position__lt=round_.user_cell.position
        )
        .shown()
        .exclude(text="")
        .values_list("role", "text")
    )
    messages += [{"role": role, "content": text} for role, text in earlier]
    messages.append({"role": "user", "content": round_.user_cell.text})
    return messages
