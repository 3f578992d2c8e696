"""What a person can do about an answer, from pages with and without a script."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.conftest import model_at, model_now
from tests.fakegateway import DONE, FakeGateway, Script, chunk
from tests.rounds.helpers import answered, open_now
from tests.rounds.test_resubmit import COMPLETED, TRUNCATED, again, ended
from tests.web.test_sending import HTMX, signed_in
from threads.core.faults import Condition, Ending, Verdict
from threads.models import Cell, LanguageModel, Round, Thread, ToolRun
from threads.rendering import foot_html, versions_of
from threads.rounds import engine

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]

HALF = Script(chunk(content="Half a sen"))
WHOLE = Script(chunk(content="A whole one."), chunk(finish="stop"), DONE)


def path(name: str, cell: Cell) -> str:
    return reverse(f"cell-{name}", args=[cell.thread_id, cell.pk])


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


def client_of(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


@pytest.fixture
def broken(thread: Thread, steady: LanguageModel) -> Cell:
    """The same ending, written without a model."""
    return ended(open_now(thread, steady, "Why?"), TRUNCATED, "Half a sen")


@pytest.mark.parametrize("name", ["again", "change", "choose", "details"])
def test_a_strangers_cell_is_not_there(bob: User, broken: Cell, name: str) -> None:
    cell = broken.question if name == "change" else broken
    assert cell is not None

    assert client_of(bob).get(path(name, cell)).status_code == 404
    if name != "details":
        assert client_of(bob).post(path(name, cell)).status_code == 404
    assert Round.objects.count() == 1


@pytest.mark.parametrize("name", ["again", "change", "choose", "details"])
def test_a_cell_of_the_other_kind_of_another_or_of_a_deleted_thread_is_not_there(
    alice: User, broken: Cell, name: str
) -> None:
    client, question = client_of(alice), broken.question
    assert question is not None
    other = Thread.objects.create(owner=alice)
    method = client.get if name == "details" else client.post

    assert (
        method(reverse(f"cell-{name}", args=[other.pk, broken.pk])).status_code == 404
    )
    if name != "choose":
        wrong = broken if name == "change" else question
        assert method(path(name, wrong)).status_code == 404
    Thread.objects.filter(pk=broken.thread_id).update(deleted_at="2026-01-01T00:00Z")
    assert method(path(name, broken)).status_code == 404


@pytest.mark.parametrize("name", ["again", "change", "choose"])
def test_a_click_from_another_site_does_nothing(
    alice: User, broken: Cell, name: str
) -> None:
    cell = broken.question if name == "change" else broken
    assert cell is not None

    response = client_of(alice, enforce_csrf_checks=True).post(
        path(name, cell), {"prompt": "x"}
    )

    assert response.status_code == 403
    assert Round.objects.count() == 1


def test_the_form_without_a_script_carries_its_token(alice: User, broken: Cell) -> None:
    client = client_of(alice, enforce_csrf_checks=True)
    page = client.get(path("again", broken)).content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token is not None

    fields = {"csrfmiddlewaretoken": token[1], "model": broken.round.model_id}
    response = client.post(path("again", broken), fields)

    assert response.status_code == 302
    assert Round.objects.count() == 2


def test_while_an_answer_is_written_nothing_is_sent_again(
    alice: User, broken: Cell, steady: LanguageModel
) -> None:
    running = open_now(broken.thread, steady, "Next")
    client, question = client_of(alice), broken.question
    assert question is not None
    fields = {"prompt": "Why not?"}

    for name, cell in (("again", broken), ("change", question)):
        plain = client.post(path(name, cell), fields)
        scripted = client.post(path(name, cell), fields, headers=HTMX)
        assert (plain.status_code, scripted.status_code) == (422, 422)
        for response in (plain, scripted):
            assert "The model is still answering." in response.content.decode()
    for headers in ({}, HTMX):
        response = client.post(path("choose", broken), headers=headers)
        assert response.status_code == 422
        assert "The model is still answering." in response.content.decode()
    streaming = client.post(path("again", running.answer_cell), headers=HTMX)
    assert streaming.status_code == 422
    assert Round.objects.count() == 2


def test_what_was_replaced_or_is_in_the_middle_says_so(
    alice: User, broken: Cell, steady: LanguageModel
) -> None:
    client = client_of(alice)
    whole = ended(again(broken), COMPLETED, "Whole.")

    response = client.post(path("again", broken), headers=HTMX)
    assert "replaced already" in response.content.decode()
    assert f'id="cell-{broken.pk}-said"' in response.content.decode()

    ended(open_now(broken.thread, steady, "Next"))
    response = client.post(path("again", whole), headers=HTMX)
    assert "only at the end of a thread" in response.content.decode()
    assert response.status_code == 422


def test_a_model_that_is_gone_is_named_and_another_can_be_chosen(
    alice: User, broken: Cell, practice_url: str
) -> None:
    other = model_now("practice/markdown", practice_url)
    LanguageModel.objects.exclude(pk=other.pk).update(is_enabled=False)
    client = client_of(alice)

    gone = client.post(path("again", broken))
    never = client.post(path("again", broken), {"model": other.pk + 99})

    for response in (gone, never):
        assert response.status_code == 422
        page = response.content.decode()
        assert "This model is not offered any more. Choose another one." in page
        assert f'<option value="{other.pk}"' in page
    assert Round.objects.count() == 1


@pytest.mark.parametrize("headers", [{}, HTMX])
@pytest.mark.parametrize("name", ["again", "change"])
def test_tools_that_change_something_are_named_and_wait_for_a_second_click(
    alice: User,
    broken: Cell,
    steady: LanguageModel,
    name: str,
    headers: dict[str, str],
) -> None:
    for position, tool in enumerate(["send_mail", "book<b>"]):
        ToolRun.objects.create(
            round=broken.round,
            call=1,
            position=position,
            name=tool,
            has_effects=True,
            state=ToolRun.State.UNKNOWN,
        )
    client, question = client_of(alice), broken.question
    assert question is not None
    address = path(name, question if name == "change" else broken)
    fields = {"prompt": "Why not?", "model": str(steady.pk)}

    warned = client.post(address, fields, headers=headers)

    html = warned.content.decode()
    assert warned.status_code == 422
    assert "used tools that change something outside: send_mail, book&lt;b&gt;" in html
    assert '<input type="hidden" name="confirmed" value="1">' in html
    assert "Send again anyway" in html
    if name == "again" and headers:
        assert f'<input type="hidden" name="model" value="{steady.pk}">' in html
    assert Round.objects.count() == 1
    done = client.post(address, fields | {"confirmed": "1"}, headers=headers)
    assert done.status_code == (200 if headers else 302)
    assert Round.objects.count() == 2


def test_an_earlier_version_is_shown_whole_and_counts_again(
    alice: User, broken: Cell
) -> None:
    newer = ended(again(broken), COMPLETED, "Whole.")
    client = client_of(alice)

    response = client.post(path("choose", broken))

    where = reverse("thread", args=[broken.thread_id])
    assert response["Location"] == f"{where}#cell-{broken.pk}"
    page = client.get(where).content.decode()
    assert "Half a sen" in page
    assert "interrupted" in page
    assert "Version 1 of 2" in page
    assert "Whole." not in page
    scripted = client.post(path("choose", newer), headers=HTMX).content.decode()
    assert f'id="cell-{newer.pk}"' in scripted
    assert "Version 2 of 2" in scripted
    # Chosen already: said again, and nothing is changed.
    assert (
        f'id="cell-{newer.pk}"'
        in client.post(path("choose", newer), headers=HTMX).content.decode()
    )


def test_signing_in_again_leads_from_a_choice_back_to_the_thread(
    alice: User, broken: Cell
) -> None:
    response = client_of(alice).get(path("choose", broken))

    assert response["Location"] == reverse("thread", args=[broken.thread_id])


def verdict(condition: Condition, *, transient: bool = False) -> Verdict:
    return Verdict("some_code", Ending.FAULTED, condition, transient=transient)


AGAIN, MODEL, CHANGE = "Send again", "Choose another model", "Change the message"


@pytest.mark.parametrize(
    ("condition", "transient", "offered"),
    [
        (Condition.PROVIDER, True, [AGAIN, MODEL]),
        (Condition.PROVIDER, False, [AGAIN, MODEL]),
        (Condition.NETWORK, False, [AGAIN, MODEL]),
        (Condition.UNKNOWN, False, [AGAIN, MODEL]),
        (Condition.OUR_BUG, False, [AGAIN, MODEL]),
        (Condition.REQUEST, False, [CHANGE, MODEL]),
        (Condition.ACCOUNT_KEY, False, [MODEL]),
        (Condition.OUR_CONFIG, False, [MODEL]),
    ],
)
def test_each_condition_offers_what_helps_and_the_best_first(
    thread: Thread,
    steady: LanguageModel,
    practice_url: str,
    condition: Condition,
    transient: bool,
    offered: list[str],
) -> None:
    model_now("practice/markdown", practice_url)
    cell = ended(open_now(thread, steady), verdict(condition, transient=transient))

    html = foot_html(cell)

    buttons = html.split('class="remedies')[1].split("</div>")[0]
    assert re.findall(r">(\w[\w ]+)</", buttons) == offered
    # What does not help is no button here; the quiet line has it all the same.
    assert ("Answer again" in html) == (AGAIN not in offered)


def test_with_one_model_there_is_no_other_to_choose(
    thread: Thread, steady: LanguageModel
) -> None:
    cell = ended(open_now(thread, steady))
    client = client_of(thread.owner)
    page = client.get(reverse("thread", args=[thread.pk])).content.decode()

    for html in (foot_html(cell), page):
        assert "Send again" in html
        assert "data-models" not in html
        assert 'id="models"' not in html


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (COMPLETED, "Answer again"),
        (Verdict("stopped", Ending.STOPPED, Condition.UNKNOWN), "Send again"),
    ],
)
def test_every_answer_can_be_had_again_quietly(
    thread: Thread, steady: LanguageModel, outcome: Verdict, words: str
) -> None:
    html = foot_html(ended(open_now(thread, steady), outcome, "Text."))

    assert "remedies" not in html
    assert f">{words}</button>" in html


def test_versions_cost_one_query_however_many_cells(
    thread: Thread,
    steady: LanguageModel,
    broken: Cell,
    django_assert_num_queries: Any,
) -> None:
    ended(again(broken))
    for _ in range(5):
        ended(open_now(thread, steady), COMPLETED, "Fine.")
    cells = list(thread.cells.shown())

    with django_assert_num_queries(1):
        versions = versions_of(cells)

    assert [(v.number, v.count, v.earlier) for v in versions.values()] == [
        (2, 2, broken.pk)
    ]
