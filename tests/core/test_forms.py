"""One error means the same thrown at us and streamed to us, whatever it carries."""

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tests.core.dialects import ROWS
from tests.core.listed import LISTED
from tests.core.properties import steady
from tests.core.row import Row
from threads.core.faults import (
    Arrival,
    Condition,
    Ending,
    Facts,
    KeyEffect,
    Verdict,
    classify,
)
from threads.core.names import LIMIT_SOURCES, NAMES, WEAK_NAMES
from threads.core.table import UNKNOWN_CODES
from threads.sentences import ENGLISH

AGAIN = "end your message again"

ALL_NAMES = sorted(
    {name for names in (NAMES | WEAK_NAMES).values() for name in names}
    | {name for names in LISTED.values() for name in names}
)
SAID = sorted(
    {str(row.error.get("message")) for row in ROWS}
    | {"Error code: 429", "[403] no", "502 Bad Gateway", "Connection error.", "x"}
)
STATUSES = [300, 302, 400, 401, 402, 403, 404, 408, 409, 410, 412, 413, 418, 422]
STATUSES += [424, 429, 451, 499, 500, 501, 502, 503, 504, 520, 524, 529, 599]


@dataclass(frozen=True)
class Failure:
    """An error, in all that one can carry."""

    status: int
    code: str | None
    kind: str | None
    words: str
    retryable: bool | None
    limit_source: str | None
    is_moderated: bool

    def body(self, **more: object) -> dict[str, object]:
        metadata: dict[str, object] = {}
        if self.limit_source is not None:
            metadata["limit_source"] = self.limit_source
        if self.is_moderated:
            metadata["flagged_input"] = "x"
        error = {
            "message": self.words,
            "code": self.code,
            "type": self.kind,
            "metadata": metadata,
            "retryable": self.retryable,
        }
        return {"error": error | more}


names = st.none() | st.sampled_from(ALL_NAMES)


def failures(statuses: list[int]) -> st.SearchStrategy[Failure]:
    return st.builds(
        Failure,
        status=st.sampled_from(statuses),
        code=names,
        kind=names,
        words=st.sampled_from(SAID) | st.text(max_size=30),
        retryable=st.sampled_from([None, None, True, False]),
        limit_source=st.none() | st.sampled_from([*LIMIT_SOURCES, "new"]),
        is_moderated=st.booleans(),
    )


def agree(one: Verdict, other: Verdict) -> None:
    """Equal but for the name of the ending: refused at the door, faulted inside."""
    faulted = {Ending.REFUSED, Ending.FAULTED}
    assert one.ending is other.ending or {one.ending, other.ending} == faulted
    assert one == replace(other, ending=one.ending)


def is_sound(verdict: Verdict) -> None:
    """What holds for every verdict on an error (B5, B6, G15)."""
    assert verdict.transient is (AGAIN in ENGLISH[verdict.sentence_key])
    if verdict.key_effect is not KeyEffect.NONE:
        assert verdict.condition is Condition.ACCOUNT_KEY
    if verdict.condition in (
        Condition.REQUEST,
        Condition.OUR_CONFIG,
        Condition.OUR_BUG,
    ):
        assert not verdict.transient
    if verdict.code in UNKNOWN_CODES:
        assert (verdict.condition, verdict.transient) == (Condition.UNKNOWN, False)


@steady
@given(failures(STATUSES))
def test_a_streamed_error_means_what_the_refusal_means(failure: Failure) -> None:
    thrown = classify(
        Facts(Arrival.STATUS, http_status=failure.status, body=failure.body())
    )

    is_sound(thrown)
    for streamed in (
        Facts(Arrival.STREAMED_ERROR, body=failure.body(status_code=failure.status)),
        Facts(Arrival.STREAMED_ERROR, http_status=failure.status, body=failure.body()),
        Facts(Arrival.NOT_A_STREAM, body=failure.body(http_status=str(failure.status))),
        Facts(
            Arrival.ENDED,
            http_status=failure.status,
            body=failure.body(),
            has_text=True,
        ),
        Facts(Arrival.BROKEN, body=failure.body(status_code=failure.status)),
    ):
        agree(classify(streamed), thrown)


@steady
@given(failures(STATUSES))
def test_what_comes_without_a_status_is_sound_too(failure: Failure) -> None:
    verdict = classify(Facts(Arrival.STREAMED_ERROR, body=failure.body()))

    is_sound(verdict)


@steady
@given(failures([408, 429]))
def test_a_busy_gateway_never_blocks(failure: Failure) -> None:
    verdict = classify(
        Facts(Arrival.STATUS, http_status=failure.status, body=failure.body())
    )

    assert verdict.code != "request_blocked"


@steady
@given(failures([status for status in STATUSES if status >= 500]))
def test_words_alone_never_make_a_block_of_a_provider_fault(failure: Failure) -> None:
    unnamed = replace(failure, code=None, kind=None, limit_source=None)

    verdict = classify(
        Facts(Arrival.STATUS, http_status=failure.status, body=unnamed.body())
    )

    assert verdict.condition is Condition.PROVIDER


@cases("row", ROWS, ids=[f"{n}-{row.status}-{row.code}" for n, row in enumerate(ROWS)])
def test_every_dialect_means_the_same_wherever_it_stands(row: Row) -> None:
    thrown = classify(
        Facts(Arrival.STATUS, http_status=row.status, body={"error": row.error})
    )
    beside = {"error": {**row.error, "status_code": row.status}}

    is_sound(thrown)
    for arrival in (
        Arrival.STREAMED_ERROR,
        Arrival.NOT_A_STREAM,
        Arrival.ENDED,
        Arrival.BROKEN,
        Arrival.SILENT_MID,
        Arrival.UNREADABLE,
    ):
        agree(classify(Facts(arrival, body=beside)), thrown)
