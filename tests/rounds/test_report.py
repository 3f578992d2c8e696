"""What a round used and cost: summed from the ledger, and unknown where a part is."""

from dataclasses import fields, replace
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Reset, Script, chunk
from tests.rounds.helpers import answered, open_now
from threads.gateway.calls import AttemptRecord
from threads.models import CallAttempt, LanguageModel, Round, Thread
from threads.rounds import ledger
from threads.rounds.report import report

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]

UNKNOWN = {"input": None, "output": None, "source": "unknown"}


def counted(read: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": read, "completion_tokens": written}


def whole(usage: dict[str, int] | None, **more: Any) -> Script:
    told = [chunk(usage=usage, **more)] if usage else []
    return Script(
        chunk(content="Good day.", **more), chunk(finish="stop", **more), *told, DONE
    )


async def priced(gateway: FakeGateway, *prices: str | None) -> LanguageModel:
    """The fake gateway's model, at prices for tokens read and written."""
    model = await model_at("fake-model", gateway.base_url)
    model.input_price, model.output_price = (
        None if price is None else Decimal(price) for price in prices
    )
    await model.asave()
    return model


@sync_to_async
def told(round_: Round) -> dict[str, Any]:
    return report(Round.objects.select_related("answer_cell").get(pk=round_.pk))


@pytest.mark.parametrize(
    ("prices", "usage", "cost"),
    [
        (("2", "10"), counted(1000, 500), "0.007"),
        (("0", "0"), counted(1000, 500), "0"),
        (("0.000001", "10"), counted(1, 0), "0.000000000001"),
        (("2", "10"), None, None),
        (("2", "10"), {"prompt_tokens": 1000}, None),
        (("2", None), counted(1000, 500), None),
        ((None, "10"), counted(1000, 500), None),
    ],
)
async def test_a_cost_is_the_provider_s_count_at_known_prices_or_unknown(
    thread: Thread,
    gateway: FakeGateway,
    prices: tuple[str | None, str | None],
    usage: dict[str, int] | None,
    cost: str | None,
) -> None:
    gateway.play(whole(usage))
    cell = await answered(thread, await priced(gateway, *prices))

    attempt = await CallAttempt.objects.aget(round=cell.round)

    assert attempt.cost == (None if cost is None else Decimal(cost))
    assert (await told(cell.round))["cost"] == (None if cost is None else float(cost))


async def test_what_another_model_costs_than_the_one_asked_is_unknown(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(whole(counted(1000, 500), model="other/model"))

    cell = await answered(thread, await priced(gateway, "2", "10"))

    said = await told(cell.round)
    assert (said["model_served"], said["cost"]) == ("other/model", None)
    assert said["usage"] == {"input": 1000, "output": 500, "source": "provider"}


async def test_a_cost_is_written_once_and_not_without_a_model(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(whole(counted(1000, 500)))
    model = await priced(gateway, "2", "10")
    cell = await answered(thread, model)
    attempts = CallAttempt.objects.filter(round=cell.round).order_by("attempt")
    first = await attempts.aget()
    names = [field.name for field in fields(AttemptRecord)]
    record = AttemptRecord(**{name: getattr(first, name) for name in names})

    await LanguageModel.objects.filter(pk=model.pk).aupdate(input_price=200)
    await sync_to_async(ledger.record_attempt)(cell.round.pk, record)
    await model.adelete()
    second = replace(record, attempt=2)
    await sync_to_async(ledger.record_attempt)(cell.round.pk, second)

    assert [row.cost async for row in attempts] == [Decimal("0.007"), None]


async def test_a_cut_attempt_and_the_one_after_it_are_both_counted(
    thread: Thread, gateway: FakeGateway, settings: Settings
) -> None:
    settings.CHAT_CALL_RETRIES, settings.CHAT_RETRY_WAITS = 1, "0"
    cut = Script(chunk(content="Half a sen", usage=counted(5, 40)), Reset())
    gateway.play(cut, whole(counted(20, 100)))

    cell = await answered(thread, await priced(gateway, "1", "1"))

    said = await told(cell.round)
    assert said["usage"] == {"input": 25, "output": 140, "source": "provider"}
    assert said["cost"] == pytest.approx(165 / 1_000_000, rel=1e-9)
    assert [(row["outcome"], row["retry_decision"], row["retry_reason"]) for row in said["calls"]] == [
        ("faulted", "regenerate", None),
        ("completed", "none", "whole"),
    ]  # fmt: skip


async def test_of_a_cut_attempt_without_a_count_the_tokens_are_estimated_and_no_money(
    thread: Thread, gateway: FakeGateway, settings: Settings
) -> None:
    settings.CHAT_CALL_RETRIES, settings.CHAT_RETRY_WAITS = 1, "0"
    gateway.play(Script(chunk(content="Half a sen"), Reset()), whole(counted(20, 100)))

    cell = await answered(thread, await priced(gateway, "1", "1"))

    said = await told(cell.round)
    sources = [row["usage"]["source"] for row in said["calls"]]
    assert sources == ["estimated", "provider"]
    assert said["usage"]["source"] == "estimated"
    assert said["usage"]["output"] > 100
    assert said["cost"] is None


@pytest.mark.parametrize(
    ("parts", "usage", "cost"),
    [
        ([], UNKNOWN, None),
        ([(45, 0, "provider", "0.5"), (100, 20, "provider", "0.25")], {"input": 145, "output": 20, "source": "provider"}, 0.75),
        ([(45, 0, "estimated", None), (100, 20, "provider", "0.25")], {"input": 145, "output": 20, "source": "estimated"}, None),
        ([(None, None, "unknown", None), (100, 20, "provider", "0.25")], UNKNOWN, None),
        ([(45, None, "provider", None), (100, 20, "provider", "0.25")], {"input": 145, "output": None, "source": "provider"}, None),
        ([(0, 0, "provider", "0")], {"input": 0, "output": 0, "source": "provider"}, 0.0),
    ],
)  # fmt: skip
def test_one_unknown_part_makes_a_sum_unknown(
    thread: Thread,
    steady: LanguageModel,
    parts: list[tuple[int | None, int | None, str, str | None]],
    usage: dict[str, Any],
    cost: float | None,
) -> None:
    round_ = open_now(thread, steady)
    for number, (read, written, source, paid) in enumerate(parts, 1):
        CallAttempt.objects.create(
            round=round_,
            call=1,
            attempt=number,
            input_tokens=read,
            output_tokens=written,
            usage_source=source,
            cost=paid,
        )

    said = report(round_)

    assert (said["usage"], said["cost"]) == (usage, cost)
