"""Tools of servers as a round and an operator have them."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from tests.conftest import model_at
from tests.fakegateway import FakeGateway
from tests.polling import eventually
from tests.rounds.helpers import answered, ask, cell_of, until_stored
from tests.rounds.tooling import asking, saying
from tests.tools.conftest import (
    KNOWN,
    OLD_SCRIPT,
    WORD,
    http_row,
    known_row,
    run,
    stdio_row,
)
from threads.core.events import ToolCall
from threads.models import Agent, Thread, ToolRule, ToolRun, ToolServer
from threads.rounds import engine
from threads.tools.mcp.health import address_of, record
from threads.tools.mcp.results import text_of
from threads.tools.mcp.tools import wire_name
from threads.tools.mcp.values import Listing, bounded
from threads.tools.registry import registered
from threads.tools.running import problem_with
from threads.tools.toolset import Toolset, toolset_for


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("sessions")
async def test_a_round_uses_the_tools_of_servers_and_outlives_a_missing_one(
    thread: Thread, gateway: FakeGateway
) -> None:
    model = await model_at("some/model", gateway.base_url)
    await sync_to_async(known_row)()
    await sync_to_async(known_row)("gone", command="/no/such/program")
    calls = [("demo__echo", {"word": "soup"}), ("gone__dies", {}), ("demo__pid", {})]
    gateway.play(asking(*calls), saying("So be it."))

    cell = await answered(thread, model)

    assert (cell.status, cell.text) == ("done", "So be it.")
    offered = [tool["function"] for tool in gateway.requests[0].json["tools"]]
    assert {"demo__echo", "gone__echo"} <= {tool["name"] for tool in offered}
    told = [message["content"] for message in gateway.requests[1].json["messages"][-3:]]
    assert told[0] == "You said soup"
    assert told[1].startswith("The tool failed: The tool server 'gone' ended.")
    pid = told[2].split()[0]
    assert [run.state async for run in ToolRun.objects.order_by("position")] == [
        *("ok", "error", "ok")
    ]

    gateway.play(asking(("demo__hangs", {})))
    stopped = await ask(thread, model)
    await until_stored(lambda: ToolRun.objects.filter(name="demo__hangs").first())
    await engine.stop(stopped.pk)
    await engine.wait(stopped.pk)

    assert (await cell_of(stopped)).status == "stopped"
    assert (await run("demo__pid")).text.split()[0] == pid


@pytest.mark.django_db
def test_a_rule_holds_before_the_policy_of_a_server() -> None:
    known_row("asks", policy="ask")
    known_row("allows", policy="allow")
    known_row("denies", policy="deny")
    known_row("off", is_enabled=False)
    agent = Agent.objects.create(slug="an-agent", name="An agent")
    ToolRule.objects.create(tool="denies__echo", policy="ask")
    ToolRule.objects.create(tool="allows__dies", policy="deny", agent=agent)

    everyone, its_own = toolset_for(None), toolset_for(agent)

    ours = set(registered())
    names = {
        wire_name(slug, str(tool["name"]))
        for slug in ("asks", "allows")
        for tool in KNOWN
    }
    assert set(everyone.names) - ours == names | {"denies__echo"}
    assert set(everyone.names) - set(its_own.names) == {"allows__dies"}
    assert everyone.must_ask("asks__echo")
    assert everyone.must_ask("denies__echo")
    assert not everyone.must_ask("allows__dies")
    assert everyone.has_effects("allows__dies")
    assert not everyone.has_effects("allows__echo")


def test_names_are_fit_for_the_wire_and_differ() -> None:
    names = ["a.b", "a_b", "a/b", "ä" * 90, "ö" * 90, "x" * 42, "x" * 43, "", "\ud800"]

    offered = [wire_name("twenty-letters-long-", name) for name in names]

    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in offered)
    assert len(set(offered)) == len(names)


def test_a_listing_keeps_what_can_be_offered() -> None:
    fine = {"type": "object", "properties": {"$ref": {"$ref": "#/$defs/x"}}}
    deep: dict[str, Any] = {}
    for _ in range(60):
        deep = {"not": deep}
    schemas = [
        *(WORD, {}, fine, {"type": "array"}, {"type": "object", "properties": 3}),
        {"type": "object", "allOf": [{"$ref": "http://127.0.0.1:9/schema"}]},
        *({"type": "object", "title": "x" * 20_000}, {"type": "object", "not": deep}),
    ]
    tools = [
        {"name": f"t{n}\0", "description": "d" * 2_000, "schema": schema}
        for n, schema in enumerate(schemas)
    ]

    listing = bounded(tools + tools[:1])
    many = bounded([tools[0] | {"name": str(n)} for n in range(150)])

    assert [tool["name"] for tool in listing.tools] == ["t0", "t1", "t2"]
    assert (listing.left_out, len(listing.tools[0]["description"])) == (6, 1_000)
    assert (len(many.tools), many.left_out) == (100, 50)


@pytest.mark.django_db
def test_a_schema_that_refers_to_nothing_is_a_call_that_is_not_run() -> None:
    schema = {"type": "object", "allOf": [{"$ref": "#/$defs/none"}]}
    known_row(tools=[KNOWN[0] | {"schema": schema}])
    call = ToolCall("call_1", "demo__echo", json.dumps({"word": "a"}), "")

    assert "its schema cannot be used" in problem_with(call, toolset_for(None))
    assert problem_with(call, Toolset()).startswith("There is no tool")


def test_what_is_no_text_is_named_and_a_value_told_once() -> None:
    text = {"type": "text", "text": "Twelve"}
    page = {"uri": "file:///a", "text": "Page"}

    assert text_of([text], {"price": 12}) == "Twelve"
    assert text_of([], {"price": 12}) == '{"price": 12}'
    assert text_of([{"type": "resource", "resource": page}, text], None) == (
        "[From file:///a:]\nPage\nTwelve"
    )
    assert text_of([{"type": "resource", "resource": {"uri": "b:c"}}], None) == (
        "[Not shown here: the resource b:c.]"
    )
    assert text_of([{"type": "resource_link", "uri": "b:d"}], None) == (
        "[A resource: b:d]"
    )


@pytest.mark.django_db
def test_secrets_and_addresses_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANOTHER", "more-s3cret")

    local = address_of(known_row(extra_variables="ANOTHER NOT_SET"))
    web = address_of(http_row("https://box.example/mcp?key=s3cret"))

    assert dict(local.environment) == {"A_TOKEN": local.token, "ANOTHER": "more-s3cret"}
    assert web.place == "box.example"
    assert "s3cret" not in repr((local, web))


@pytest.mark.django_db(transaction=True)
class TestDesk:
    """The operator's pages."""

    FORM = {
        "slug": "new",
        "name": "New",
        "transport": "stdio",
        "policy": "ask",
        "command": "/no/such/program",
        "arguments": "[]",
        "is_enabled": "on",
    }
    URL = "/admin/threads/toolserver/"

    def test_only_superusers_set_servers_up(self, alice: User) -> None:
        alice.is_staff = True
        alice.save()
        alice.user_permissions.set(Permission.objects.all())
        server = known_row()
        client = Client()
        client.force_login(alice)

        added = client.post(f"{self.URL}add/", self.FORM)
        changed = client.post(f"{self.URL}{server.pk}/change/", self.FORM)
        client.post(self.URL, {"action": "check_now", "_selected_action": server.pk})

        assert (added.status_code, changed.status_code) == (403, 403)
        page = client.get(self.URL)
        assert (page.status_code, b"check_now" in page.content) == (200, False)
        assert ToolServer.objects.get().last_checked_at == server.last_checked_at

    def test_a_server_is_tried_when_it_is_saved_and_when_asked(
        self, admin_client: Client
    ) -> None:
        saved = admin_client.post(f"{self.URL}add/", self.FORM)

        assert saved.status_code == 302
        server = eventually(ToolServer.objects.exclude(last_checked_at=None).first)
        assert server is not None
        assert "No such file" in server.problem
        working = stdio_row(arguments=["-S", OLD_SCRIPT])
        told = admin_client.post(
            self.URL,
            {"action": "check_now", "_selected_action": [server.pk, working.pk]},
            follow=True,
        ).content.decode()
        assert "1 of 2 servers work." in told
        assert "No such file" in told
        page = admin_client.get(f"{self.URL}{working.pk}/change/").content.decode()
        assert "demo__refuse" in page

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"command": ""}, "command"),
            ({"arguments": '{"a": 1}'}, "arguments"),
            ({"arguments": "[1]"}, "arguments"),
            ({"transport": "http", "url": "http://example.com/"}, "url"),
            ({"transport": "http", "url": ""}, "url"),
            ({"slug": "a__b"}, "slug"),
        ],
    )
    def test_what_cannot_work_is_refused(
        self, admin_client: Client, change: dict[str, str], field: str
    ) -> None:
        answer = admin_client.post(f"{self.URL}add/", self.FORM | change)

        assert answer.status_code == 200
        assert field in answer.context["adminform"].form.errors
        assert not ToolServer.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("late", ["It broke.", Listing([])], ids=["broke", "listed"])
def test_what_is_written_late_does_not_undo_what_was_learnt_since(
    late: Listing | str,
) -> None:
    server = known_row()
    assert server.last_checked_at is not None

    earlier = server.last_checked_at - timedelta(seconds=1)
    for at in (earlier, server.last_checked_at):
        record(server.pk, address_of(server), late, at)

    server.refresh_from_db()
    assert (server.health, server.tools) == (ToolServer.Health.WORKS, KNOWN)


@pytest.mark.django_db
def test_a_server_is_not_blamed_for_the_one_that_had_its_row_before() -> None:
    server, before = known_row(), known_row("other", command="/no/such/program")

    record(server.pk, address_of(before), "It broke.", timezone.now())

    server.refresh_from_db()
    assert server.health == ToolServer.Health.WORKS


@pytest.mark.django_db
def test_a_clock_that_was_ahead_does_not_silence_a_server() -> None:
    ahead = timezone.now() + timedelta(minutes=2)
    server = known_row(last_checked_at=ahead, problem="It broke.")

    record(server.pk, address_of(server), Listing(KNOWN), timezone.now())

    server.refresh_from_db()
    assert (server.health, server.problem) == (ToolServer.Health.WORKS, "")
