"""What gateways said of our keys, and not asking with one that was refused.

How it works. Each attempt's record carries what the classifier read of the key;
nothing else is ever consulted, and no sentence of ours (requirements G11, G15).
`note` writes it in the transaction of the attempt's row, so it stands before the
round ends. While a key is marked bad for a model, `refusal` answers in the
gateway's place and nothing is sent. Other models are still asked: on one gateway
a refusal may be an upstream's, and one such model must not silence the rest.
A mark goes when the key proves itself, with whatever model, in a call that began
after the mark was set (G14), when an operator clears it, or when it expires: then
the next call is tried, and a fresh refusal renews it (G13).
"""

import logging
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac

from threads.core.faults import WHOLE, Condition, Ending, KeyEffect, Verdict
from threads.gateway.calls import AttemptRecord
from threads.gateway.client import Endpoint
from threads.models import Gateway, KeyHealth

logger = logging.getLogger(__name__)

KEY_FAILURE_TTL_SECONDS = 900
"""How long a mark holds (requirements, constants)."""

MARKERS = {
    KeyEffect.BAD: "KEY_REJECTED",
    KeyEffect.EXHAUSTED: "KEY_EXHAUSTED",
    KeyEffect.THROTTLED: "KEY_THROTTLED",
}


@dataclass(frozen=True, slots=True)
class Key:
    """The key that a model is asked with: all of it but the key itself."""

    gateway_id: int
    gateway: str
    variable: str
    fingerprint: str
    model: str

    @property
    def rows(self) -> QuerySet[KeyHealth]:
        """What is known of this key, for all models."""
        return KeyHealth.objects.filter(
            gateway_id=self.gateway_id, fingerprint=self.fingerprint
        )


def key_of(gateway: Gateway, endpoint: Endpoint, model: str) -> Key | None:
    """Return the key with which this endpoint is asked for `model`; None without one.

    The fingerprint is keyed with the site's secret and bound to the gateway and
    its address: a short key cannot be guessed from it, and neither another key
    nor another address inherits a mark.
    """
    if not endpoint.api_key:
        return None
    hashed = salted_hmac(
        "threads.keyhealth",
        f"{gateway.pk} {endpoint.base_url} {endpoint.api_key}",
        algorithm="sha256",
    )
    return Key(
        gateway_id=gateway.pk,
        gateway=gateway.slug,
        variable=gateway.key_variable,
        fingerprint=hashed.hexdigest(),
        model=model,
    )


def refusal(key: Key) -> Verdict | None:
    """Return how a round ends whose key is marked bad; None when it may be asked."""
    row = key.rows.filter(
        model=key.model, status=KeyHealth.Status.BAD, expires_at__gt=timezone.now()
    ).first()
    if row is None:
        return None
    logger.warning(
        "KEY_REJECTED gateway=%s model=%s code=%s status=%s sent=no",
        key.gateway,
        key.model,
        row.code,
        row.http_status,
    )
    return Verdict(
        code=row.code,
        ending=Ending.REFUSED,
        condition=Condition.ACCOUNT_KEY,
        sentence_key="account.key_rejected",
        provider_reason=row.provider_reason,
    )


def note(key: Key, record: AttemptRecord) -> None:
    """Keep what one attempt says of the key: a mark, a proof, or nothing."""
    effect = KeyEffect(record.key_effect)
    if effect is not KeyEffect.NONE:
        _mark(key, effect, record)
    elif Ending(record.ending) in WHOLE:
        proven = key.rows.filter(last_seen_at__lt=record.started_at)
        if proven.delete()[0]:
            logger.info("KEY_CLEARED gateway=%s by=call", key.gateway)


def _mark(key: Key, effect: KeyEffect, record: AttemptRecord) -> None:
    now = timezone.now()
    said = {
        "key_variable": key.variable,
        "code": record.code,
        "http_status": record.http_status,
        "provider_reason": record.provider_reason[:400],
        "last_seen_at": now,
        "expires_at": now + timedelta(seconds=KEY_FAILURE_TTL_SECONDS),
    }
    row, is_new = KeyHealth.objects.get_or_create(
        gateway_id=key.gateway_id,
        fingerprint=key.fingerprint,
        model=key.model,
        status=effect.value,
        defaults={"since": now, **said},
    )
    if not is_new:
        KeyHealth.objects.filter(pk=row.pk).update(count=F("count") + 1, **said)
    logger.info(
        "%s gateway=%s model=%s code=%s status=%s",
        MARKERS[effect],
        key.gateway,
        key.model,
        record.code,
        record.http_status,
    )


def clear(rows: QuerySet[KeyHealth]) -> int:
    """Let go of marks because an operator says so; returns how many there were."""
    gateways = list(rows.values_list("gateway__slug", flat=True))
    for gateway in gateways:
        logger.info("KEY_CLEARED gateway=%s by=hand", gateway)
    rows.delete()
    return len(gateways)
