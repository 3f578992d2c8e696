"""Sentences and names in every language: whole, equal in what they name, editable."""

import json
import re
from pathlib import Path
from string import Formatter

import pytest
from django.conf import settings
from django.utils import translation
from pytest_django import Settings

import threads
from tests.cases import cases
from threads.core.table import ERRORS, Error
from threads.models import Cell, LanguageModel, Sentence
from threads.practice.models import PRACTICE_MODELS
from threads.provision import (
    FIXTURES,
    PRACTICE_ROUTE,
    follow_environment,
    load_catalogue,
)
from threads.sentences import (
    ADDENDA,
    ENGLISH,
    PLACEHOLDERS,
    sentence,
    sentence_for,
    shipped,
)

LANGUAGES = [code for code, _ in settings.LANGUAGES]
OTHERS = [code for code in LANGUAGES if code != "en"]

SEND_AGAIN = {
    "en": "send your message again",
    "de": "noch einmal",
    "fr": "renvoyez votre message",
    "es": "vuelve a enviar tu mensaje",
    "it": "di nuovo",
    "pt-br": "novamente",
    "nl": "opnieuw",
    "pl": "jeszcze raz",
    "uk": "ще раз",
    "tr": "yeniden gönderin",
    "ja": "もう一度送信",
    "ko": "다시 보내",
    "zh-hans": "重新发送",
    "ar": "أعد إرسال رسالتك",
}
"""How each language says "send your message again", in lower case."""

SENT_AGAIN_THOUGH_NO_CODE_IS_TRANSIENT = {
    "round.cap_silent",
    "round.worker_lost",
    "round.worker_never_started",
    "round.not_decided",
    "round.history",
    "internal.error",
}
"""Our own endings after which the same message may well be answered."""

KEY_HEALTH_WORDS = re.compile(
    r"rate.?limit|key.?limit|\bcredits?\b|\bquotas?\b|unauthori[sz]ed|api.?key|\bkeys?\b"
)


def words(key: str, language: str) -> str:
    """The sentence of a release, with its placeholders."""
    return ENGLISH[key] if language == "en" else shipped()[key][language]


def named(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_every_language_of_the_design_is_offered() -> None:
    assert set(LANGUAGES) == {
        *("en", "de", "fr", "es", "it", "pt-br", "nl"),
        *("pl", "uk", "tr", "ja", "ko", "zh-hans", "ar"),
    }


def test_every_key_in_the_source_is_a_sentence_and_every_sentence_is_used() -> None:
    source = "".join(
        path.read_text("utf-8")
        for path in Path(threads.__path__[0]).rglob("*.py")
        if path.name != "sentences.py"
    )
    used = set(
        re.findall(
            r'"((?:stream|answer|request|config|account|provider|net'
            r'|round|internal)\.[a-z_]+)"',
            source,
        )
    )
    used -= {"round.started", "round.ended"}  # notices between processes

    assert used | set(ADDENDA.values()) == set(ENGLISH)
    assert set(shipped()) == set(ENGLISH)


@pytest.mark.parametrize("language", LANGUAGES)
@cases("key", ENGLISH)
def test_a_sentence_says_the_same_in_every_language(key: str, language: str) -> None:
    text = words(key, language)

    assert text.strip() == text
    assert text
    assert named(text) == named(ENGLISH[key])
    assert named(text) <= set(PLACEHOLDERS)
    assert "!" not in text
    assert KEY_HEALTH_WORDS.search(text.lower()) is None


@pytest.mark.parametrize("language", LANGUAGES)
@cases("error", ERRORS.values(), ids=ERRORS)
def test_sending_again_is_proposed_where_it_can_help_and_nowhere_else(
    error: Error, language: str
) -> None:
    proposed = SEND_AGAIN[language] in words(error.sentence_key, language).lower()

    assert proposed is error.transient


@pytest.mark.parametrize("language", LANGUAGES)
def test_our_own_endings_propose_it_in_every_language_alike(language: str) -> None:
    proposing = {
        key for key in ENGLISH if SEND_AGAIN[language] in words(key, language).lower()
    }
    of_the_table = {error.sentence_key for error in ERRORS.values()}

    assert {
        key for key in proposing - of_the_table if not key.endswith("_open")
    } == SENT_AGAIN_THOUGH_NO_CODE_IS_TRANSIENT


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_cap_is_told_in_the_same_first_sentence(language: str) -> None:
    firsts = {
        words(key, language).partition("{minutes}")[0]
        for key in ENGLISH
        if key.startswith("round.cap")
    }

    assert len(firsts) == 1
    if language == "en":
        assert firsts == {"AI streaming exceeded the maximum round duration of "}


@pytest.mark.parametrize("language", OTHERS)
def test_what_is_practised_with_has_a_name_and_a_description(language: str) -> None:
    fixture = json.loads((FIXTURES / "practice.json").read_text("utf-8"))

    practised = [*(model.wire_id for model in PRACTICE_MODELS), PRACTICE_ROUTE]
    assert set(fixture) == set(practised)
    texts = [fixture[each][language] for each in practised]
    assert all(text["name"] and text["description"] for text in texts)
    assert len({text["name"] for text in texts}) == len(texts)


@pytest.mark.django_db
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_is_filled_in_the_language_that_is_asked_for(language: str) -> None:
    text = sentence("stream.truncated", {"model": "Owl"}, language)

    assert text == words("stream.truncated", language).format(model="Owl")


@pytest.mark.django_db
def test_an_operators_words_stand_before_the_shipped_ones_in_their_language() -> None:
    load_catalogue()
    Sentence.objects.filter(key="stream.empty").update(text_de="{model} schwieg.")

    assert sentence("stream.empty", {"model": "Owl"}, "de") == "Owl schwieg."
    assert "Owl" in sentence("stream.empty", {"model": "Owl"}, "fr")
    assert sentence("stream.empty", {"model": "Owl"}, "fr") != "Owl schwieg."


@pytest.mark.django_db
@pytest.mark.parametrize(
    "broken",
    ["{modell}", "{model.__class__}", "{model!r}", "{model:>9}", "{", "{0}", "{}"],
)
def test_words_with_a_broken_placeholder_fall_back_to_the_shipped_ones(
    broken: str,
) -> None:
    load_catalogue()
    Sentence.objects.filter(key="stream.empty").update(text_de=broken)

    text = sentence("stream.empty", {"model": "Owl"}, "de")

    assert text == words("stream.empty", "de").format(model="Owl")


@pytest.mark.django_db
def test_a_language_without_a_column_gets_the_english_words() -> None:
    text = sentence("stream.empty", {"model": "Owl"}, "tlh")

    assert text == ENGLISH["stream.empty"].format(model="Owl")


@pytest.mark.django_db
def test_loading_the_catalogue_again_keeps_what_was_edited() -> None:
    load_catalogue()
    Sentence.objects.filter(key="stream.empty").update(text_de="Stille.")

    load_catalogue()

    assert Sentence.objects.filter(key="stream.empty", text_de="Stille.").exists()
    assert Sentence.objects.count() == len(ENGLISH)


@pytest.mark.django_db
def test_a_key_that_is_gone_is_never_shown() -> None:
    text = sentence("stream.of_another_release", {"model": "Owl"}, "de")

    assert text == ENGLISH["stream.faulted_neutral"].format(model="Owl")


@pytest.mark.django_db
def test_a_reader_whose_language_has_no_such_sentence_reads_the_frozen_one() -> None:
    cell = Cell(
        sentence_key="stream.of_another_release",
        sentence_params={"model": "Owl"},
        sentence="Die Verbindung zu Owl endete.",
    )

    assert sentence_for(cell, "ja") == "Die Verbindung zu Owl endete."


@pytest.mark.django_db
def test_a_site_that_gains_a_language_names_its_practice_models_in_it(
    settings: Settings,
) -> None:
    settings.OPENAI_BASE_URL = settings.OPENAI_API_KEY = ""
    follow_environment()
    steady = LanguageModel.objects.filter(wire_id="practice/steady")
    steady.update(name_ja=None, description_ja="", name_de="Ruhig")

    follow_environment()

    row = steady.values("name_ja", "name_en", "description_ja").get()
    with translation.override("ja"):
        assert steady.get().name == row["name_ja"] != row["name_en"]
        assert steady.get().description == row["description_ja"]
    with translation.override("de"):
        assert steady.get().name == "Ruhig"
