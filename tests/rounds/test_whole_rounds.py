"""A whole round, from the question to the terminal write."""

import pytest
from django.contrib.auth.models import User

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Script, chunk
from tests.rounds.helpers import answered
from threads.models import CallAttempt, Cell, JournalEntry, LanguageModel, Thread

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]


async def test_a_question_is_answered_and_the_answer_is_folded_into_its_cell(
    thread: Thread, steady: LanguageModel
) -> None:
    cell = await answered(thread, steady, "What is a round?")

    assert cell.status == Cell.Status.DONE
    assert "What is a round?" in cell.text
    assert cell.round.state == "done"
    assert cell.round.ending == "completed"
    assert await JournalEntry.objects.acount() == 0
    attempt = await CallAttempt.objects.aget(round=cell.round)
    assert (attempt.call, attempt.attempt, attempt.outcome) == (1, 1, "completed")


async def test_the_text_before_a_fault_is_kept_and_the_sentence_stands_apart(
    thread: Thread, practice_url: str
) -> None:
    cell = await answered(thread, await model_at("practice/error-chunk", practice_url))

    assert cell.status == Cell.Status.ERROR
    assert cell.ending == "faulted"
    assert cell.text
    assert "practice/error-chunk" in cell.sentence
    assert cell.sentence not in cell.text


async def test_reasoning_is_kept_beside_the_answer_with_its_duration(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(
        Script(
            chunk(reasoning="Let me "),
            chunk(reasoning="think."),
            chunk(content="Done"),
            chunk(content="."),
            chunk(finish="stop"),
            DONE,
        )
    )

    cell = await answered(thread, await model_at("some/model", gateway.base_url))

    assert (cell.reasoning, cell.text) == ("Let me think.", "Done.")
    assert cell.reasoning_ms is not None


async def test_earlier_answers_and_questions_are_sent_and_sentences_of_ours_are_not(
    thread: Thread, gateway: FakeGateway
) -> None:
    model = await model_at("some/model", gateway.base_url)
    gateway.play(
        Script(chunk(content="Half an ans")),
        Script(chunk(content="Whole"), chunk(finish="stop"), DONE),
    )

    first = await answered(thread, model, "First")
    second = await answered(thread, model, "Second")

    assert (first.status, second.status) == ("error", "done")
    assert gateway.requests[-1].json["messages"] == [
        {"role": "user", "content": "First"},
        {"role": "assistant", "content": "Half an ans"},
        {"role": "user", "content": "Second"},
    ]


async def test_a_model_that_is_not_offered_any_more_is_a_named_condition(
    thread: Thread, steady: LanguageModel
) -> None:
    model = await model_at("no/such-model", "http://127.0.0.1:1/v1")
    await LanguageModel.objects.filter(pk=model.pk).aupdate(is_enabled=False)

    cell = await answered(thread, model)

    assert (cell.status, cell.code) == ("error", "model_not_found")
    assert cell.sentence_key == "config.model_missing"
    assert "no/such-model" in cell.sentence
    assert await CallAttempt.objects.acount() == 0


async def test_without_a_key_nothing_is_sent_beyond_this_machine(
    thread: Thread,
) -> None:
    cell = await answered(
        thread, await model_at("some/model", "https://llm.example/v1")
    )

    assert cell.sentence_key == "config.no_key"
    assert await CallAttempt.objects.acount() == 0


async def test_nul_and_lone_surrogates_in_a_question_do_no_harm(
    thread: Thread, steady: LanguageModel
) -> None:
    cell = await answered(thread, steady, "A\0B\ud83dC")

    question = await Cell.objects.aget(answers=cell)
    assert question.text == "AB\N{REPLACEMENT CHARACTER}C"
    assert cell.status == "done"


async def test_nul_and_lone_surrogates_in_an_answer_do_no_harm(
    thread: Thread, alice: User, gateway: FakeGateway
) -> None:
    gateway.play(
        Script(
            b'data: {"choices":[{"index":0,"delta":{"content":"a\\u0000b\\ud83d"}}]}\n\n',
            b'data: {"choices":[{"index":0,"delta":{"content":"\\ude00 \\udc00"}}]}\n\n',
            chunk(finish="stop"),
            DONE,
        )
    )

    cell = await answered(thread, await model_at("some/model", gateway.base_url))

    assert cell.text == "ab\N{GRINNING FACE} \N{REPLACEMENT CHARACTER}"


async def test_the_thread_is_named_after_its_first_words(
    thread: Thread, steady: LanguageModel
) -> None:
    await answered(
        thread, steady, "Why is the sky blue?\nAnd why is it red at night, " * 4
    )

    await thread.arefresh_from_db()
    assert (
        thread.title == "Why is the sky blue? And why is it red at night, Why is the…"
    )
