"""A gateway that is asked with a key, and what it may say of it."""

from datetime import timedelta

from django.db.models import F

from tests.canaries import KEY
from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Script, chunk, frame, reply
from threads.models import Gateway, KeyHealth, LanguageModel
from threads.rounds import keyhealth

VARIABLE = "SOME_KEY"
"""Where these gateways' key stands; the fixture `key` puts it there."""

WHOLE = Script(chunk(content="Good day."), chunk(finish="stop"), DONE)
REJECTED = reply(
    401, {"error": {"code": "invalid_api_key", "message": f"No such key {KEY}"}}
)
STREAMED = Script(
    chunk(content="Half"), frame({"error": {"code": 401, "message": f"bad {KEY}"}})
)
NO_CREDIT = reply(402, {"error": {"message": "Insufficient credits"}})


async def keyed(gateway: FakeGateway, variable: str = VARIABLE) -> LanguageModel:
    """A model at a gateway that is asked with the key of that variable."""
    model = await model_at("some/model", gateway.base_url)
    # Its log is looked at: one without a window would be told of, once in a process.
    await LanguageModel.objects.filter(pk=model.pk).aupdate(context_window=128_000)
    await Gateway.objects.filter(pk=model.gateway_id).aupdate(key_variable=variable)
    return await LanguageModel.objects.select_related("gateway").aget(pk=model.pk)


async def expire() -> None:
    """Let the time pass that a mark holds."""
    ttl = timedelta(seconds=keyhealth.KEY_FAILURE_TTL_SECONDS)
    await KeyHealth.objects.aupdate(
        **{name: F(name) - ttl for name in ("since", "last_seen_at", "expires_at")}
    )
