"""Cells as a page shows them: from their rows, their journal, their endings."""

import pytest
from django.contrib.auth.models import User
from django.utils import translation

from threads.models import Cell, JournalEntry, Round, Thread
from threads.rendering import (
    cell_html,
    composer_state_html,
    foot_html,
    thread_row_html,
    view_of,
)

pytestmark = pytest.mark.django_db
TEXT, REASONING = JournalEntry.Part.TEXT, JournalEntry.Part.REASONING


@pytest.fixture
def question(thread: Thread) -> Cell:
    return Cell.objects.create(
        thread=thread, position=0, role=Cell.Role.USER, text="Why <b>so</b>?"
    )


@pytest.fixture
def answer(question: Cell) -> Cell:
    return Cell.objects.create(
        thread=question.thread,
        position=1,
        role=Cell.Role.ASSISTANT,
        question=question,
        status=Cell.Status.STREAMING,
    )


def ended(answer: Cell, **fields: object) -> Cell:
    for name, value in fields.items():
        setattr(answer, name, value)
    answer.save()
    return answer


def entry(
    offset: int, text: str, generation: int = 0, part: JournalEntry.Part = TEXT
) -> JournalEntry:
    return JournalEntry(offset=offset, text=text, generation=generation, part=part)


@pytest.mark.parametrize(
    ("entries", "generation", "text", "reasoning"),
    [
        ([], 0, "", ""),
        ([entry(0, "one "), entry(4, "two")], 0, "one two", ""),
        ([entry(4, "two"), entry(0, "one ")], 0, "one two", ""),
        ([entry(0, "old text"), entry(0, "new", 1)], 1, "new", ""),
        ([entry(0, "old"), entry(0, "why", 1, REASONING)], 1, "", "why"),
        ([entry(0, "one"), entry(9, "after a gap")], 0, "one", ""),
        ([entry(0, "x"), entry(0, "hm", part=REASONING)], 0, "x", "hm"),
    ],
)
def test_a_streaming_cell_is_what_its_journal_says(
    answer: Cell,
    entries: list[JournalEntry],
    generation: int,
    text: str,
    reasoning: str,
) -> None:
    view = view_of(answer, entries)

    assert (view.generation, view.offset) == (generation, len(text))
    assert view.tail == text
    assert (view.reasoning, view.reasoning_offset) == (reasoning, len(reasoning))


def test_a_journal_continues_what_was_folded(answer: Cell) -> None:
    ended(answer, text="Folded. ", text_generation=2)

    view = view_of(answer, [entry(8, "Then more.", 2)])

    assert (view.generation, view.tail) == (2, "Folded. Then more.")


def test_an_ended_cell_has_no_tail(answer: Cell) -> None:
    ended(answer, status=Cell.Status.DONE, text="One\n\nTwo")

    view = view_of(answer)

    assert view.blocks == ("<p>One</p>", "<p>Two</p>")
    assert (view.tail, view.open_html, view.offset) == ("", "", 8)


def test_a_cell_tells_the_script_where_it_stands(answer: Cell) -> None:
    html = cell_html(answer, view_of(answer, [entry(0, "One\n\n`Tw", 3)]))

    assert f'id="cell-{answer.pk}" data-cell="{answer.pk}" data-position="1"' in html
    assert 'data-generation="3" data-offset="8" data-reasoning-offset="0"' in html
    assert '<div class="block"><p>One</p></div>' in html
    assert '<div class="tail" data-kind="p">`Tw</div>' in html
    assert 'data-status="streaming"' in html


def test_the_tail_of_code_keeps_its_first_empty_line(answer: Cell) -> None:
    html = cell_html(answer, view_of(answer, [entry(0, "```py\n\nx = '<'")]))

    assert "<code>\nx = &#x27;&lt;&#x27;</code>" in html


def test_a_message_is_shown_as_it_was_written(question: Cell) -> None:
    html = cell_html(question, view_of(question))

    assert "Why &lt;b&gt;so&lt;/b&gt;?" in html


def test_a_bad_ending_is_named_under_the_text_that_is_kept(answer: Cell) -> None:
    ended(
        answer,
        status=Cell.Status.ERROR,
        text="Half a sen",
        ending="truncated",
        code="truncated",
        condition="network",
        sentence_key="stream.truncated",
        sentence_params={"model": "Owl"},
        provider_reason="<upstream> overloaded",
        request_id="req_1",
    )

    html = cell_html(answer, view_of(answer))

    assert html.index("Half a sen") < html.index("interrupted") < html.index("Owl")
    assert "&lt;upstream&gt; overloaded" in html
    assert 'data-copy="req_1"' in html


def test_a_sentence_is_in_the_language_of_the_page(answer: Cell) -> None:
    ended(
        answer,
        status=Cell.Status.ERROR,
        ending="empty",
        code="empty_completion",
        sentence_key="stream.empty",
        sentence_params={"model": "Owl"},
        sentence="frozen",
    )

    with translation.override("de"):
        html = foot_html(answer)

    assert "Owl" in html
    assert "frozen" not in html


def test_a_stopped_answer_says_so_and_nothing_else(answer: Cell) -> None:
    html = foot_html(ended(answer, status=Cell.Status.STOPPED, ending="stopped"))

    assert "Stopped" in html
    assert "ending-body" not in html


def test_an_answer_at_its_limit_is_whole_with_a_note(answer: Cell) -> None:
    ended(
        answer,
        status=Cell.Status.DONE,
        text="Long",
        ending="length",
        sentence_key="answer.cut_length",
        sentence_params={"model": "Owl"},
    )

    html = foot_html(answer)

    assert "ending-note" in html
    assert "interrupted" not in html


def test_pieces_for_the_socket_name_their_place(answer: Cell) -> None:
    thread = answer.thread

    assert 'hx-swap-oob="outerHTML"' in foot_html(answer, swap="outerHTML")
    assert "data-running" not in composer_state_html(thread, None, swap="outerHTML")
    assert 'form="stop"' in composer_state_html(thread, Round(), swap="outerHTML")


def test_a_row_tells_what_its_thread_is_doing(answer: Cell, alice: User) -> None:
    thread = answer.thread
    assert "row-running" not in thread_row_html(thread)

    round_ = Round.objects.create(
        thread=thread,
        user_cell_id=answer.question_id or 0,
        answer_cell=answer,
        model_requested="m",
        locale="en",
    )
    assert "row-running" in thread_row_html(thread, swap="outerHTML")

    Round.objects.filter(pk=round_.pk).delete()
    ended(answer, status=Cell.Status.ERROR, ending="faulted", code="x")
    assert "row-ended" in thread_row_html(thread)
