"""Tools as cards in their answer: what is told of them, and where they stand."""

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import translation

from tests.rounds.helpers import answers_in, open_now
from tests.rounds.resubmitting import ended
from tests.web.asking import client_of
from tests.web.toolcells import AFTER, BEFORE, asked
from threads.models import Cell, LanguageModel, Thread, ToolRun
from threads.rendering import ToolsOf, cell_html, render_text, view_of
from threads.rendering.tools import LONGEST_SHOWN, Card

pytestmark = pytest.mark.django_db


@pytest.fixture
def answer(thread: Thread, steady: LanguageModel) -> Cell:
    return ended(open_now(thread, steady), text=BEFORE + AFTER)


def card(answer: Cell, **run: object) -> Card:
    asked(answer, run)
    return ToolsOf([answer]).cards(answer.pk, 1)[0]


def test_tools_stand_between_the_text_before_and_the_text_after(answer: Cell) -> None:
    asked(answer, {"name": "echo<b>", "result": "<b>"}, {}, at=len(BEFORE))
    asked(answer, {"state": "not_run"}, call=2, at=999)
    ToolRun.objects.create(round=answer.round, call=3, position=0, name="declined")
    slots = ToolsOf([answer]).slots(answer.pk)

    html = cell_html(answer, view_of(answer, slots=slots))

    _, shown = answers_in(html)[answer.pk]
    assert shown.blocks == list(render_text(answer.text, slots))
    kinds = [re.sub(r"\d+", "N", block[:30]) for block in shown.blocks]
    tools = '<section class="tools" id="cel'
    assert kinds == [
        "<p>Before the tools.</p>",
        tools,
        "<p>After the tools.</p>",
        tools,
        tools,
    ]
    assert html.count('class="tool"') == 4
    assert "echo&lt;b&gt;" in html
    assert "<b>" not in html


@pytest.mark.parametrize(
    ("state", "has_effects", "told"),
    [
        ("allowed", False, ["allowed"]),
        ("running", False, ["running"]),
        ("ok", True, ["finished", "2.0 s", "changes something outside"]),
        ("error", False, ["failed"]),
        ("not_run", False, ["not run"]),
        ("unknown", False, ["unknown", "It may or may not have finished.</p>"]),
        (
            "unknown",
            True,
            ["may or may not have finished. Check before you send again."],
        ),
    ],
)
def test_each_state_is_told_in_words(
    answer: Cell, state: str, has_effects: bool, told: list[str]
) -> None:
    asked(answer, {"state": state, "has_effects": has_effects})

    html = cell_html(answer, view_of(answer, slots=ToolsOf([answer]).slots(answer.pk)))

    for words in told:
        assert words in html


@pytest.mark.parametrize(
    ("state", "heading"), [("ok", "Result"), ("not_run", "The model was told")]
)
def test_what_the_model_was_told_is_not_called_a_result(
    answer: Cell, state: str, heading: str
) -> None:
    asked(answer, {"state": state, "result": "There is none."})

    html = cell_html(answer, view_of(answer, slots=ToolsOf([answer]).slots(answer.pk)))

    headings = re.findall("<h4>(.*?)</h4>", html)
    assert headings == ["Arguments", heading]


def test_who_decides_reads_what_the_tool_says_of_itself(answer: Cell) -> None:
    asked(answer, {"state": "waiting", "description": "Sends <all>\u202e of it."})

    html = cell_html(answer, view_of(answer, slots=ToolsOf([answer]).slots(answer.pk)))

    assert ">Sends &lt;all&gt;\\u202e of it.</blockquote>" in html


def test_json_is_laid_out_and_what_is_long_is_shown_in_part(answer: Cell) -> None:
    long = "x" * (LONGEST_SHOWN + 1)
    told = card(
        answer,
        arguments='{"a": [1, "ä"], "b": "two\\nlines"}',
        arguments_asked="{}",
        result=long,
    )

    assert told.brief == '[1, "ä"], two lines'
    assert told.arguments.is_json
    assert told.arguments.text.startswith('{\n  "a": [\n    1,\n    "ä"\n')
    assert told.asked.text == ""
    assert (told.result.text, told.result.is_cut) == (long[:-1], True)


@pytest.mark.parametrize(
    ("arguments", "brief"),
    [
        ("", ""),
        ('{"wo', '{"wo'),
        ("[" * 9000, "[" * 119 + "…"),
        ('{"a": 1e999}', "Infinity"),
    ],
)
def test_arguments_that_are_no_json_are_shown_as_they_are(
    answer: Cell, arguments: str, brief: str
) -> None:
    told = card(answer, name="", arguments=arguments)

    assert (told.name, told.brief) == ("A tool without a name", brief)
    assert len(told.arguments.text) <= LONGEST_SHOWN


def test_cards_are_in_the_language_of_who_reads_them(answer: Cell) -> None:
    asked(answer, {"has_effects": True})

    with translation.override("ar"):
        html = cell_html(
            answer, view_of(answer, slots=ToolsOf([answer]).slots(answer.pk))
        )

    assert '<ul dir="rtl">' in html


def test_a_thread_of_many_answers_reads_all_tools_at_once(
    alice: User, thread: Thread, steady: LanguageModel
) -> None:
    client, counts, html = client_of(alice), [], ""
    for answers in (2, 8):
        for _ in range(answers):
            cell = ended(open_now(thread, steady), text=BEFORE)
            asked(cell, {}, {}, at=len(BEFORE))
            asked(cell, {}, call=2, at=len(BEFORE))
        with CaptureQueriesContext(
            connection,
        ) as queries:
            html = client.get(reverse("thread", args=[thread.pk])).content.decode()
        counts.append(len(queries))
    assert html.count('class="tool"') == 30
    assert counts[0] == counts[1]
