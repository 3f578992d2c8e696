"""Versions of a message and its answer: chosen, and put in place on every page."""

import re
from collections.abc import Callable

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from tests.rounds.helpers import Page, open_now
from tests.rounds.resubmitting import COMPLETED, again, ended
from tests.rounds.test_ledger import at_once
from threads.models import Cell, LanguageModel, Round, Thread
from threads.rounds import engine
from threads.rounds.broadcast import cells_changed
from threads.rounds.opening import ThreadBusyError
from threads.rounds.versions import NotAVersionError, choose

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def broken(thread: Thread, steady: LanguageModel) -> Cell:
    """An answer that was cut off after a few words."""
    return ended(open_now(thread, steady, "Why?"), text="Half a sen")


def version_of(make: Callable[[], Round], text: str) -> Cell:
    return ended(make(), COMPLETED, text)


def test_an_earlier_version_can_be_chosen_again(thread: Thread, broken: Cell) -> None:
    newer = version_of(lambda: again(broken), "Whole.")

    assert choose(broken) == [broken.pk]

    assert list(thread.cells.shown())[1] == broken
    newer.refresh_from_db()
    assert not newer.is_current
    assert choose(broken) == []


def test_an_earlier_question_comes_with_its_newest_answer(
    thread: Thread, broken: Cell
) -> None:
    second = version_of(lambda: again(broken), "Whole.")
    changed = version_of(lambda: again(second, text="Why not?"), "Because.")
    question = broken.question
    assert question is not None

    assert choose(question) == [question.pk, second.pk]
    assert list(thread.cells.shown()) == [question, second]
    assert choose(changed) == [changed.question_id, changed.pk]
    assert list(thread.cells.shown()) == [changed.question, changed]


def test_a_version_is_chosen_only_while_nothing_is_answered(
    thread: Thread, broken: Cell
) -> None:
    again(broken)

    with pytest.raises(ThreadBusyError):
        choose(broken)
    with pytest.raises(NotAVersionError):
        choose(Cell(pk=broken.pk + 1000, thread=thread))


def test_choices_at_the_same_moment_leave_one_current_answer(
    thread: Thread, broken: Cell
) -> None:
    newer = version_of(lambda: again(broken), "Whole.")

    results = at_once(*[lambda c=c: choose(c) for c in (broken, newer) * 3])

    assert all(isinstance(result, list) for result in results)
    assert thread.cells.shown().filter(role=Cell.Role.ASSISTANT).count() == 1


async def standing(page: Page, *cells: Cell) -> None:
    """Greet as a page that shows these cells, none of them streaming."""
    page.position = max(cell.position for cell in cells)
    await page.connect()
    shows = [cell.pk for cell in cells]
    await page.say({"type": "hello", "position": page.position, "shows": shows})
    await page.read_until(lambda: any("composer-state" in html for html in page.html))


def placed(page: Page) -> list[str]:
    """The ids of the cells that a page was given a place for, as they came."""
    return [
        cell
        for html in page.html
        if "beforeend:#cells" in html
        for cell in re.findall(r'<article class="[^"]*" id="(cell-\d+)"', html)
    ]


@pytest.mark.usefixtures("rounds")
async def test_every_page_puts_the_new_answer_in_the_old_ones_place(
    alice: User, thread: Thread, broken: Cell
) -> None:
    question = await Cell.objects.aget(answers=broken)
    page = Page(alice, thread)
    await standing(page, question, broken)

    round_ = await sync_to_async(again)(broken)
    await engine.start(round_.pk)
    await page.read_to_the_end(round_.answer_cell_id)

    assert placed(page) == [f"cell-{round_.answer_cell_id}"]
    await page.close()


@pytest.mark.usefixtures("rounds")
async def test_every_page_follows_a_changed_question_and_a_chosen_version(
    alice: User, thread: Thread, broken: Cell
) -> None:
    question = await Cell.objects.aget(answers=broken)
    page = Page(alice, thread)
    await standing(page, question, broken)

    round_ = await sync_to_async(again)(broken, text="Why not?")
    await engine.start(round_.pk)
    await page.read_to_the_end(round_.answer_cell_id)
    changed = [f"cell-{round_.user_cell_id}", f"cell-{round_.answer_cell_id}"]
    assert placed(page) == changed

    fresh = await sync_to_async(choose)(question)
    await cells_changed(thread.pk, alice.pk, fresh)
    await page.read_until(lambda: len(placed(page)) == 4)
    assert placed(page) == [*changed, f"cell-{question.pk}", f"cell-{broken.pk}"]
    await page.close()


@pytest.mark.usefixtures("rounds")
async def test_a_page_that_was_away_learns_what_was_replaced_meanwhile(
    alice: User, thread: Thread, broken: Cell, steady: LanguageModel
) -> None:
    question = await Cell.objects.aget(answers=broken)
    newer = await sync_to_async(lambda: ended(again(broken), COMPLETED, "Whole."))()
    page = Page(alice, thread)

    await standing(page, question, broken)

    assert placed(page) == [f"cell-{newer.pk}"]
    await page.close()
    up_to_date = Page(alice, thread)
    await standing(up_to_date, question, newer)
    assert placed(up_to_date) == []
    await up_to_date.close()


@pytest.mark.parametrize("shows", ["1", [-1], [None], list(range(201))])
async def test_what_a_page_says_it_shows_is_checked(
    alice: User, thread: Thread, shows: object
) -> None:
    page = await Page(alice, thread).open()

    await page.say({"type": "hello", "position": 0, "shows": shows})
    await page.read_until(lambda: page.errors)

    assert len(page.errors) == 1
    await page.close()
