"""Log records tell an exception's class and place, and none of its words."""

import asyncio
import gc
import logging
import os
import subprocess
import sys
import traceback

import pytest
from django.conf import settings
from django.db import IntegrityError
from twisted.python.failure import Failure

from chatsite.logs import CHAIN_LINKS, FRAMES, named, story
from tests.canaries import ANSWER, KEY, PROMPT, raised, words_of
from threads.models import Gateway

logger = logging.getLogger("chatsite.test")


def only_record(caplog: pytest.LogCaptureFixture) -> logging.LogRecord:
    (record,) = caplog.records
    for word in (PROMPT, ANSWER, KEY, "CANARY"):
        assert word not in words_of(record) + caplog.text
    return record


def test_a_traceback_keeps_class_and_frames_and_loses_the_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger.error("It failed", exc_info=raised(ValueError(PROMPT)))

    only_record(caplog)
    assert "It failed\nTraceback (most recent call last):\n" in caplog.text
    assert 'canaries.py", line' in caplog.text
    assert caplog.text.endswith("ValueError\n")


def test_causes_are_told_in_their_order_and_bounded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def inner() -> None:
        raise RuntimeError(PROMPT)

    def outer() -> None:
        try:
            inner()
        except RuntimeError as error:
            raise KeyError(ANSWER) from error

    with pytest.raises(KeyError) as caught:
        outer()
    logger.error("It failed", exc_info=caught.value)

    only_record(caplog)
    first, second = caplog.text.split("direct cause of the following one")
    assert first.count("RuntimeError\n") == 1
    assert second.count("KeyError\n") == 1


def test_a_long_chain_of_causes_is_bounded() -> None:
    error: Exception = ValueError(PROMPT)
    for _ in range(10):
        later = ValueError(PROMPT)
        later.__context__, error = error, later

    assert story(error).count("ValueError") == CHAIN_LINKS


def test_a_hidden_context_stays_hidden() -> None:
    error = ValueError("outer")
    error.__context__, error.__suppress_context__ = KeyError("inner"), True

    assert story(error) == "ValueError"


def test_a_deep_recursion_is_told_by_its_innermost_frames() -> None:
    def dive(depth: int) -> int:
        return 1 // depth if depth == 0 else dive(depth - 1) + 1

    with pytest.raises(ZeroDivisionError) as caught:
        dive(100)
    told = story(caught.value)

    assert told.count("File ") <= FRAMES
    assert "in dive" in told


def test_an_exception_as_an_argument_or_as_the_message_is_named_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger.error("It failed: %s", raised(ValueError(PROMPT)))
    assert only_record(caplog).getMessage() == "It failed: ValueError"

    caplog.clear()
    logger.error(raised(ValueError(PROMPT)))
    assert only_record(caplog).getMessage() == "ValueError"

    caplog.clear()
    logger.error("It failed: %(why)r", {"why": ValueError(PROMPT)})
    assert only_record(caplog).getMessage() == "It failed: 'ValueError'"


def test_what_twisted_and_daphne_write_of_an_exception_loses_the_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    daphne = logging.getLogger("daphne.test")

    def fail() -> None:
        raise ValueError(PROMPT)

    try:
        fail()
    except ValueError as error:
        daphne.error(traceback.format_exc())
        daphne.error("Exception inside application: %s", error, exc_info=error)
        daphne.error("Cannot build protocol: %s", traceback.format_exc())
        daphne.error(Failure(error))  # type: ignore[no-untyped-call]
    said = [record.getMessage() for record in caplog.records]
    told = [record.exc_text or "" for record in caplog.records]

    assert said == [
        "An exception was raised",
        "Exception inside application: ValueError",
        "Cannot build protocol:",
        "ValueError",
    ]
    assert [text.endswith("ValueError") for text in told] == [True, True, True, False]
    assert "CANARY" not in "".join(map(words_of, caplog.records))


async def test_a_task_whose_exception_nobody_fetched_is_logged_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(words: str) -> None:
        raise ValueError(words)

    task = asyncio.get_running_loop().create_task(fail(PROMPT))
    await asyncio.wait({task})
    del task
    gc.collect()

    record = only_record(caplog)
    assert record.name == "asyncio"
    assert record.getMessage() == "Task exception was never retrieved"
    assert "ValueError" in caplog.text


async def test_a_slow_callback_is_logged_without_its_arguments(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.slow_callback_duration = 0.0

    def take(_words: str) -> None:
        called.set()

    called = asyncio.Event()
    loop.call_soon(take, PROMPT)
    await called.wait()
    loop.set_debug(False)

    assert {record.getMessage().split()[1] for record in caplog.records} >= {"<Handle>"}
    assert "CANARY" not in "".join(map(words_of, caplog.records))


@pytest.mark.django_db
def test_a_database_error_is_told_by_its_code(caplog: pytest.LogCaptureFixture) -> None:
    Gateway.objects.create(slug="twice", name=PROMPT)
    try:
        Gateway.objects.create(slug="twice", name=PROMPT)
    except IntegrityError:
        logger.exception("It failed")

    only_record(caplog)
    assert "django.db.utils.IntegrityError" in caplog.text
    assert "SQLITE_CONSTRAINT" in caplog.text or "23505" in caplog.text


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ConnectionResetError(104, PROMPT), "ConnectionResetError (ECONNRESET)"),
        (OSError(PROMPT), "OSError"),
        (
            UnicodeEncodeError("utf-8", f"{PROMPT}\ud800", 37, 38, KEY),
            "UnicodeEncodeError (at 37)",
        ),
        (
            ExceptionGroup(PROMPT, [ValueError(KEY), OSError(ANSWER)]),
            "ExceptionGroup (ValueError and OSError)",
        ),
    ],
)
def test_an_exception_is_named_with_its_numbers(error: Exception, name: str) -> None:
    assert named(error) == name


def test_an_exception_whose_attributes_fail_is_still_named() -> None:
    class OddError(Exception):
        @property
        def status_code(self) -> int:
            raise ValueError(PROMPT)

    assert named(OddError(PROMPT)).endswith("OddError")


def test_libraries_are_quiet_and_stay_so_whatever_the_environment_says() -> None:
    code = (
        "import django, logging; django.setup()\n"
        "import threads.gateway.client\n"
        "for name in ('openai', 'httpx2', 'httpcore2', 'asyncio', 'daphne'):\n"
        "    print(name, logging.getLogger(name + '.part').getEffectiveLevel())\n"
        "print(logging.getLogger('django.db.backends').getEffectiveLevel())\n"
    )
    environment = os.environ | {
        "OPENAI_LOG": "debug",
        "DJANGO_SETTINGS_MODULE": "chatsite.settings",
        "PYTHONASYNCIODEBUG": "",
    }

    ran = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.split() == [
        *("openai", "30", "httpx2", "30", "httpcore2", "30"),
        *("asyncio", "30", "daphne", "30", "30"),
    ]


def test_no_handler_of_ours_or_djangos_sends_whole_requests_by_mail() -> None:
    names = ["", *logging.root.manager.loggerDict]
    kinds = {
        type(handler).__name__
        for name in names
        for handler in logging.getLogger(name).handlers
    }

    assert "StreamHandler" in kinds
    assert "AdminEmailHandler" not in kinds


def test_exceptions_inside_collections_lose_their_words_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = ValueError(PROMPT)
    logger.error("%s and %s and %s", [error, 1], (error,), {"error": error})
    logger.error("%(one)s", {"one": {error}})

    for word in (PROMPT, "CANARY"):
        assert all(word not in words_of(record) for record in caplog.records)
    first, second = (record.getMessage() for record in caplog.records)
    assert first == "['ValueError', 1] and ('ValueError',) and {'error': 'ValueError'}"
    assert second == "['ValueError']"


def test_arguments_without_exceptions_stay_the_objects_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Atoms(dict[str, object]):
        def __missing__(self, key: str) -> str:
            return "-"

    logger.error("%(status)s %(nowhere)s", Atoms(status=200))

    assert caplog.records[-1].getMessage() == "200 -"


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError(PROMPT)


@pytest.mark.parametrize(
    ("name", "words", "args"),
    [
        ("chatsite.test", Unprintable(), ()),
        ("chatsite.test", "Traceback (most recent call last) %s %s", ("one",)),
        ("asyncio", "%s %s", ("one",)),
    ],
)
def test_a_line_that_cannot_be_written_harms_nobody(
    name: str, words: object, args: tuple[object, ...]
) -> None:
    record = logging.getLogger(name).makeRecord(
        name, logging.ERROR, __file__, 1, words, args, None
    )

    assert PROMPT not in str(record.msg)
