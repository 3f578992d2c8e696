"""What cannot be done about an answer, and how that is said."""

import re

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from tests.conftest import model_now
from tests.rounds.helpers import open_now
from tests.rounds.resubmitting import COMPLETED, again, ended
from tests.web.asking import client_of, path
from tests.web.test_sending import HTMX
from threads.models import Cell, LanguageModel, Round, Thread, ToolRun

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


@pytest.mark.parametrize("name", ["again", "change", "choose", "details"])
def test_a_strangers_cell_is_not_there(bob: User, broken: Cell, name: str) -> None:
    cell = broken.question if name == "change" else broken
    assert cell is not None

    assert client_of(bob).get(path(name, cell)).status_code == 404
    if name != "details":
        assert client_of(bob).post(path(name, cell)).status_code == 404
    assert Round.objects.count() == 1


@pytest.mark.parametrize("name", ["again", "change", "choose", "details"])
def test_a_cell_of_the_other_kind_of_another_or_of_a_deleted_thread_is_not_there(
    alice: User, broken: Cell, name: str
) -> None:
    client, question = client_of(alice), broken.question
    assert question is not None
    other = Thread.objects.create(owner=alice)
    method = client.get if name == "details" else client.post

    assert (
        method(reverse(f"cell-{name}", args=[other.pk, broken.pk])).status_code == 404
    )
    if name != "choose":
        wrong = broken if name == "change" else question
        assert method(path(name, wrong)).status_code == 404
    Thread.objects.filter(pk=broken.thread_id).update(deleted_at="2026-01-01T00:00Z")
    assert method(path(name, broken)).status_code == 404


@pytest.mark.parametrize("name", ["again", "change", "choose"])
def test_a_click_from_another_site_does_nothing(
    alice: User, broken: Cell, name: str
) -> None:
    cell = broken.question if name == "change" else broken
    assert cell is not None

    response = client_of(alice, enforce_csrf_checks=True).post(
        path(name, cell), {"prompt": "x"}
    )

    assert response.status_code == 403
    assert Round.objects.count() == 1


def test_the_form_without_a_script_carries_its_token(alice: User, broken: Cell) -> None:
    client = client_of(alice, enforce_csrf_checks=True)
    page = client.get(path("again", broken)).content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token is not None

    fields = {"csrfmiddlewaretoken": token[1], "model": broken.round.model_id}
    response = client.post(path("again", broken), fields)

    assert response.status_code == 302
    assert Round.objects.count() == 2


def test_while_an_answer_is_written_nothing_is_sent_again(
    alice: User, broken: Cell, steady: LanguageModel
) -> None:
    running = open_now(broken.thread, steady, "Next")
    client, question = client_of(alice), broken.question
    assert question is not None
    fields = {"prompt": "Why not?"}

    for name, cell in (("again", broken), ("change", question)):
        plain = client.post(path(name, cell), fields)
        scripted = client.post(path(name, cell), fields, headers=HTMX)
        assert (plain.status_code, scripted.status_code) == (422, 422)
        for response in (plain, scripted):
            assert "The model is still answering." in response.content.decode()
    for headers in ({}, HTMX):
        response = client.post(path("choose", broken), headers=headers)
        assert response.status_code == 422
        assert "The model is still answering." in response.content.decode()
    streaming = client.post(path("again", running.answer_cell), headers=HTMX)
    assert streaming.status_code == 422
    assert Round.objects.count() == 2


def test_what_was_replaced_or_is_in_the_middle_says_so(
    alice: User, broken: Cell, steady: LanguageModel
) -> None:
    client = client_of(alice)
    whole = ended(again(broken), COMPLETED, "Whole.")

    response = client.post(path("again", broken), headers=HTMX)
    assert "replaced already" in response.content.decode()
    assert f'id="cell-{broken.pk}-said"' in response.content.decode()

    ended(open_now(broken.thread, steady, "Next"))
    response = client.post(path("again", whole), headers=HTMX)
    assert "only at the end of a thread" in response.content.decode()
    assert response.status_code == 422


def test_a_model_that_is_gone_is_named_and_another_can_be_chosen(
    alice: User, broken: Cell, practice_url: str
) -> None:
    other = model_now("practice/markdown", practice_url)
    LanguageModel.objects.exclude(pk=other.pk).update(is_enabled=False)
    client = client_of(alice)

    gone = client.post(path("again", broken))
    never = client.post(path("again", broken), {"model": other.pk + 99})

    for response in (gone, never):
        assert response.status_code == 422
        page = response.content.decode()
        assert "This model is not offered any more. Choose another one." in page
        assert f'<option value="{other.pk}"' in page
    assert Round.objects.count() == 1


@pytest.mark.parametrize("headers", [{}, HTMX])
@pytest.mark.parametrize("name", ["again", "change"])
def test_tools_that_change_something_are_named_and_wait_for_a_second_click(
    alice: User,
    broken: Cell,
    steady: LanguageModel,
    name: str,
    headers: dict[str, str],
) -> None:
    for position, tool in enumerate(["send_mail", "book<b>"]):
        ToolRun.objects.create(
            round=broken.round,
            call=1,
            position=position,
            name=tool,
            has_effects=True,
            state=ToolRun.State.UNKNOWN,
        )
    client, question = client_of(alice), broken.question
    assert question is not None
    address = path(name, question if name == "change" else broken)
    fields = {"prompt": "Why not?", "model": str(steady.pk)}

    warned = client.post(address, fields, headers=headers)

    html = warned.content.decode()
    assert warned.status_code == 422
    assert "used tools that change something outside: send_mail, book&lt;b&gt;" in html
    assert "may or may not have finished: send_mail, book&lt;b&gt;. Check" in html
    assert '<input type="hidden" name="confirmed" value="1">' in html
    assert "Send again anyway" in html
    if name == "again" and headers:
        assert f'<input type="hidden" name="model" value="{steady.pk}">' in html
    assert Round.objects.count() == 1
    done = client.post(address, fields | {"confirmed": "1"}, headers=headers)
    assert done.status_code == (200 if headers else 302)
    assert Round.objects.count() == 2
