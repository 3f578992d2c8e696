"""What a runner needs to know of a round, read in one go when it is claimed."""

from dataclasses import dataclass, field

from django.db import DatabaseError, InterfaceError

from threads.core.faults import Condition, Ending, Verdict
from threads.core.quirks import Override
from threads.core.table import ERRORS
from threads.endpoints import ENVIRONMENT, default_gateway, endpoint_of, offered_models
from threads.gateway.client import Endpoint
from threads.models import Agent, Gateway, Round
from threads.rounds import keyhealth, ledger
from threads.rounds.broadcast import Place
from threads.rounds.conversation import messages_of
from threads.rounds.exchanges import Exchange, Message, exchanges_of
from threads.rounds.folding import Folded, take_up
from threads.rounds.keyhealth import Key
from threads.tools.toolset import Toolset, toolset_for

NO_MODEL = Verdict(
    code="no_model",
    ending=Ending.REFUSED,
    condition=Condition.OUR_CONFIG,
    sentence_key="config.no_model",
)
HISTORY_UNREADABLE = Verdict(
    code="history_unreadable",
    ending=Ending.INTERRUPTED,
    condition=Condition.OUR_BUG,
    transient=True,
    sentence_key="round.history",
)


class HistoryUnreadableError(Exception):
    """The conversation cannot be read, and is not answered on what is left of it."""


@dataclass(frozen=True, slots=True)
class Brief:
    """One round's task. Without an endpoint, `problem` says what is in the way.

    `context_window` is what the model can read, in tokens, if that is declared;
    `override` what an operator said of requests to it.
    """

    place: Place
    locale: str
    model: str
    messages: list[Message]
    # What this round has already exchanged with tools, and written; empty at first.
    exchanges: list[Exchange]
    written: Folded
    toolset: Toolset
    attended: bool
    is_practice: bool
    keeps_cut: bool
    is_buffered: bool
    endpoint: Endpoint | None
    key: Key | None
    problem: Verdict | None
    context_window: int | None = None
    override: Override = field(default_factory=Override)


def claim(round_id: int, worker: str) -> bool:
    """Claim a queued round; False when it is not to be had.

    A round that was stopped while it waited ends here, without a request.
    """
    if ledger.end_if_stopped_unclaimed(round_id):
        return False
    return ledger.claim_round(round_id, worker)


def read(round_id: int) -> Brief:
    """Read the brief of a claimed round.

    Raises:
        HistoryUnreadableError: the database does not give the conversation (B12).
    """
    try:
        round_ = Round.objects.select_related(
            "thread", "model__gateway", "agent", "user_cell", "answer_cell"
        ).get(pk=round_id)
        toolset = _toolset(round_)
        messages = messages_of(round_, with_tools=bool(toolset.tools))
        done = exchanges_of([round_id]).get(round_id, [])
        written = take_up(round_.answer_cell)
    except (DatabaseError, InterfaceError) as error:
        raise HistoryUnreadableError from error
    model = round_.model
    gateway = default_gateway() if model is None else model.gateway
    endpoint, key, problem = _endpoint(round_, gateway)
    return Brief(
        place=Place(
            round_.pk,
            round_.thread_id,
            round_.thread.owner_id,
            round_.user_cell_id,
            round_.answer_cell_id,
        ),
        locale=round_.locale,
        model=_wire_id(round_),
        messages=messages,
        exchanges=done,
        written=written,
        toolset=toolset,
        attended=round_.attended,
        is_practice=gateway is not None and gateway.is_practice,
        keeps_cut=round_.agent is not None
        and round_.agent.cut_policy == Agent.CutPolicy.KEEP,
        is_buffered=round_.is_buffered,
        endpoint=endpoint,
        key=key,
        problem=problem,
        context_window=None if model is None else model.context_window,
        override=Override() if model is None else model.override,
    )


def _toolset(round_: Round) -> Toolset:
    """The tools that are offered: only to a model that is known to use them."""
    model = round_.model
    gateway = default_gateway() if model is None else model.gateway
    is_practice = gateway is not None and gateway.is_practice
    if is_practice or (model is not None and bool(model.uses_tools)):
        return toolset_for(round_.agent)
    return Toolset()


def _endpoint(
    round_: Round, gateway: Gateway | None
) -> tuple[Endpoint | None, Key | None, Verdict | None]:
    """Return where the model is asked and with which key, or what is in the way.

    Nothing is sent without a key except to this network (G16), nor with a key
    that the gateway refused a while ago (G12).
    """
    endpoint = endpoint_of(round_.model)
    if endpoint is None or gateway is None:
        is_any = offered_models().exists()
        return None, None, _missing("model_not_found") if is_any else NO_MODEL
    if not _wire_id(round_) and gateway.slug != ENVIRONMENT:
        # The gateway that the environment names may have a model of its own, and
        # where it cannot be reached, that is what is to be said.
        return None, None, NO_MODEL
    if not endpoint.api_key and not endpoint.is_local:
        return None, None, _missing("missing_key")
    key = keyhealth.key_of(gateway, endpoint, _wire_id(round_))
    problem = None if key is None else keyhealth.refusal(key)
    return (endpoint if problem is None else None), key, problem


def _wire_id(round_: Round) -> str:
    return round_.model_requested if round_.model is None else round_.model.wire_id


def _missing(code: str) -> Verdict:
    error = ERRORS[code]
    return Verdict(
        code=error.code,
        ending=Ending.REFUSED,
        condition=Condition.OUR_CONFIG,
        sentence_key=error.sentence_key,
    )
