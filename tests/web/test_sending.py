"""Sending and stopping from a page, with a gateway that answers."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from tests.conftest import model_at
from tests.fakegateway import FakeGateway
from tests.rounds.test_frames import spoken
from threads.forms import LONGEST_MESSAGE
from threads.models import Cell, LanguageModel, Round, Thread
from threads.rounds import engine

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rounds"),
]
HTMX = {"HX-Request": "true"}


async def signed_in(user: User) -> AsyncClient:
    client = AsyncClient()
    await sync_to_async(client.force_login)(user)
    return client


async def last_round() -> Round:
    return await Round.objects.select_related("answer_cell").alatest("pk")


async def test_a_message_on_the_home_page_begins_a_thread(
    alice: User, gateway: FakeGateway
) -> None:
    gateway.play(spoken("Good day."))
    model = await model_at("m", gateway.base_url)
    client = await signed_in(alice)

    response = await client.post(
        "/", {"prompt": "Hello\r\nthere", "model": model.pk, "key": "k1"}
    )

    round_ = await last_round()
    await engine.wait(round_.pk)
    thread = await Thread.objects.aget()
    assert response["Location"] == f"/threads/{thread.pk}/"
    assert thread.model_id == model.pk
    assert thread.title == "Hello there"
    page = await client.get(response["Location"])
    assert "<p>Good day.</p>" in page.content.decode()


async def test_the_same_sending_makes_one_thread(
    alice: User, gateway: FakeGateway
) -> None:
    gateway.play(spoken("Good day."))
    model = await model_at("m", gateway.base_url)
    client = await signed_in(alice)
    fields = {"prompt": "Hello", "model": model.pk, "key": "k1"}

    first, second = [await client.post("/", fields) for _ in range(2)]

    assert first["Location"] == second["Location"]
    assert await Thread.objects.acount() == 1
    await engine.wait((await last_round()).pk)


async def test_without_script_sending_leads_back_to_the_thread(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(spoken("Good day."))
    model = await model_at("m", gateway.base_url)
    client = await signed_in(alice)

    response = await client.post(
        f"/threads/{thread.pk}/send/", {"prompt": "Hello", "model": model.pk}
    )

    round_ = await last_round()
    assert response["Location"] == f"/threads/{thread.pk}/#cell-{round_.user_cell_id}"
    await engine.wait(round_.pk)


async def test_the_script_gets_cells_button_and_a_fresh_key(
    alice: User, thread: Thread, gateway: FakeGateway
) -> None:
    gateway.play(spoken("Good day."))
    model = await model_at("m", gateway.base_url)
    client = await signed_in(alice)

    response = await client.post(
        f"/threads/{thread.pk}/send/",
        {"prompt": "Hello", "model": model.pk, "key": "k1"},
        headers=HTMX,
    )

    round_ = await last_round()
    html = response.content.decode()
    assert 'hx-swap-oob="beforeend:#cells"' in html
    assert f'id="cell-{round_.user_cell_id}"' in html
    assert f'id="cell-{round_.answer_cell_id}"' in html
    assert 'id="composer-state"' in html
    assert 'id="submission-key"' in html
    assert 'value="k1"' not in html
    await engine.wait(round_.pk)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("", "Write a message first."),
        (" \n ", "Write a message first."),
        ("x" * (LONGEST_MESSAGE + 1), "100,001"),
    ],
)
@pytest.mark.parametrize("path", ["/", "send/"])
async def test_a_message_that_cannot_be_sent_says_why_and_is_kept(
    alice: User,
    thread: Thread,
    steady: LanguageModel,
    prompt: str,
    words: str,
    path: str,
) -> None:
    client = await signed_in(alice)
    target = path if path == "/" else f"/threads/{thread.pk}/{path}"

    response = await client.post(target, {"prompt": prompt, "model": steady.pk})

    assert response.status_code == 422
    page = response.content.decode()
    assert words in page
    assert f">{prompt}</textarea>" in page
    assert not await Round.objects.aexists()


async def test_a_refusal_tells_the_script_only_the_reason(
    alice: User, thread: Thread, steady: LanguageModel
) -> None:
    client = await signed_in(alice)

    response = await client.post(
        f"/threads/{thread.pk}/send/",
        {"prompt": "Hello", "model": steady.pk + 1},
        headers=HTMX,
    )

    assert response.status_code == 422
    html = response.content.decode()
    assert "not offered any more" in html
    assert html.strip().startswith('<p id="composer-error"')


async def test_a_thread_that_is_being_answered_keeps_the_next_message(
    alice: User, thread: Thread
) -> None:
    question = await Cell.objects.acreate(thread=thread, position=0, role="user")
    answer = await Cell.objects.acreate(
        thread=thread,
        position=1,
        role="assistant",
        question=question,
        status="streaming",
    )
    await Round.objects.acreate(
        thread=thread,
        user_cell=question,
        answer_cell=answer,
        model_requested="m",
        locale="en",
    )
    client = await signed_in(alice)

    response = await client.post(f"/threads/{thread.pk}/send/", {"prompt": "Next"})

    page = response.content.decode()
    assert response.status_code == 422
    assert "The model is still answering." in page
    assert ">Next</textarea>" in page
    assert 'class="stop"' in page


@pytest.mark.parametrize(
    "fields",
    [{}, {"generation": "0", "offset": "3"}, {"generation": "-1", "offset": "9" * 40}],
)
async def test_stopping_where_nothing_runs_is_harmless(
    alice: User, thread: Thread, fields: dict[str, str]
) -> None:
    client = await signed_in(alice)

    plain = await client.post(f"/threads/{thread.pk}/stop/", fields)
    scripted = await client.post(f"/threads/{thread.pk}/stop/", fields, headers=HTMX)

    assert (plain.status_code, scripted.status_code) == (302, 204)
