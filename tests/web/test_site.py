"""The site around the pages: health, accounts, look and language."""

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from pytest_django import DjangoAssertNumQueries, Settings

from threads.models import Thread

pytestmark = pytest.mark.django_db


def link_of(user: User) -> str:
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    token = default_token_generator.make_token(user)
    return reverse("sign-in-link", args=[uid, token])


def test_health_asks_no_database(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        response = client.get("/healthz")

    assert (response.status_code, response.content) == (200, b"ok")


def test_readiness_means_that_migrations_are_applied(client: Client) -> None:
    assert client.get("/readyz").status_code == 200


def test_signing_in_and_out(client: Client, alice: User) -> None:
    response = client.post(
        reverse("sign-in"), {"username": "alice", "password": "wonderland"}
    )
    assert response["Location"] == "/"
    assert client.get("/").status_code == 200

    assert client.post(reverse("sign-out"))["Location"] == reverse("sign-in")
    assert client.get("/").status_code == 302


def test_a_wrong_password_is_refused_in_plain_words(
    client: Client, alice: User
) -> None:
    response = client.post(
        reverse("sign-in"), {"username": "alice", "password": "looking-glass"}
    )

    assert "Name and password do not match" in response.content.decode()


def test_guessing_is_locked_out(
    client: Client, alice: User, settings: Settings
) -> None:
    guess = {"username": "alice", "password": "guess"}
    for _ in range(settings.AXES_FAILURE_LIMIT):
        client.post(reverse("sign-in"), guess)

    response = client.post(reverse("sign-in"), guess)

    assert response.status_code == 429
    assert "Too many tries" in response.content.decode()


def test_a_site_is_closed_to_new_accounts_by_default(client: Client) -> None:
    assert client.get(reverse("sign-up")).status_code == 404
    assert reverse("sign-up") not in client.get(reverse("sign-in")).content.decode()


def test_an_open_site_takes_new_accounts(client: Client, settings: Settings) -> None:
    settings.SIGN_UP_OPEN = True
    fields = {"username": "carol", "password1": "a-long-word-7", "password2": "other"}

    assert client.post(reverse("sign-up"), fields).status_code == 422
    response = client.post(reverse("sign-up"), fields | {"password2": "a-long-word-7"})

    assert response["Location"] == "/"
    assert client.get("/").status_code == 200


def test_a_sign_in_link_works_once(client: Client, alice: User) -> None:
    link = link_of(alice)

    assert client.get(link).status_code == 200
    assert client.get("/").status_code == 302, "looking at it must not use it up"
    assert client.post(link)["Location"] == "/"
    assert client.get("/").status_code == 200
    assert Client().post(link).status_code == 410


def test_who_came_by_a_link_sets_a_password_and_signs_in_with_it(
    client: Client, db: None
) -> None:
    person = User.objects.create(username="carol")
    person.set_unusable_password()
    person.save()
    client.post(link_of(person))

    page = client.get(reverse("password"))
    response = client.post(
        reverse("password"),
        {"new_password1": "seven-quiet-rivers", "new_password2": "seven-quiet-rivers"},
    )

    assert "old_password" not in page.content.decode()
    assert "is set" in response.content.decode()
    assert client.get(reverse("home")).status_code == 200
    assert Client().login(
        request=HttpRequest(), username="carol", password="seven-quiet-rivers"
    )


def test_changing_a_password_asks_for_the_old_one(client: Client, alice: User) -> None:
    client.force_login(alice)

    response = client.post(
        reverse("password"),
        {"new_password1": "seven-quiet-rivers", "new_password2": "seven-quiet-rivers"},
    )

    assert "is set" not in response.content.decode()
    alice.refresh_from_db()
    assert alice.check_password("wonderland")


@pytest.mark.parametrize("path", ["/sign-in/AA/x-y/", "/sign-in/_____/x/"])
def test_a_made_up_sign_in_link_is_refused(client: Client, path: str) -> None:
    response = client.post(path)

    assert response.status_code == 410
    assert client.get("/").status_code == 302


def test_a_theme_is_rendered_by_the_server(client: Client) -> None:
    response = client.post(
        reverse("set-theme"), {"theme": "dark", "next": reverse("sign-in")}
    )
    assert response["Location"] == reverse("sign-in")
    assert 'data-theme="dark"' in client.get(reverse("sign-in")).content.decode()

    client.post(reverse("set-theme"), {"theme": "", "next": reverse("sign-in")})
    assert "data-theme" not in client.get(reverse("sign-in")).content.decode()


def test_a_theme_form_sends_nobody_elsewhere(client: Client) -> None:
    response = client.post(
        reverse("set-theme"), {"theme": "dark", "next": "https://evil.example/"}
    )

    assert response["Location"] == "/"


def test_a_right_to_left_language_turns_the_page(client: Client) -> None:
    client.post(reverse("set-language"), {"language": "ar"})

    page = client.get(reverse("sign-in")).content.decode()

    assert '<html lang="ar" dir="rtl"' in page


@pytest.mark.parametrize("name", ["400.html", "403.html", "404.html", "500.html"])
def test_an_error_page_needs_nothing_to_be_rendered(name: str) -> None:
    assert "chatsite" in render_to_string(name)


def test_the_operators_desk_shows_every_list(admin_client: Client) -> None:
    pages = admin_client.get("/admin/").content.decode()
    for model in ("gateway", "languagemodel", "agent", "sentence", "thread", "cell"):
        assert f"/admin/threads/{model}/" in pages
    for model in ("round", "callattempt", "toolrun", "thread", "cell", "sentence"):
        assert admin_client.get(f"/admin/threads/{model}/").status_code == 200


def test_the_ledger_is_read_only(admin_client: Client, thread: Thread) -> None:
    assert admin_client.get("/admin/threads/thread/add/").status_code == 403
    path = f"/admin/threads/thread/{thread.pk}/delete/"
    assert admin_client.post(path, {"post": "yes"}).status_code == 403
