"""`manage.py ask`: unattended rounds from the command line (design section 9)."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandParser
from django.db import OperationalError
from django.utils import translation
from django.utils.translation import gettext as _

from threads import provision
from threads.choices import ROUTE
from threads.core.answer import clean
from threads.management.asks import (
    Ask,
    batch_lines,
    checked_locale,
    checked_name,
    checked_prompt,
    chosen_model,
    chosen_route,
    one_line,
    read_batch,
    unusable,
)
from threads.models import Agent, Round, Thread
from threads.rounds import engine, ledger
from threads.rounds.database import in_database
from threads.rounds.hub import Watcher, hub
from threads.rounds.report import Report, report

NAMED_CONDITION = 3
DEFAULT_USER = "ask"


class Command(BaseCommand):
    """Runs one round, or a batch, in this process; needs no running server."""

    generation = 0
    # What stands on the page, as far as it was written; and what was withdrawn.
    written = broken_off = ""
    help = "Asks a model and prints its answer; exit status 3 when it ended badly."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options of design section 9."""
        parser.add_argument("prompt", nargs="?", help="what to ask")
        parser.add_argument(
            "--model",
            default="",
            metavar="WIRE_ID",
            help="the model's id at its gateway, or route:NAME",
        )
        parser.add_argument(
            "--agent", default="", metavar="NAME", help="an agent's identifier"
        )
        parser.add_argument("--locale", default=settings.LANGUAGE_CODE, metavar="L")
        parser.add_argument(
            "--user", default=DEFAULT_USER, metavar="NAME", help="whose thread it is"
        )
        parser.add_argument(
            "--thread", type=int, metavar="ID", help="go on in this thread"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--batch",
            metavar="FILE",
            help="JSON lines of id, prompt, model, locale; - for stdin",
        )
        parser.add_argument(
            "--buffered",
            action="store_true",
            help="show nothing before an answer is whole",
        )
        parser.add_argument("--concurrency", type=int, default=8, metavar="N")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run what was asked and leave with the status that tells how it ended."""
        if (options["batch"] is None) == (options["prompt"] is None):
            raise unusable("Give either a prompt or --batch.")
        if options["concurrency"] < 1:
            raise unusable("--concurrency must be 1 or more.")
        try:
            self.user = provision.user_named(options["user"])
        except ValueError as error:
            raise unusable(str(error)) from error
        except OperationalError as error:
            raise unusable(
                f"The database is not ready ({error}). Run: manage.py migrate"
            ) from error
        self.agent = self._agent(clean(options["agent"]))
        self.is_buffered: bool = options["buffered"]
        provision.ensure_gateways()
        with quiet_log(options["verbosity"]):
            statuses = self._answer(options)
        if any(status != "done" for status in statuses):
            sys.exit(NAMED_CONDITION)

    def _answer(self, options: dict[str, Any]) -> list[str]:
        if options["batch"] is not None:
            return self._batch(options)
        ask = Ask(
            checked_prompt(options["prompt"]),
            checked_name(options["model"]),
            checked_locale(options["locale"]),
        )
        return [asyncio.run(self._one(ask, options))]

    def _agent(self, slug: str) -> Agent | None:
        if not slug:
            return None
        agent = Agent.objects.filter(slug=slug, is_enabled=True).first()
        if agent is None:
            raise unusable(f"There is no agent {slug!r}.")
        return agent

    async def _one(self, ask: Ask, options: dict[str, Any]) -> str:
        async with closing_engine():
            round_id, thread_id = await in_database(self._open, ask, options["thread"])
            if options["json"]:
                outcome = await settled(round_id, ask.id)
                self._write(one_line(outcome) + "\n")
            else:
                await self._show(round_id, thread_id, ask.locale)
                outcome = await in_database(read_report, round_id, ask.id)
                self._finish_text(outcome)
        return str(outcome["status"])

    async def _show(self, round_id: int, thread_id: int, locale: str) -> None:
        """Run a round and write its answer as it comes."""
        watcher = hub().watch(thread_id)
        writing = asyncio.ensure_future(self._write_on(watcher, locale))
        try:
            engine.engine().begin(round_id)
            await engine.wait(round_id)
        finally:
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing
            self._catch_up(watcher, locale)
            hub().leave(watcher)

    async def _write_on(self, watcher: Watcher, locale: str) -> None:
        while True:
            self._catch_up(watcher, locale)
            await watcher.wake.wait()
            watcher.wake.clear()

    def _catch_up(self, watcher: Watcher, locale: str) -> None:
        """Write what is new. What was written cannot be taken back: a text that
        takes the place of a withdrawn one begins on a line of its own."""
        for live in watcher.cells.values():
            text = live.text
            if live.generation != self.generation:
                self.generation = live.generation
                if live.withdrawal is not None:
                    self._break_off(live.withdrawal.length, locale)
                elif text == self.broken_off:
                    # It stands again, and can be read above.
                    self.written = text
                elif not text.startswith(self.written):
                    self._write("\n\n")
                    self.written = ""
            self._write(text[len(self.written) :])
            self.written = text

    def _break_off(self, kept: int, locale: str) -> None:
        """Say that what was written beyond these characters is withdrawn."""
        if len(self.written) <= kept:
            return
        self.broken_off, self.written = self.written, self.written[:kept]
        self._write("\n\n")
        with translation.override(locale):
            self.stderr.write(_("The answer was cut. Starting again…"))

    def _finish_text(self, outcome: Report) -> None:
        self._write("\n" if outcome["text"] else "")
        if outcome["sentence"]:
            self.stderr.write(str(outcome["sentence"]))
        if outcome["provider_reason"]:
            self.stderr.write(f"({outcome['provider_reason']})")

    def _batch(self, options: dict[str, Any]) -> list[str]:
        asks = list(
            read_batch(
                batch_lines(options["batch"]), options["model"], options["locale"]
            )
        )
        for name in {ask.model for ask in asks if ask.model.startswith(ROUTE)}:
            chosen_route(name)
        return asyncio.run(self._all(asks, options["concurrency"]))

    async def _all(self, asks: list[Ask], concurrency: int) -> list[str]:
        room = asyncio.Semaphore(concurrency)

        async def one(ask: Ask) -> str:
            async with room:
                round_id, _ = await in_database(self._open, ask, None)
                outcome = await settled(round_id, ask.id)
            self._write(one_line(outcome) + "\n")
            return str(outcome["status"])

        async with closing_engine():
            return list(await asyncio.gather(*(one(ask) for ask in asks)))

    def _open(self, ask: Ask, thread_id: int | None) -> tuple[int, int]:
        choice = chosen_route(ask.model)
        if choice is None:
            model, wire_id = chosen_model(ask.model, self.agent)
        else:
            model, wire_id = choice.model, choice.model.wire_id
        thread = own_thread(self.user, thread_id)
        try:
            round_ = ledger.open_round(
                thread=thread,
                prompt=ask.prompt,
                model=model,
                model_requested=wire_id,
                route=choice.route if choice else None,
                agent=self.agent,
                locale=ask.locale,
                attended=False,
                is_buffered=self.is_buffered,
            )
        except ledger.ThreadBusyError as error:
            raise unusable(
                "That thread is being answered; wait until it is done."
            ) from error
        return round_.pk, thread.pk

    def _write(self, text: str) -> None:
        """Write at once: whoever reads a pipe reads along."""
        if text:
            self.stdout.write(text, ending="")
            self.stdout.flush()


@contextmanager
def quiet_log(verbosity: int) -> Iterator[None]:
    """Leave markers to servers' logs: here the sentence and the ledger tell it all."""
    log = logging.getLogger("threads")
    level = log.level
    if verbosity < 2:
        log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


@asynccontextmanager
async def closing_engine() -> AsyncIterator[None]:
    """Let nothing of the loop outlive it."""
    try:
        yield
    finally:
        await engine.shutdown()


async def settled(round_id: int, id: object) -> Report:
    """Run a round to its end and describe it."""
    engine.engine().begin(round_id)
    await engine.wait(round_id)
    return await in_database(read_report, round_id, id)


def read_report(round_id: int, id: object) -> Report:
    """Read a round that is over."""
    return report(Round.objects.select_related("answer_cell").get(pk=round_id), id=id)


def own_thread(user: User, thread_id: int | None) -> Thread:
    """Return the caller's thread of that id, or a new one."""
    if thread_id is None:
        return Thread.objects.create(owner=user)
    thread = Thread.objects.of(user).filter(pk=thread_id).first()
    if thread is None:
        raise unusable(f"{user.get_username()} has no thread {thread_id}.")
    return thread
