"""Asking again: one new round, the old answer kept, and nothing done twice."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from pytest_django import Settings

from tests.conftest import model_at, model_now
from tests.fakegateway import DONE, FakeGateway, Script, chunk
from tests.rounds.helpers import answered, cell_of, open_now
from tests.rounds.resubmitting import COMPLETED, again, ended
from tests.rounds.test_ledger import at_once
from threads import provision
from threads.models import (
    CallAttempt,
    Cell,
    LanguageModel,
    Round,
    Thread,
    ToolRun,
)
from threads.rounds import engine, ledger
from threads.rounds.opening import ThreadBusyError
from threads.rounds.resubmit import (
    EffectsError,
    ModelNotOfferedError,
    NotLastError,
    NotTheirsError,
    ReplacedError,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def broken(thread: Thread, steady: LanguageModel) -> Cell:
    """An answer that was cut off after a few words."""
    return ended(open_now(thread, steady, "Why?"), text="Half a sen")


def test_the_same_question_is_asked_again_and_the_old_answer_is_kept(
    thread: Thread, broken: Cell, alice: User
) -> None:
    round_ = again(broken, locale="de", by=alice)

    broken.refresh_from_db()
    answer = round_.answer_cell
    assert (round_.state, round_.locale) == (Round.State.QUEUED, "de")
    assert round_.resubmitted_from == broken.round
    assert round_.user_cell_id == broken.question_id
    assert (answer.position, answer.version, answer.is_current) == (1, 2, True)
    assert answer.status == Cell.Status.STREAMING
    assert (broken.text, broken.is_current) == ("Half a sen", False)
    assert list(thread.cells.shown()) == [round_.user_cell, answer]


def test_model_and_agent_stay_unless_another_model_is_chosen(
    thread: Thread, broken: Cell, practice_url: str
) -> None:
    other = model_now("practice/markdown", practice_url)

    same = again(broken)
    assert same.model == broken.round.model
    ledger.request_stop(same.pk)
    another = again(same.answer_cell, model=other)

    thread.refresh_from_db()
    assert (another.model, another.model_requested) == (other, "practice/markdown")
    assert thread.model == other


@pytest.mark.parametrize("keys", [["k"] * 4, [None] * 4, ["a", "b", "c", "d"]])
def test_clicks_at_the_same_moment_make_one_round(
    broken: Cell, keys: list[str | None]
) -> None:
    results = at_once(*[lambda k=k: again(broken, submission_key=k) for k in keys])

    made = {result.pk for result in results if isinstance(result, Round)}
    refused = [result for result in results if not isinstance(result, Round)]
    assert len(made) == 1
    assert all(isinstance(result, ThreadBusyError) for result in refused)
    assert len(refused) == (0 if keys == ["k"] * 4 else 3)
    assert Round.objects.count() == 2


def test_a_click_that_comes_late_finds_the_round_it_made(broken: Cell) -> None:
    first = again(broken, submission_key="k")
    ended(first)

    assert again(broken, submission_key="k") == first


def test_a_key_that_was_used_for_something_else_does_not_count(broken: Cell) -> None:
    first = again(broken, submission_key="k")
    ended(first)

    second = again(first.answer_cell, submission_key="k")

    assert second != first
    assert second.answer_cell.version == 3


def test_while_the_thread_is_answered_nothing_is_asked_again(
    broken: Cell, steady: LanguageModel
) -> None:
    running = open_now(broken.thread, steady, "Next")

    with pytest.raises(ThreadBusyError) as refused:
        again(broken)

    assert refused.value.round_id == running.pk
    broken.refresh_from_db()
    assert broken.is_current


def test_an_answer_that_was_replaced_is_not_replaced_again(broken: Cell) -> None:
    newer = again(broken)
    ended(newer)

    with pytest.raises(ReplacedError) as refused:
        again(broken)

    assert refused.value.current_id == newer.answer_cell_id
    assert Round.objects.count() == 2


def test_a_broken_answer_in_the_middle_may_be_asked_again(
    thread: Thread, broken: Cell, steady: LanguageModel
) -> None:
    later = open_now(thread, steady, "Next")
    ended(later, COMPLETED, "Fine.")

    round_ = again(broken)

    positions = thread.cells.shown().values_list("position", "pk")
    assert dict(positions)[1] == round_.answer_cell_id
    assert dict(positions)[3] == later.answer_cell_id


def test_a_whole_answer_in_the_middle_is_left_alone(
    thread: Thread, steady: LanguageModel
) -> None:
    whole = ended(open_now(thread, steady), COMPLETED, "Fine.")
    ended(open_now(thread, steady, "Next"), COMPLETED, "Fine too.")

    with pytest.raises(NotLastError):
        again(whole)

    assert Round.objects.count() == 2


def test_a_changed_question_is_a_new_version_of_it(
    thread: Thread, broken: Cell
) -> None:
    earlier = again(broken)
    ended(earlier)

    round_ = again(earlier.answer_cell, text="Why \0not?")

    question = round_.user_cell
    assert (question.text, question.version) == ("Why not?", 2)
    assert (question.position, round_.answer_cell.position) == (0, 1)
    assert round_.answer_cell.version == 3
    assert round_.resubmitted_from == earlier
    assert list(thread.cells.shown()) == [question, round_.answer_cell]
    assert thread.cells.filter(is_current=False).count() == 3


def test_a_question_that_stayed_the_same_is_no_new_version(broken: Cell) -> None:
    round_ = again(broken, text="Why?")

    assert round_.user_cell_id == broken.question_id


def test_saving_a_change_twice_makes_one_round(broken: Cell) -> None:
    results = at_once(*[lambda: again(broken, text="Why not?", submission_key="k")] * 3)

    assert len({result.pk for result in results if isinstance(result, Round)}) == 1
    assert Cell.objects.filter(role=Cell.Role.USER).count() == 2


def test_only_the_last_question_can_be_changed(
    thread: Thread, broken: Cell, steady: LanguageModel
) -> None:
    ended(open_now(thread, steady, "Next"))

    with pytest.raises(NotLastError):
        again(broken, text="Why not?")

    assert not Cell.objects.filter(text="Why not?").exists()


def test_a_model_that_is_not_offered_any_more_is_named(
    broken: Cell, steady: LanguageModel
) -> None:
    LanguageModel.objects.filter(pk=steady.pk).update(is_enabled=False)

    for model in (None, LanguageModel.objects.get(pk=steady.pk)):
        with pytest.raises(ModelNotOfferedError):
            again(broken, model=model)

    broken.refresh_from_db()
    assert broken.is_current


def test_a_deleted_thread_is_not_asked_anything(thread: Thread, broken: Cell) -> None:
    Thread.objects.filter(pk=thread.pk).update(deleted_at="2026-01-01T00:00Z")

    with pytest.raises(Thread.DoesNotExist):
        again(broken)


def test_strangers_may_not_and_operators_may(
    broken: Cell, bob: User, admin_user: User
) -> None:
    with pytest.raises(NotTheirsError):
        again(broken, by=bob)

    assert again(broken, by=admin_user).user_cell_id == broken.question_id


@pytest.mark.parametrize("state", ["ok", "error", "unknown"])
def test_tools_that_changed_something_are_named_before_they_may_run_again(
    broken: Cell, state: str
) -> None:
    for position, (name, has_effects, became) in enumerate(
        [
            ("mail", True, state),
            ("mail", True, "ok"),
            ("look", False, "ok"),
            ("pay", True, "not_run"),
        ]
    ):
        ToolRun.objects.create(
            round=broken.round,
            call=1,
            position=position,
            name=name,
            has_effects=has_effects,
            state=became,
        )

    with pytest.raises(EffectsError) as refused:
        again(broken)

    assert refused.value.tools == ("mail",)
    broken.refresh_from_db()
    assert broken.is_current
    assert again(broken, confirmed=True).resubmitted_from == broken.round


@pytest.mark.usefixtures("rounds")
async def test_the_model_hears_what_stands_before_the_question_and_no_more(
    thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(
        Script(chunk(content="One."), chunk(finish="stop"), DONE),
        Script(chunk(content="Cut")),
        Script(chunk(content="Three."), chunk(finish="stop"), DONE),
        Script(chunk(content="Whole."), chunk(finish="stop"), DONE),
    )
    model = await model_at("some/model", gateway.base_url)
    await answered(thread, model, "First")
    cut = await answered(thread, model, "Second")
    assert (cut.status, cut.text) == (Cell.Status.ERROR, "Cut")
    await answered(thread, model, "Third")

    round_ = await sync_to_async(again)(cut)
    await engine.start(round_.pk)
    await engine.wait(round_.pk)

    asked = gateway.requests[-1].json["messages"]
    assert [message["content"] for message in asked] == ["First", "One.", "Second"]
    assert (await cell_of(round_)).text == "Whole."


@pytest.mark.parametrize("host", ["here.example", "elsewhere.example"])
def test_what_was_said_to_one_gateway_is_not_sent_to_another(
    broken: Cell, host: str, settings: Settings
) -> None:
    provision.ensure_gateways()
    settings.OPENAI_BASE_URL = "https://here.example/v1"
    CallAttempt.objects.create(
        round=broken.round, call=1, attempt=1, host=host,
        outcome="faulted", ending="truncated", stream_state="partial",
    )  # fmt: skip
    LanguageModel.objects.all().delete()

    if host == "elsewhere.example":
        with pytest.raises(ModelNotOfferedError):
            again(broken)
    else:
        assert again(broken).model is None
