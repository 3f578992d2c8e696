"""The tools that look into one's own threads: what they find, and how little at once."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from threads.core.events import ToolCall
from threads.models import Cell, Thread
from threads.tools import running
from threads.tools.paging import Fields
from threads.tools.reading import cell_versions, read_thread
from threads.tools.registry import ToolContext, ToolError
from threads.tools.running import RESULT_LENGTH, text_of
from threads.tools.searching import search_threads
from threads.tools.toolset import toolset_for

MANY = 13_641
NOON = datetime(2025, 5, 1, 12, tzinfo=UTC)
OURS = ("search_threads", "read_thread", "cell_versions")
ABSURD = (-1, 0, 10**30, 1e300)


def context_of(thread: Thread) -> ToolContext:
    return ToolContext(1, thread.pk, thread.owner_id, "en", "key")


def talk(owner: User, *texts: str, **more: Any) -> Thread:
    """A thread in which these were said in turn, each a day after the one before."""
    thread = Thread.objects.create(owner=owner, **more)
    question = None
    for position, text in enumerate(texts):
        is_answer = position % 2 == 1
        cell = Cell.objects.create(
            thread=thread,
            position=position,
            role="assistant" if is_answer else "user",
            question=question if is_answer else None,
            text=text,
            created_at=NOON + timedelta(days=position),
        )
        question = cell
    return thread


def versions(thread: Thread, count: int, text: str = "v", **more: Any) -> list[int]:
    """A question and so many versions of its answer; the last is the current one.

    The database doubles what it has until there are enough: objects would take long.
    """
    question = Cell.objects.create(thread=thread, position=0, role="user", text="Why?")
    answers = Cell.objects.filter(question=question)
    place = {"thread": thread, "position": 1, "question": question}
    Cell.objects.create(**place, role="assistant", text=text, is_current=False, **more)
    columns = [str(f.column) for f in Cell._meta.concrete_fields if f.name != "id"]
    into, table = ", ".join(columns), Cell._meta.db_table
    values = into.replace("version", "version + %s")
    copy = f"INSERT INTO {table} ({into}) SELECT {values} FROM {table}"  # noqa: S608
    with connection.cursor() as cursor:
        while (have := answers.count()) < count:
            where = "WHERE question_id = %s AND version <= %s"
            cursor.execute(f"{copy} {where}", [have, question.pk, count - have])
    answers.filter(version=count).update(is_current=True)
    return list(answers.order_by("version").values_list("pk", flat=True))


def shape(page: Fields) -> tuple[int, int, bool, int]:
    assert len(text_of(page)) <= RESULT_LENGTH
    return page["count"], page["limit"], page["truncated"], len(page["items"])


@pytest.mark.django_db
class TestOwn:
    def test_a_list_of_13641_answers_50_of_them_and_never_more_than_200(
        self, thread: Thread
    ) -> None:
        cells = versions(thread, MANY)
        context, asked = context_of(thread), cells[0]

        with CaptureQueriesContext(
            connection,
        ) as queries:
            page = cell_versions(context, asked)

        assert shape(page) == (MANY, 50, True, 50)
        assert [item["version"] for item in page["items"]] == [
            *range(MANY, MANY - 50, -1)
        ]
        assert page["items"][0]["current"] is True
        assert "current" not in page["items"][1]
        assert sum("LIMIT 50" in query["sql"] for query in queries) == 1
        assert shape(cell_versions(context, asked, limit=999)) == (MANY, 200, True, 200)
        assert shape(cell_versions(context, asked, limit=0)) == (MANY, 1, True, 1)
        assert shape(cell_versions(context, asked, limit=7.0)) == (MANY, 7, True, 7)

    def test_a_search_among_many_threads_answers_50_in_a_few_queries(
        self, alice: User, django_assert_num_queries: Any
    ) -> None:
        Thread.objects.bulk_create(
            Thread(owner=alice, title=f"Lighthouse {n}", updated_at=NOON)
            for n in range(300)
        )
        thread = talk(alice, f"{'before ' * 99}a LIGHTHOUSE, {'after ' * 99}")

        with django_assert_num_queries(4):
            page = search_threads(context_of(thread), "lighthouse")

        assert shape(page) == (301, 50, True, 50)
        newest, named = page["items"][:2]
        assert (newest["thread"], newest["role"]) == (thread.pk, "user")
        assert newest["date"] == "2025-05-01T12:00Z"
        excerpt = newest["excerpt"]
        assert "e a LIGHTHOUSE, after" in excerpt
        assert (excerpt[0], excerpt[-1]) == ("…", "…")
        assert len(excerpt) < 250
        assert (named["cell"], named["excerpt"]) == (None, "")
        page = search_threads(context_of(thread), "lighthouse", limit=10**9)
        assert shape(page) == (301, 200, True, 200)
        assert "LIGHTHOUSE" in page["items"][0]["excerpt"]

    def test_a_search_shows_the_newest_message_as_it_reads_now(
        self, alice: User
    ) -> None:
        thread = talk(alice, "One fox", "two", "three fox", "four", title="Animals")
        Cell.objects.create(
            thread=thread,
            position=2,
            version=2,
            role="user",
            text="fox",
            is_current=False,
        )
        page = search_threads(context_of(thread), "  FOX\0 ")

        assert shape(page) == (1, 50, False, 1)
        hit = Cell.objects.get(text="three fox")
        assert page["items"] == [
            {
                "thread": thread.pk,
                "title": "Animals",
                "cell": hit.pk,
                "role": "user",
                "date": "2025-05-03T12:00Z",
                "excerpt": "three fox",
            }
        ]
        for pattern in ("f%x", "f_x", "' OR 1=1 --", "\ud800"):
            assert search_threads(context_of(thread), pattern)["items"] == []
        with pytest.raises(ToolError, match="empty"):
            search_threads(context_of(thread), " \0 ")

    def test_strangers_and_what_was_deleted_do_not_exist(
        self, alice: User, bob: User
    ) -> None:
        own = talk(alice, "mine")
        for hidden in (
            talk(bob, "secret", "secret"),
            talk(alice, "secret", "secret", deleted_at=NOON),
        ):
            cell, context = hidden.cells.first(), context_of(own)
            assert cell is not None

            assert search_threads(context, "secret")["count"] == 0
            with pytest.raises(ToolError, match=rf"^There is no thread {hidden.pk}\.$"):
                read_thread(context, hidden.pk)
            with pytest.raises(ToolError, match=rf"^There is no cell {cell.pk}\.$"):
                cell_versions(context, cell.pk)
            with pytest.raises(ToolError, match=rf"There is no cell {cell.pk} in"):
                read_thread(context, own.pk, before=cell.pk)
        for number in ABSURD:
            with pytest.raises(ToolError, match="There is no thread"):
                read_thread(context_of(own), number)
            with pytest.raises(ToolError, match="There is no cell"):
                read_thread(context_of(own), before=number)
            with pytest.raises(ToolError, match="There is no cell"):
                cell_versions(context_of(own), number)

    def test_a_thread_is_read_page_by_page_from_its_end(self, alice: User) -> None:
        thread = talk(alice, *(f"said {n}" for n in range(7)))
        Cell.objects.filter(position=5).update(
            status="error", ending="truncated", code="stream_truncated"
        )
        read: list[Fields] = []
        before = None
        for size in (3, 3, 1):
            page = read_thread(context_of(thread), before=before, limit=3)
            assert shape(page) == (7 - len(read), 3, len(read) < 4, size)
            read += page["items"]
            before = read[-1]["cell"]

        assert [item["text"] for item in read] == [
            f"said {n}" for n in range(6, -1, -1)
        ]
        assert read[0] == {
            "cell": Cell.objects.get(position=6).pk,
            "role": "user",
            "date": "2025-05-07T12:00Z",
            "text": "said 6",
        }
        assert read[1]["code"] == "stream_truncated"
        assert read_thread(context_of(thread), before=before)["items"] == []

    def test_long_texts_share_the_room_and_say_that_they_were_cut(
        self, alice: User
    ) -> None:
        line = 'He said: "no"\n\x01'
        thread = talk(alice, *(line * 2_400 if n % 9 else "short" for n in range(240)))

        for limit, least in ((1, 14_000), (9, 1_000), (50, 100), (200, 20)):
            page = read_thread(context_of(thread), limit=limit)

            assert shape(page) == (240, limit, True, limit)
            assert len(text_of(page)) > RESULT_LENGTH * 0.9
            for item in page["items"]:
                if item["text"] == "short":
                    assert "shortened_from" not in item
                else:
                    assert item["shortened_from"] == len(line) * 2_400
                    assert item["text"].endswith("…")
                    assert len(item["text"]) >= least

    def test_items_that_cannot_all_be_written_are_left_out_from_the_end(
        self, thread: Thread
    ) -> None:
        more = {"status": "error", "ending": "truncated", "code": "c" * 100}
        cells = versions(thread, 200, "long " * 50, **more)

        page = cell_versions(context_of(thread), cells[0], limit=200)

        assert page["truncated"] is True
        assert 90 < len(page["items"]) < 200
        assert len(text_of(page)) <= RESULT_LENGTH
        numbers = [item["version"] for item in page["items"]]
        assert numbers[0] == 200
        assert all(later - earlier == 1 for later, earlier in pairwise(numbers))

    def test_answers_are_counted_within_their_question(self, thread: Thread) -> None:
        (first,) = versions(thread, 1)
        Cell.objects.filter(thread=thread).update(is_current=False)
        changed = Cell.objects.create(
            thread=thread, position=0, version=2, role="user", text="Why not?"
        )
        answer = Cell.objects.create(
            thread=thread,
            position=1,
            version=2,
            role="assistant",
            question=changed,
            status="streaming",
        )
        context = context_of(thread)

        asked = cell_versions(context, changed.pk)["items"]
        assert [(item["version"], item["text"]) for item in asked] == [
            (2, "Why not?"),
            (1, "Why?"),
        ]
        (only,) = cell_versions(context, answer.pk)["items"]
        assert (only["version"], only["status"]) == (1, "streaming")
        (old,) = cell_versions(context, first)["items"]
        assert (old["version"], old["text"]) == (1, "v")


@pytest.mark.django_db(transaction=True)
async def test_a_model_calls_them_and_is_told_what_is_amiss(alice: User) -> None:
    thread = await sync_to_async(talk)(alice, "Where is the lighthouse?", "There.")
    toolset = await sync_to_async(toolset_for)(None)

    async def told(name: str, **arguments: object) -> tuple[str, str]:
        call = ToolCall("call_1", name, json.dumps(arguments))
        result = await running.run_asked(call, toolset, context_of(thread))
        return result.state, result.text

    state, text = await told("search_threads", query="LIGHTHOUSE", limit=999)
    assert state == "ok"
    (found,) = json.loads(text)["items"]
    state, text = await told("read_thread", thread=found["thread"])
    assert [item["text"] for item in json.loads(text)["items"]] == [
        "There.",
        "Where is the lighthouse?",
    ]
    state, text = await told("cell_versions", cell=found["cell"])
    assert json.loads(text)["count"] == 1
    assert await told("cell_versions", cell=987) == (
        "error",
        "The tool failed: There is no cell 987.",
    )
    assert (await told("search_threads", query=5))[0] == "not_run"
    assert not any(toolset.must_ask(name) or toolset.has_effects(name) for name in OURS)
    assert set(OURS) <= set(toolset.names)
