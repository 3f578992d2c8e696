"""What it costs to show many answers: as many queries for thirty as for three."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import translation

from tests.rounds.helpers import open_now
from tests.rounds.resubmitting import TRUNCATED, again, ended
from threads.models import LanguageModel, Sentence, Thread
from threads.rounds import pages

pytestmark = pytest.mark.django_db(transaction=True)


def grow(thread: Thread, model: LanguageModel, exchanges: int) -> None:
    """Let answers end badly, each of them twice."""
    for _ in range(exchanges):
        ended(again(ended(open_now(thread, model), TRUNCATED, "Half")), text="Half")


def queries(show: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as captured:
        show()
    return len(captured)


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_long_thread_costs_no_more_queries_than_a_short_one(
    alice: User, thread: Thread, steady: LanguageModel, language: str
) -> None:
    client = Client(headers={"accept-language": language})
    client.force_login(alice)
    where = reverse("thread", args=[thread.pk])

    def page() -> None:
        assert client.get(where).status_code == 200

    def socket() -> None:
        with translation.override(language):
            lack = pages.Lack(newer=True)
            assert pages.read(thread.pk, alice.pk, position=-1, lack=lack)

    def resync() -> None:
        whole = set(thread.cells.values_list("pk", flat=True))
        with translation.override(language):
            assert pages.read(
                thread.pk, alice.pk, position=99, lack=pages.Lack(whole=whole)
            )

    ways = (page, socket, resync)
    grow(thread, steady, 3)
    page()
    few = [queries(way) for way in ways]
    grow(thread, steady, 7)

    assert [queries(way) for way in ways] == few


def test_the_operators_words_stand_on_a_page_and_in_what_a_socket_brings(
    alice: User, thread: Thread, steady: LanguageModel
) -> None:
    Sentence.objects.update_or_create(
        key="stream.truncated", defaults={"text_en": "It broke at {model} {today}."}
    )
    Sentence.objects.update_or_create(
        key="stream.truncated", defaults={"text_de": "Abriss bei {model} <b>."}
    )
    grow(thread, steady, 1)
    client = Client(headers={"accept-language": "de"})
    client.force_login(alice)

    html = client.get(reverse("thread", args=[thread.pk])).content.decode()
    with translation.override("de"):
        reading = pages.read(
            thread.pk, alice.pk, position=-1, lack=pages.Lack(newer=True)
        )

    assert reading
    for shown in (html, "".join(reading.messages)):
        assert "Abriss bei practice/steady &lt;b&gt;." in shown
