"""Every code has a sentence, and no sentence can be taken for a provider's words."""

import re

import pytest

from tests.cases import cases
from threads.core import wordings
from threads.core.faults import Arrival, Facts, classify
from threads.core.redaction import redacted
from threads.core.table import (
    BLOCKING_FINISH_REASONS,
    ERRORS,
    FINAL_SENTENCE,
    FINISH_REASONS,
    Error,
)
from threads.sentences import ENGLISH, shipped

AGAIN = "end your message again"
"""With a capital where a sentence begins so."""

LANGUAGES = sorted({"en"}.union(*shipped().values()))

PATTERNS = [
    *(wording.pattern for wording in wordings.WORDINGS),
    wordings.CAPS,
    wordings.NAMES_THE_KEY,
    wordings.SAID_STATUS,
    re.compile(r"rate.?limit|key.?limit|\bcredits?\b|\bquotas?\b|unauthori[sz]ed"),
]

STATUSES = [None, 302, 400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 500, 503]


def sentences(language: str) -> dict[str, str]:
    """All that this release says in a language, with its placeholders."""
    if language == "en":
        return ENGLISH
    return {
        key: texts[language] for key, texts in shipped().items() if language in texts
    }


@cases("error", ERRORS.values(), ids=ERRORS)
def test_every_row_has_a_sentence_that_offers_what_the_row_allows(error: Error) -> None:
    sentence = ENGLISH[error.sentence_key]

    assert (AGAIN in sentence) is error.transient


def test_what_a_gateway_calls_final_is_not_to_be_sent_again() -> None:
    assert AGAIN not in ENGLISH[FINAL_SENTENCE]


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_of_ours_matches_any_wording(language: str) -> None:
    for key, sentence in sentences(language).items():
        for pattern in PATTERNS:
            assert pattern.search(sentence.lower()) is None, (key, pattern.pattern)
        assert "[" not in redacted(sentence)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_of_ours_says_nothing_to_the_classifier(language: str) -> None:
    """Not even if a gateway repeats it: every status means what it means alone."""
    for key, sentence in sentences(language).items():
        for status in STATUSES:
            alone = classify(Facts(Arrival.STREAMED_ERROR, http_status=status))
            said = classify(
                Facts(
                    Arrival.STREAMED_ERROR, http_status=status, body={"error": sentence}
                )
            )

            assert (key, said.code, said.condition, said.key_effect) == (
                key,
                alone.code,
                alone.condition,
                alone.key_effect,
            )


def test_every_finish_reason_is_an_end_a_block_or_unknown() -> None:
    assert not BLOCKING_FINISH_REASONS & set(FINISH_REASONS)
    for reason in (*FINISH_REASONS, *BLOCKING_FINISH_REASONS):
        assert reason == reason.lower()


@pytest.mark.parametrize("arrival", Arrival)
def test_every_arrival_has_a_meaning_even_with_nothing_else_known(
    arrival: Arrival,
) -> None:
    verdict = classify(Facts(arrival))

    assert verdict.code in {error.code for error in ERRORS.values()}
    assert verdict.sentence_key in ENGLISH
