"""The operator's desk for keys: what it shows, and who may clear a mark."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from threads.models import Gateway, KeyHealth

pytestmark = pytest.mark.django_db

LIST = "/admin/threads/keyhealth/"


@pytest.fixture
def mark() -> KeyHealth:
    gateway = Gateway.objects.create(slug="some-gateway", name="Some gateway")
    now = timezone.now()
    return KeyHealth.objects.create(
        gateway=gateway,
        key_variable="SOME_KEY",
        fingerprint="f" * 64,
        model="some/model",
        status="bad",
        code="http_401",
        http_status=401,
        provider_reason="No such key [key]",
        since=now,
        last_seen_at=now,
        expires_at=now + timedelta(seconds=900),
        count=3,
    )


def desk_of(user: User, *permissions: str) -> Client:
    """A browser of somebody on the staff who may do just this."""
    user.is_staff = True
    user.save()
    user.user_permissions.set(
        Permission.objects.filter(
            content_type__app_label="threads", codename__in=permissions
        )
    )
    client = Client()
    client.force_login(user)
    return client


def clear(client: Client, mark: KeyHealth) -> int:
    posted = {"action": "clear", "_selected_action": [mark.pk]}
    return client.post(LIST, posted).status_code


def test_the_list_says_what_the_gateway_said_and_for_how_long(
    alice: User, mark: KeyHealth
) -> None:
    page = desk_of(alice, "view_keyhealth").get(LIST).content.decode()

    for shown in (
        "some-gateway",
        "SOME_KEY",
        "some/model",
        "not accepted",
        "No such key [key]",
    ):
        assert shown in page
    assert '<td class="field-count">3</td>' in page
    assert 'alt="True"' in page


def test_an_expired_mark_is_shown_as_such(alice: User, mark: KeyHealth) -> None:
    KeyHealth.objects.update(expires_at=timezone.now())

    assert 'alt="False"' in desk_of(alice, "view_keyhealth").get(LIST).content.decode()


def test_who_may_only_look_is_not_offered_to_clear(
    alice: User, mark: KeyHealth
) -> None:
    client = desk_of(alice, "view_keyhealth")

    assert "Clear" not in client.get(LIST).content.decode()
    clear(client, mark)
    assert KeyHealth.objects.exists()


def test_who_may_change_clears_a_mark_and_the_history_names_them(
    alice: User, mark: KeyHealth, caplog: pytest.LogCaptureFixture
) -> None:
    client = desk_of(alice, "view_keyhealth", "change_keyhealth")

    assert "Clear" in client.get(LIST).content.decode()
    assert clear(client, mark) == 302
    assert not KeyHealth.objects.exists()
    entry = LogEntry.objects.get()
    assert (entry.user_id, entry.object_id) == (alice.pk, str(mark.pk))
    assert "KEY_CLEARED gateway=some-gateway by=hand" in caplog.text
    assert "1 mark was cleared." in client.get(LIST).content.decode()


def test_nothing_of_a_mark_can_be_written_by_hand(
    admin_client: Client, mark: KeyHealth
) -> None:
    one = f"{LIST}{mark.pk}/change/"

    assert admin_client.get(one).status_code == 200
    assert admin_client.post(one, {"status": "throttled"}).status_code == 403
    assert admin_client.post(f"{LIST}add/", {}).status_code == 403
    assert admin_client.post(f"{LIST}{mark.pk}/delete/", {}).status_code == 403
    assert KeyHealth.objects.get().status == "bad"


def test_a_stranger_to_the_desk_is_sent_away(alice: User, mark: KeyHealth) -> None:
    client = Client()
    client.force_login(alice)

    assert client.get(LIST).status_code == 302
    assert clear(client, mark) == 302
    assert KeyHealth.objects.exists()
