"""Every name of the gateways' own lists is classified, whichever field carries it."""

from collections.abc import Mapping

import pytest

from tests.cases import cases
from tests.core.listed import LISTED
from threads.core.faults import Arrival, Facts, Verdict, classify
from threads.core.names import (
    FAMILIES,
    LIMIT_SOURCES,
    NAMES,
    ROW_OF_NAME,
    ROW_OF_WEAK_NAME,
    WEAK_NAMES,
    plain,
)
from threads.core.table import ERRORS

LISTS = [
    (name, status, code)
    for names in LISTED.values()
    for name, (status, code) in names.items()
]

FIELDS = ("code", "type", "error_type", "metadata", "availability", "skin", "flat")


def body_with(field: str, name: str) -> Mapping[str, object]:
    """An error that carries the name where gateways do."""
    said = {"message": "Provider returned error"}
    match field:
        case "metadata":
            return {"error": {**said, "metadata": {"error_type": name}}}
        case "availability":
            return {"error": {**said, "availability": {"code": name}}}
        case "skin":
            return {"error": {**said, "code": "server_error"}, "error_type": name}
        case "flat":
            return {**said, "code": name}
        case _:
            return {"error": {**said, field: name}}


def thrown(body: object, status: int) -> Verdict:
    return classify(Facts(Arrival.STATUS, http_status=status, body=body))


def streamed(body: object, status: int | None = None) -> Verdict:
    return classify(Facts(Arrival.STREAMED_ERROR, http_status=status, body=body))


@cases(("name", "status", "code"), LISTS)
def test_a_listed_name_is_classified_whichever_field_carries_it(
    name: str, status: int, code: str
) -> None:
    for field in FIELDS:
        assert (field, thrown(body_with(field, name), status).code) == (field, code)


@cases(("name", "status", "code"), LISTS)
def test_a_listed_name_is_enough_without_a_status(
    name: str, status: int, code: str
) -> None:
    for field in set(FIELDS) - {"skin"}:
        verdict = streamed(body_with(field, name))

        assert (field, verdict.code) == (field, ALONE.get(name, code))


ALONE = {"validation": "http_400"}
"""Names that say less than the status with which they come."""


@cases(("name", "status", "code"), LISTS)
def test_the_streamed_form_with_its_status_means_the_same(
    name: str, status: int, code: str
) -> None:
    body = body_with("type", name)

    one, other = thrown(body, status), streamed(body, status)

    assert (one.code, one.condition, one.key_effect) == (
        other.code,
        other.condition,
        other.key_effect,
    )
    assert other.code == code


def test_names_lead_to_rows_that_exist() -> None:
    rows = {*NAMES, *WEAK_NAMES, *LIMIT_SOURCES.values(), *(row for _, row in FAMILIES)}

    assert rows <= set(ERRORS)


def test_a_name_leads_to_one_row() -> None:
    strong = [plain(name) for names in NAMES.values() for name in names]
    weak = [plain(name) for names in WEAK_NAMES.values() for name in names]

    assert len(strong + weak) == len({*strong, *weak})
    assert all(strong + weak)


@cases(("name", "row"), [*ROW_OF_NAME.items(), *ROW_OF_WEAK_NAME.items()])
def test_every_name_is_enough_in_any_writing(name: str, row: str) -> None:
    for written in (name, name.upper(), f"{name}Error"):
        verdict = streamed({"error": {"type": written}})

        assert verdict.code == ERRORS[row].code


@cases("status", [400, 401, 402, 403, 404, 409, 413, 422])
@cases("name", ["rate_limit_exceeded", "overloaded", "timeout", "server_error"])
def test_a_name_that_says_try_again_is_not_believed_beside_a_refusal(
    status: int, name: str
) -> None:
    assert not thrown({"error": {"code": name}}, status).transient


@pytest.mark.parametrize("status", [408, 429])
@pytest.mark.parametrize(
    "name", ["content_policy_violation", "guardrail_blocked", "refusal"]
)
def test_a_name_of_a_block_is_not_believed_beside_a_busy_gateway(
    status: int, name: str
) -> None:
    verdict = thrown({"error": {"code": name}}, status)

    assert verdict.code == f"http_{status}"


def test_the_most_specific_name_decides() -> None:
    error = {
        "code": "server_error",
        "type": "api_error",
        "metadata": {"error_type": "authentication"},
        "availability": {"code": "model_deprecated"},
    }

    assert streamed({"error": error}).code == "model_not_found"
    del error["availability"]
    assert streamed({"error": error}).code == "http_401"
    del error["metadata"]
    assert streamed({"error": error}).code == "http_5xx"


def test_an_unknown_name_says_nothing() -> None:
    for name in ("new_api_error", "requests", "modelError", "E1234", "ok"):
        verdict = streamed({"error": {"type": name}})

        assert (verdict.code, verdict.transient) == ("stream_fault_unknown", False)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"message": "Too many tokens, please wait before trying again.", "__type": "ThrottlingException"}, "http_429"),
        ({"message": "Too many tokens, please wait before trying again."}, "http_429"),
        ({"message": "Too many tokens in the prompt."}, "context_too_long"),
        ({"message": "Service tier capacity exceeded for this model.", "type": "service_tier_capacity_exceeded", "code": "3505"}, "overloaded"),
        ({"errors": [{"code": 3040, "message": "Capacity temporarily exceeded, please try again."}]}, "overloaded"),
        ({"error": {"code": "HTTP_503", "message": "unavailable upstream"}}, "overloaded"),
        ({"error": "The server is currently busy."}, "overloaded"),
    ],
)  # fmt: skip
def test_a_capacity_that_is_used_up_for_now_passes(body: object, code: str) -> None:
    assert streamed(body).code == code
