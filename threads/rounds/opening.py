"""Making a round: a question, its empty answer, and the queue's row, in one write.

A message that is sent and an answer that is asked for again are made by the same
`open_once`, so both wait for an idle thread and both are made once for one click.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from django.db import IntegrityError, transaction
from django.db.models import Max, Q
from django.utils import timezone

from threads.core.answer import clean
from threads.models import Agent, Cell, LanguageModel, Round, Route, Thread
from threads.models.conversation import TITLE_LENGTH


class ThreadBusyError(Exception):
    """The thread is being answered; one round at a time."""

    def __init__(self, round_id: int) -> None:
        super().__init__(f"round {round_id} is under way")
        self.round_id = round_id


@dataclass(frozen=True, slots=True)
class Terms:
    """What a round is asked with; `locale` is that of its frozen sentence.

    Of a `route`, `model` is the one that is asked first.

    The same sending with the same submission key opens one round.
    """

    model: LanguageModel | None
    model_requested: str
    locale: str
    attended: bool
    agent: Agent | None = None
    submission_key: str | None = None
    resubmitted_from: Round | None = None
    is_buffered: bool = False
    route: Route | None = None


def open_round(
    *,
    thread: Thread,
    prompt: str,
    model: LanguageModel | None,
    model_requested: str,
    locale: str,
    attended: bool,
    agent: Agent | None = None,
    submission_key: str | None = None,
    is_buffered: bool = False,
    route: Route | None = None,
) -> Round:
    """Write a question, its empty answer and the queued round that will fill it.

    The same message with the same submission key opens one round, however often
    it is sent.

    Raises:
        ThreadBusyError: another round of this thread is queued or running.
    """
    prompt = clean(prompt)
    terms = Terms(
        model,
        model_requested,
        locale,
        attended,
        agent,
        submission_key,
        is_buffered=is_buffered,
        route=route,
    )
    return open_once(
        thread,
        terms,
        same=Q(user_cell__text=prompt),
        write_cells=lambda: _add_cells(thread, prompt),
    )


def open_once(
    thread: Thread,
    terms: Terms,
    *,
    same: Q,
    write_cells: Callable[[], tuple[Cell, Cell]],
) -> Round:
    """Open a round in an idle thread: the one way in which a round is made.

    `same` tells a sending that is repeated from another one under a key that was
    used. `write_cells` gives the question and its empty answer; it runs under the
    thread's lock, and what it raises undoes everything.

    Raises:
        ThreadBusyError: another round of this thread is queued or running.
    """
    try:
        with transaction.atomic():
            Thread.objects.select_for_update().get(pk=thread.pk)
            known = _already_open(thread, terms, same)
            if known is not None:
                return known
            if _key_is_used(thread, terms):
                # A page that was copied together with its key: another message
                # is another message.
                terms = replace(terms, submission_key=None)
            question, answer = write_cells()
            return Round.objects.create(
                thread=thread,
                user_cell=question,
                answer_cell=answer,
                **{name: getattr(terms, name) for name in Terms.__slots__},
            )
    except IntegrityError:
        known = _already_open(thread, terms, same)
        if known is None:
            raise
        return known


def _already_open(thread: Thread, terms: Terms, same: Q) -> Round | None:
    if terms.submission_key is not None:
        sent = Round.objects.filter(thread=thread, submission_key=terms.submission_key)
        known = sent.filter(same).first()
        if known is not None:
            return known
    active = Round.objects.filter(thread=thread, state__in=Round.ACTIVE).first()
    if active is not None:
        raise ThreadBusyError(active.pk)
    return None


def _key_is_used(thread: Thread, terms: Terms) -> bool:
    key = terms.submission_key
    return Round.objects.filter(thread=thread, submission_key=key).exists()


def _add_cells(thread: Thread, prompt: str) -> tuple[Cell, Cell]:
    last = Cell.objects.filter(thread=thread).aggregate(last=Max("position"))["last"]
    question = add_question(thread, 0 if last is None else last + 1, prompt)
    answer = add_answer(question)
    # Only an empty title is filled: the caller's row may be older than a rename.
    stored = Thread.objects.filter(pk=thread.pk)
    stored.update(updated_at=answer.created_at)
    stored.filter(title="").update(title=title_of(prompt))
    return question, answer


def add_question(thread: Thread, position: int, prompt: str) -> Cell:
    """Write a person's message as the newest version of its place."""
    now = timezone.now()
    return Cell.objects.create(
        thread=thread,
        position=position,
        version=_next_version(thread, position),
        role=Cell.Role.USER,
        text=prompt,
        created_at=now,
        ended_at=now,
    )


def add_answer(question: Cell) -> Cell:
    """Write an empty answer, to be streamed, as the newest version of its place."""
    position = question.position + 1
    return Cell.objects.create(
        thread=question.thread,
        position=position,
        version=_next_version(question.thread, position),
        role=Cell.Role.ASSISTANT,
        question=question,
        status=Cell.Status.STREAMING,
        created_at=timezone.now(),
    )


def _next_version(thread: Thread, position: int) -> int:
    cells = Cell.objects.filter(thread=thread, position=position)
    return (cells.aggregate(newest=Max("version"))["newest"] or 0) + 1


def title_of(prompt: str) -> str:
    """Make a title of a prompt's first words."""
    words = " ".join(prompt[: TITLE_LENGTH * 4].split())
    if len(words) <= TITLE_LENGTH:
        return words
    head = words[:TITLE_LENGTH]
    whole_words = head.rsplit(" ", 1)[0] if " " in head else head
    return f"{whole_words}…"
