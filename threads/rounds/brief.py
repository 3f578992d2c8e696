"""What a runner needs to know of a round, read in one go when it is claimed."""

from dataclasses import dataclass, field, replace

from django.db import DatabaseError, InterfaceError

from threads.core.faults import Condition, Ending, Verdict
from threads.core.quirks import Override
from threads.core.retry import Action
from threads.core.table import ERRORS
from threads.endpoints import (
    ENVIRONMENT,
    default_gateway,
    endpoint_of,
    models_of,
    offered_models,
)
from threads.gateway.client import Endpoint
from threads.models import Agent, Gateway, LanguageModel, Round, Route
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

    Of a `route` it is what the first of its models is asked, and `others` is the
    same for those after it, as far as they can be asked.
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
    model_id: int | None = None
    route: Route | None = None
    others: tuple["Brief", ...] = ()


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
            "thread", "model__gateway", "route", "agent", "user_cell", "answer_cell"
        ).get(pk=round_id)
        common = _common(round_)
        briefs = [_brief(round_, model, common) for model in _models(round_, common)]
    except (DatabaseError, InterfaceError) as error:
        raise HistoryUnreadableError from error
    # A model of a route that cannot be asked is passed over before anything is sent.
    usable = [brief for brief in briefs if brief.endpoint is not None]
    first, *others = usable or briefs[:1]
    return replace(first, others=tuple(others))


@dataclass(frozen=True, slots=True)
class Common:
    """What every model of a round is told alike."""

    exchanges: list[Exchange]
    written: Folded
    toolset: Toolset
    with_tools: list[Message]
    words_only: list[Message]


def _common(round_: Round) -> Common:
    toolset = toolset_for(round_.agent)
    return Common(
        exchanges=exchanges_of([round_.pk]).get(round_.pk, []),
        written=take_up(round_.answer_cell),
        toolset=toolset,
        with_tools=messages_of(round_, with_tools=True),
        words_only=messages_of(round_, with_tools=False),
    )


def _models(round_: Round, common: Common) -> list[LanguageModel | None]:
    """The models that the round may ask: its own; of a route, those that are left.

    A round that is gone on with asks none that it has left behind, and no other one
    once a model has asked for tools.
    """
    if round_.route is None or common.exchanges:
        return [round_.model]
    models = list[LanguageModel | None](models_of(round_.route))
    last = round_.attempts.order_by("-call", "-attempt").first()
    if last is None:
        return models or [round_.model]
    if round_.model not in models:
        return [round_.model]
    begin = models.index(round_.model) + (last.retry_decision == Action.FALLBACK)
    return models[begin:] or [round_.model]


def _brief(round_: Round, model: LanguageModel | None, common: Common) -> Brief:
    """What one model is asked; tools only if it is known to use them."""
    gateway = default_gateway() if model is None else model.gateway
    is_practice = gateway is not None and gateway.is_practice
    uses_tools = is_practice or (model is not None and bool(model.uses_tools))
    # A gateway may refuse what was exchanged with tools where none are offered.
    offers_tools = uses_tools and bool(common.toolset.tools)
    wire_id = round_.model_requested if model is None else model.wire_id
    endpoint, key, problem = _endpoint(model, wire_id, gateway)
    return Brief(
        place=Place(
            round_.pk,
            round_.thread_id,
            round_.thread.owner_id,
            round_.user_cell_id,
            round_.answer_cell_id,
        ),
        locale=round_.locale,
        model=wire_id,
        messages=common.with_tools if offers_tools else common.words_only,
        exchanges=common.exchanges,
        written=common.written,
        toolset=common.toolset if offers_tools else Toolset(),
        attended=round_.attended,
        is_practice=is_practice,
        keeps_cut=round_.agent is not None
        and round_.agent.cut_policy == Agent.CutPolicy.KEEP,
        is_buffered=round_.is_buffered,
        endpoint=endpoint,
        key=key,
        problem=problem,
        context_window=None if model is None else model.context_window,
        override=Override() if model is None else model.override,
        model_id=None if model is None else model.pk,
        route=round_.route,
    )


def _endpoint(
    model: LanguageModel | None, wire_id: str, gateway: Gateway | None
) -> tuple[Endpoint | None, Key | None, Verdict | None]:
    """Return where the model is asked and with which key, or what is in the way.

    Nothing is sent without a key except to this network (G16), nor with a key
    that the gateway refused a while ago (G12).
    """
    endpoint = endpoint_of(model)
    if endpoint is None or gateway is None:
        is_any = offered_models().exists()
        return None, None, _missing("model_not_found") if is_any else NO_MODEL
    if not wire_id and gateway.slug != ENVIRONMENT:
        # The gateway that the environment names may have a model of its own, and
        # where it cannot be reached, that is what is to be said.
        return None, None, NO_MODEL
    if not endpoint.api_key and not endpoint.is_local:
        return None, None, _missing("missing_key")
    key = keyhealth.key_of(gateway, endpoint, wire_id)
    problem = None if key is None else keyhealth.refusal(key)
    return (endpoint if problem is None else None), key, problem


def _missing(code: str) -> Verdict:
    error = ERRORS[code]
    return Verdict(
        code=error.code,
        ending=Ending.REFUSED,
        condition=Condition.OUR_CONFIG,
        sentence_key=error.sentence_key,
    )
