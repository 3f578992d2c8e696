"""What a person can do about an answer, from pages with and without a script."""

import re

import pytest
from django.contrib.auth.models import User

from tests.conftest import model_at
from tests.fakegateway import DONE, FakeGateway, Script, chunk
from tests.rounds.helpers import answered
from tests.web.asking import path
from tests.web.test_sending import HTMX, signed_in
from threads.models import Cell, LanguageModel, Round, Thread
from threads.rounds import engine

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]

HALF = Script(chunk(content="Half a sen"))
WHOLE = Script(chunk(content="A whole one."), chunk(finish="stop"), DONE)


async def newest() -> Round:
    return await Round.objects.select_related("answer_cell", "user_cell").alatest("pk")


@pytest.fixture
async def model(gateway: FakeGateway, db: None) -> LanguageModel:
    gateway.play(HALF, WHOLE)
    return await model_at("some/model", gateway.base_url)


@pytest.fixture
async def cut(thread: Thread, model: LanguageModel) -> Cell:
    """An answer that was cut off; the next one will be whole."""
    cell = await answered(thread, model, "Why?")
    assert (cell.status, cell.text) == (Cell.Status.ERROR, "Half a sen")
    return cell


async def test_without_a_script_sending_again_leads_to_the_new_answer(
    alice: User, cut: Cell
) -> None:
    client = await signed_in(alice)

    response = await client.post(path("again", cut), {"key": "k"})

    round_ = await newest()
    await engine.wait(round_.pk)
    anchor = f"#cell-{round_.answer_cell_id}"
    assert response["Location"] == f"/threads/{cut.thread_id}/{anchor}"
    page = (await client.get(f"/threads/{cut.thread_id}/")).content.decode()
    assert "<p>A whole one.</p>" in page
    assert "Half a sen" not in page
    assert "Version 2 of 2" in page
    assert page.count(f'formaction="{path("choose", cut)}"') == 1


async def test_the_script_gets_what_takes_the_place_of_the_old_answer(
    alice: User, cut: Cell
) -> None:
    client = await signed_in(alice)

    response = await client.post(path("again", cut), {"key": "k"}, headers=HTMX)

    round_ = await newest()
    html = response.content.decode()
    assert 'hx-swap-oob="beforeend:#cells"' in html
    assert f'id="cell-{round_.answer_cell_id}"' in html
    assert 'data-position="1"' in html
    assert f'id="cell-{cut.question_id}"' not in html
    assert 'class="stop"' in html
    assert re.search(r'id="again-key" name="key" value="(?!k")\w{32}"', html)
    await engine.wait(round_.pk)


async def test_a_double_click_makes_one_round(alice: User, cut: Cell) -> None:
    client = await signed_in(alice)

    first, second = [
        await client.post(path("again", cut), {"key": "k"}) for _ in range(2)
    ]

    assert first["Location"] == second["Location"]
    assert await Round.objects.acount() == 2
    await engine.wait((await newest()).pk)


async def test_another_model_answers_and_is_remembered(
    alice: User, cut: Cell, practice_url: str
) -> None:
    other = await model_at("practice/steady", practice_url)
    client = await signed_in(alice)

    await client.post(path("again", cut), {"model": other.pk})

    round_ = await newest()
    await engine.wait(round_.pk)
    thread = await Thread.objects.aget()
    answer = await Cell.objects.aget(pk=round_.answer_cell_id)
    assert (round_.model_id, thread.model_id) == (other.pk, other.pk)
    assert answer.status == Cell.Status.DONE
    page = (await client.get(f"/threads/{thread.pk}/")).content.decode()
    assert f'<option value="{other.pk}" selected>' in page


async def test_a_changed_message_is_a_version_of_its_own(
    alice: User, cut: Cell
) -> None:
    client = await signed_in(alice)
    question = await Cell.objects.aget(answers=cut)

    page = (await client.get(path("change", question))).content.decode()
    assert ">\nWhy?</textarea>" in page
    await client.post(path("change", question), {"prompt": "Why not?\r\n"})

    round_ = await newest()
    await engine.wait(round_.pk)
    assert (round_.user_cell.text, round_.user_cell.version) == ("Why not?", 2)
    page = (await client.get(f"/threads/{cut.thread_id}/")).content.decode()
    assert ">Why not?</div>" in page
    assert page.count("Version 2 of 2") == 1
    assert f'formaction="{path("choose", question)}"' in page


@pytest.mark.parametrize(
    ("prompt", "words"), [(" ", "Write a message first."), ("x" * 100_001, "100,001")]
)
async def test_a_change_that_cannot_be_sent_is_kept_and_says_why(
    alice: User, cut: Cell, prompt: str, words: str
) -> None:
    client = await signed_in(alice)
    question = await Cell.objects.aget(answers=cut)

    plain = await client.post(path("change", question), {"prompt": prompt})
    scripted = await client.post(
        path("change", question), {"prompt": prompt}, headers=HTMX
    )

    assert (plain.status_code, scripted.status_code) == (422, 422)
    assert words in plain.content.decode()
    assert f">\n{prompt}</textarea>" in plain.content.decode()
    html = scripted.content.decode().strip()
    assert html.startswith('<div id="change-said" class="said" role="alert" hx-swap')
    assert words in html
    assert await Round.objects.acount() == 1
