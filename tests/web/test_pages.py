"""Pages: who sees what, and what a person can do from them without a script."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.rounds.helpers import open_now
from threads.models import Cell, LanguageModel, Round, Thread
from threads.views.listing import MOST_ROWS, grouped

pytestmark = pytest.mark.django_db


@pytest.fixture
def alices(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def bobs(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


@pytest.mark.parametrize("path", ["/", "/threads/1/", "/search/"])
def test_a_stranger_is_asked_to_sign_in(path: str, client: Client) -> None:
    response = client.get(path)

    assert response.status_code == 302
    assert response["Location"].startswith(reverse("sign-in"))


def test_the_empty_site_offers_first_prompts(
    alices: Client, steady: LanguageModel
) -> None:
    page = alices.get("/").content.decode()

    assert page.count('name="prompt" value="') == 3
    assert "A short tour" not in page


def test_practice_models_are_shown_on_a_tour(
    alices: Client, steady: LanguageModel
) -> None:
    steady.gateway.is_practice = True
    steady.gateway.save()

    page = alices.get("/").content.decode()

    assert "A short tour" in page
    assert f'<input type="hidden" name="model" value="{steady.pk}">' in page


def test_a_thread_is_its_owners_alone(
    alices: Client, bobs: Client, thread: Thread
) -> None:
    cell = Cell.objects.create(thread=thread, position=0, role="user", text="secret")
    thread.title = "Secret plans"
    thread.save()

    assert alices.get(reverse("thread", args=[thread.pk])).status_code == 200
    for name in ("thread", "send", "stop", "rename", "delete", "restore"):
        path = reverse(name, args=[thread.pk])
        response = bobs.get(path) if name == "thread" else bobs.post(path)
        assert response.status_code == 404
    assert bobs.get(reverse("cell-text", args=[thread.pk, cell.pk])).status_code == 404
    assert "Secret plans" not in bobs.get("/").content.decode()
    assert "Secret plans" not in bobs.get("/search/?q=secret").content.decode()


def test_a_cell_of_another_thread_is_not_there(alices: Client, alice: User) -> None:
    one, two = (Thread.objects.create(owner=alice) for _ in range(2))
    cell = Cell.objects.create(thread=one, position=0, role="user", text="words")

    assert alices.get(reverse("cell-text", args=[two.pk, cell.pk])).status_code == 404
    response = alices.get(reverse("cell-text", args=[one.pk, cell.pk]))
    assert (response.content, response["Content-Type"]) == (
        b"words",
        "text/plain; charset=utf-8",
    )


def test_a_thread_page_is_readable_without_script(
    alices: Client, thread: Thread
) -> None:
    question = Cell.objects.create(
        thread=thread, position=0, role="user", text="A question"
    )
    Cell.objects.create(
        thread=thread,
        position=1,
        role="assistant",
        question=question,
        text="An *answer*",
    )

    page = alices.get(reverse("thread", args=[thread.pk])).content.decode()

    assert "A question" in page
    assert "<p>An <em>answer</em></p>" in page
    assert f'action="{reverse("send", args=[thread.pk])}"' in page
    assert f'ws-connect="/ws/threads/{thread.pk}/?lang=en"' in page


def test_a_page_carries_no_inline_script_or_style(
    alices: Client, thread: Thread
) -> None:
    response = alices.get(reverse("thread", args=[thread.pk]))
    page = response.content.decode()

    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert "style=" not in page
    assert "<style" not in page
    assert " onclick" not in page
    assert all("src=" in tag.split(">")[0] for tag in page.split("<script")[1:])


def test_threads_are_grouped_by_day() -> None:
    today = date(2026, 3, 1)
    ages = [0, 0, 1, 2, 400]
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    threads = [Thread(updated_at=noon - timedelta(days=age)) for age in ages]

    groups = grouped(threads, today)

    assert [(name, len(rows)) for name, rows in groups] == [
        ("Today", 2),
        ("Yesterday", 1),
        ("Earlier", 2),
    ]


def test_a_long_list_is_cut_and_can_be_shown_whole(alices: Client, alice: User) -> None:
    Thread.objects.bulk_create(Thread(owner=alice) for _ in range(MOST_ROWS + 5))

    assert alices.get("/").content.count(b'class="row"') == MOST_ROWS
    assert alices.get("/?all").content.count(b'class="row"') == MOST_ROWS + 5


def test_a_list_costs_the_same_queries_however_long(
    alices: Client, alice: User, django_assert_max_num_queries: object
) -> None:
    Thread.objects.bulk_create(Thread(owner=alice) for _ in range(50))

    with django_assert_max_num_queries(10):  # type: ignore[operator]
        alices.get("/")


def test_a_title_can_be_changed(alices: Client, thread: Thread) -> None:
    response = alices.post(reverse("rename", args=[thread.pk]), {"title": " New <b> "})

    thread.refresh_from_db()
    assert thread.title == "New <b>"
    assert response.status_code == 302
    page = alices.get(reverse("thread", args=[thread.pk])).content.decode()
    assert "New &lt;b&gt;" in page


def test_an_empty_title_keeps_the_old_one(alices: Client, thread: Thread) -> None:
    Thread.objects.filter(pk=thread.pk).update(title="Old")

    alices.post(reverse("rename", args=[thread.pk]), {"title": "  "})
    alices.post(reverse("rename", args=[thread.pk]), {"title": "x" * 201})

    thread.refresh_from_db()
    assert thread.title == "Old"


def test_a_deleted_thread_can_be_brought_back(alices: Client, thread: Thread) -> None:
    page = alices.post(reverse("delete", args=[thread.pk]), follow=True)
    assert reverse("restore", args=[thread.pk]) in page.content.decode()
    assert alices.get(reverse("thread", args=[thread.pk])).status_code == 404

    alices.post(reverse("restore", args=[thread.pk]))
    assert alices.get(reverse("thread", args=[thread.pk])).status_code == 200
    assert 'id="undo"' not in alices.get("/").content.decode()


@pytest.mark.django_db(transaction=True)
def test_deleting_a_thread_stops_its_answer(
    alices: Client, thread: Thread, steady: LanguageModel
) -> None:
    round_ = open_now(thread, steady)

    alices.post(reverse("delete", args=[thread.pk]))

    round_.refresh_from_db()
    assert round_.state == Round.State.STOPPED


def test_the_undo_bar_stays_until_it_is_put_away(
    alices: Client, thread: Thread
) -> None:
    alices.post(reverse("delete", args=[thread.pk]))
    for _ in range(2):
        assert 'id="undo"' in alices.get("/").content.decode()

    alices.post(reverse("dismiss-undo"))
    assert 'id="undo"' not in alices.get("/").content.decode()


def test_words_are_found_in_titles_and_text(alices: Client, alice: User) -> None:
    titled = Thread.objects.create(owner=alice, title="About Lighthouses")
    worded = Thread.objects.create(owner=alice, title="Other")
    Cell.objects.create(thread=worded, position=0, role="user", text="a lighthouse")
    Thread.objects.create(owner=alice, title="Neither")

    page = alices.get("/search/?q=LIGHTHOUSE").content.decode().split("<main")[1]

    assert f'href="{reverse("thread", args=[titled.pk])}"' in page
    assert f'href="{reverse("thread", args=[worded.pk])}"' in page
    assert "Neither" not in page
    assert "Nothing found" in alices.get("/search/?q=zzz%00").content.decode()


@pytest.mark.parametrize("path", ["/nothing/", "/threads/999999/"])
def test_a_page_that_is_not_there_says_so_in_the_sites_look(
    alices: Client, path: str
) -> None:
    response = alices.get(path)

    assert response.status_code == 404
    assert "There is nothing here" in response.content.decode()


def test_a_form_that_grew_old_is_explained(alice: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)

    response = strict.post("/", {"prompt": "Hello"})

    assert response.status_code == 403
    assert "This page was open too long" in response.content.decode()
