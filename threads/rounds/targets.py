"""What each model of a round is sent, call by call."""

from threads.conf import Bounds
from threads.core.faults import Verdict
from threads.core.quirks import quirks_of
from threads.gateway.calls import CallRequest, Target
from threads.gateway.client import Endpoint
from threads.rounds.brief import Brief
from threads.rounds.exchanges import Exchange
from threads.rounds.progress import call_bounds
from threads.rounds.window import Window


class Targets:
    """The models that a round may ask.

    Only the first call of a round may go on to another model: one that has
    answered goes on with its own tools (design section 4).
    """

    def __init__(self, brief: Brief, endpoint: Endpoint, bounds: Bounds) -> None:
        self._place = 0
        self._endpoint = endpoint
        self._bounds = bounds
        self._briefs = (brief, *brief.others)
        self._windows = [Window(each) for each in self._briefs]
        # What each is told: the conversation, and the exchanges so far.
        self._messages = [list(each.messages) for each in self._briefs]
        self._told = [0] * len(self._briefs)
        # The places of those that the call under way may ask.
        self._lineup: list[int] = []

    async def of_call(
        self, call: int, exchanges: list[Exchange]
    ) -> list[Target] | Verdict:
        """Return what may be asked in a call, in order; the verdict if nothing may.

        A model that cannot read so much is passed over where another one can (F10).
        """
        targets, self._lineup = list[Target](), []
        problem: Verdict | None = None
        for place in range(len(self._briefs)) if call == 1 else [self._place]:
            target = await self._target(place, call, exchanges)
            if isinstance(target, Verdict):
                problem = problem or target
            else:
                targets.append(target)
                self._lineup.append(place)
        if problem is not None and not targets:
            return problem
        self.advance(0)
        return targets

    @property
    def asked(self) -> Brief:
        """What the model is asked whose turn it is."""
        return self._briefs[self._place]

    def advance(self, place: int) -> None:
        """Note which target of the call is asked now."""
        self._place = self._lineup[place]

    async def _target(
        self, place: int, call: int, exchanges: list[Exchange]
    ) -> Target | Verdict:
        brief, window = self._briefs[place], self._windows[place]
        endpoint = brief.endpoint or self._endpoint
        with_reasoning = quirks_of(brief.model, endpoint.host).sends_reasoning_back
        messages = self._messages[place]
        for exchange in exchanges[self._told[place] :]:
            messages += exchange.messages(with_reasoning=with_reasoning)
        self._told[place] = len(exchanges)
        if (too_long := await window.fit(messages)) is not None:
            return too_long
        request = CallRequest(
            endpoint=endpoint,
            model=brief.model,
            messages=window.messages,
            tools=brief.toolset.offers(),
            call=call,
            override=brief.override,
        )
        return Target(request, call_bounds(brief, self._bounds))
