"""`manage.py serve` as an operator runs it: first run, second run, kill, restart."""

import json
import re
import signal
import sqlite3
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

import pytest

from tests.acceptance.conftest import Site, manage, sign_in_link
from tests.polling import eventually


class Visitor:
    """A person with cookies and no JavaScript, over plain HTTP."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._cookies: dict[str, str] = {}

    def get(self, path: str) -> tuple[int, str]:
        """Read a page."""
        return self._request("GET", path, None)

    def post(self, page: str, path: str, **fields: str) -> tuple[int, str]:
        """Send a form that stands on `page`."""
        _, body = self.get(page)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', body)
        assert token is not None, body[:500]
        return self._request(
            "POST", path, {"csrfmiddlewaretoken": token.group(1), **fields}
        )

    def _request(
        self, method: str, path: str, fields: dict[str, str] | None
    ) -> tuple[int, str]:
        with closing(
            HTTPConnection("127.0.0.1", self._site.port, timeout=20)
        ) as connection:
            headers = {
                "Cookie": "; ".join(
                    f"{name}={value}" for name, value in self._cookies.items()
                )
            }
            body = None
            if fields is not None:
                body = urlencode(fields)
                headers["Content-Type"] = "application/x-www-form-urlencoded"
                headers["Origin"] = self._site.address
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            for name, value in response.getheaders():
                if name.lower() == "set-cookie":
                    cookie, _, _ = value.partition(";")
                    key, _, content = cookie.partition("=")
                    self._cookies[key] = content
            text = response.read().decode()
            location = response.getheader("Location")
        if response.status in (301, 302, 303) and location:
            return self._request("GET", location.partition("#")[0], None)
        return response.status, text

    def sign_in(self, path: str = "") -> tuple[int, str]:
        """Use a one-time link, or that of the site's first run."""
        path = path or urlsplit(self._site.link).path
        return self.post(path, path)


def rows(site: Site, query: str) -> list[tuple[object, ...]]:
    """Read the site's database from outside, as an operator with sqlite3 would."""
    path = site.env["DATABASE_URL"].removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, timeout=10)) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def guest(served: Site) -> Visitor:
    """Somebody new who has signed in to the site that nobody ends."""
    guest = Visitor(served)
    status, page = guest.sign_in(sign_in_link(served))
    assert status == 200
    assert "sign-out" in page
    return guest


def test_the_link_of_the_first_run_signs_in_once(served: Site) -> None:
    first, second = Visitor(served), Visitor(served)

    used = first.sign_in()
    path = urlsplit(served.link).path
    status, again = second.get(path)

    assert used[0] == 200
    assert "sign-out" in used[1]
    assert "sign-out" not in again
    assert status in (200, 400, 403, 404, 410)


def test_asking_with_another_gateway_changes_nothing_for_the_site(
    served: Site, guest: Visitor
) -> None:
    table = (
        "select wire_id, is_default, is_enabled from threads_languagemodel order by id"
    )
    before = rows(served, table)

    ran = manage(
        "ask", "--json", "hi",
        env=served.env | {"OPENAI_BASE_URL": "http://127.0.0.1:9", "CHAT_MODEL": "foo"},
    )  # fmt: skip

    assert json.loads(ran.stdout)["code"] == "connect_failed"
    assert rows(served, table) == before
    assert "Steady answer" in guest.get("/")[1]


def test_a_message_is_sent_and_answered_without_javascript(
    served: Site, guest: Visitor
) -> None:
    model = rows(
        served, "select id from threads_languagemodel where wire_id='practice/empty'"
    )[0][0]

    status, _ = guest.post("/", "/", prompt="Hello there", model=str(model), key="k1")

    assert status == 200
    ended = eventually(
        lambda: rows(
            served,
            "select threads_round.thread_id from threads_round join threads_cell"
            " on threads_cell.id = user_cell_id"
            " where state='error' and text='Hello there'",
        )
    )
    status, page = guest.get(f"/threads/{ended[0][0]}/")
    assert status == 200
    assert "Hello there" in page
    assert "without writing anything" in page


def test_a_server_that_ends_mid_answer_leaves_what_was_streamed_and_nothing_running(
    own_site: Site,
) -> None:
    """It ends twice, by a crash and in order; what later runs do is seen on the way."""
    own_site.start()
    visitor = Visitor(own_site)
    assert "sign-out" in visitor.sign_in()[1]
    models = rows(own_site, MODELS)
    send_slowly(own_site, visitor, "k1")

    flushed = ended(own_site, signal.SIGKILL)
    own_site.start()

    assert rows(own_site, MODELS) == models
    assert rows(own_site, "select count(*) from auth_user") == [(1,)]
    assert_lost(own_site, flushed)
    # Until there is a password, each run gives a link.
    assert "sign-out" in Visitor(own_site).sign_in()[1]
    words = "seven-quiet-rivers"
    status, _ = visitor.post(
        "/password/", "/password/", new_password1=words, new_password2=words
    )
    assert status == 200
    set_up_schedule(own_site, visitor)
    send_slowly(own_site, visitor, "k2")

    flushed = ended(own_site, signal.SIGTERM)
    let_schedule_be_due(own_site)
    own_site.start()

    # What is due by the clock does not wait for a visitor.
    eventually(
        lambda: rows(
            own_site,
            "select 1 from threads_round where not attended and ending='empty'",
        )
    )
    assert_lost(own_site, flushed)
    assert "/sign-in/" not in own_site.said
    thread = rows(own_site, "select max(id) from threads_thread")[0][0]
    page, model = f"/threads/{thread}/", model_of(own_site, "practice/empty")
    status, _ = visitor.post(
        page, f"{page}send/", prompt="And now?", model=model, key="k3"
    )
    assert status == 200
    eventually(
        lambda: rows(
            own_site, "select 1 from threads_round where attended and ending='empty'"
        )
    )


MODELS = "select count(*), max(id) from threads_languagemodel"
JOURNAL = (
    "select coalesce(group_concat(text, ''), '')"
    " from (select * from threads_journalentry order by offset)"
)
LAST = (
    "from threads_cell where id ="
    " (select max(answer_cell_id) from threads_round where attended)"
)


def model_of(site: Site, wire_id: str) -> str:
    models = rows(site, "select id, wire_id from threads_languagemodel")
    return str(next(pk for pk, name in models if name == wire_id))


def send_slowly(site: Site, visitor: Visitor, key: str) -> None:
    """Ask in a new thread, and wait until part of the answer is in the journal."""
    model = model_of(site, "practice/slow")
    visitor.post("/", "/", prompt="Tell me slowly", model=model, key=key)
    eventually(lambda: len(str(rows(site, JOURNAL)[0][0])) > 20)


def set_up_schedule(site: Site, operator: Visitor) -> None:
    """Send a prompt by the clock, and not soon."""
    add = "/admin/threads/schedule/add/"
    model, owner = model_of(site, "practice/empty"), {"owner": "1", "locale": "en"}
    when = {"cron": "0 0 29 2 *", "time_zone": "UTC", "is_enabled": "on"}
    status, _ = operator.post(
        *(add, add),
        name="News",
        prompt="What is new?",
        most_failures="3",
        **owner | when | {"model": model},
    )
    assert status == 200
    assert rows(site, "select is_enabled from threads_schedule") == [(1,)]


def let_schedule_be_due(site: Site) -> None:
    """Turn its clock forward."""
    path = site.env["DATABASE_URL"].removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, timeout=10)) as connection, connection:
        connection.execute(
            "update threads_schedule set next_at = '2026-01-01 00:00:00'"
        )


def ended(site: Site, how: signal.Signals) -> object:
    """End the server and return what is left of the answer."""
    site.end(how)
    return rows(site, JOURNAL)[0][0] or rows(site, f"select text {LAST}")[0][0]


def assert_lost(site: Site, flushed: object) -> None:
    """Assert that a new run has named the end and kept every flushed character."""
    running = "select 1 from threads_round where state in ('queued', 'running')"
    eventually(lambda: not rows(site, running))
    text, status, code, sentence = rows(
        site, f"select text, status, code, sentence {LAST}"
    )[0]
    assert text == flushed
    assert (status, code) == ("error", "worker_lost")
    assert "stopped" in str(sentence)


def test_health_and_readiness_answer_without_signing_in(served: Site) -> None:
    visitor = Visitor(served)

    assert visitor.get("/healthz")[0] == 200
    assert visitor.get("/readyz")[0] == 200


def test_a_port_that_is_taken_is_told_in_a_sentence(served: Site) -> None:
    ran = manage("serve", "--port", str(served.port), env=served.env)

    assert ran.returncode == 1
    assert "Choose another with --port" in ran.stderr
    assert "Traceback" not in ran.stderr
