"""What may stand in a log line, whichever library writes it.

Prompts, answers and keys never reach a log (requirements I1 to I3). Markers are
content-free by the way they are written; the words of exceptions are nobody's: a
database error quotes the row, a decoding error the text, a refusal the request.
So an exception is told by its class, its place and its numbers, and never in its
own words. What a person needs to know of it stands in the ledger.

How it works. It is done where a record is made, before any handler sees it: a
console, a file, a mail or a service gets no more than this module lets through.
"""

import errno
import logging
import logging.config
import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

CHAIN_LINKS = 4
"""How many causes of an exception are told (requirement I2)."""

FRAMES = 20
"""How many frames are told of each, the innermost ones."""

TRACEBACK = "Traceback (most recent call last)"

CAUSED = "\nThe above exception was the direct cause of the following one:\n\n"
MET = "\nDuring handling of the above exception, another one occurred:\n\n"

OBJECT = re.compile(r"<(\w+)\b.*>", re.DOTALL)
"""An object as asyncio shows it: arguments, results and exceptions included."""


def configure(config: dict[str, Any]) -> None:
    """Set logging up; the setting LOGGING_CONFIG names this function."""
    # With it the SDK would, once imported, raise its own logger above ours (I9).
    os.environ.pop("OPENAI_LOG", None)
    logging.setLogRecordFactory(SafeRecord)
    logging.config.dictConfig(config)


class SafeRecord(logging.LogRecord):
    """A record without the words of exceptions.

    `exc_text`, where formatters look before they write a traceback themselves,
    holds the story; `exc_info` is empty, so that no handler can tell more.
    """

    def __init__(
        self,
        name: str,
        level: int,
        pathname: str,
        lineno: int,
        msg: object,
        args: Any,
        exc_info: Any,
        func: str | None = None,
        sinfo: str | None = None,
        **more: Any,
    ) -> None:
        super().__init__(
            name, level, pathname, lineno, msg, args, exc_info, func, sinfo, **more
        )
        error = exc_info[1] if isinstance(exc_info, tuple) else None
        if isinstance(error, BaseException):
            self.exc_text, self.exc_info = story(error), None
        self.msg = _text(wordless(self.msg))
        if self.args:
            self.args = wordless(self.args)
        if str(name).partition(".")[0] == "asyncio":
            self._shorten_objects()
        elif self._quotes_a_traceback():
            self._replace_traceback()

    def _words(self) -> str:
        """The message, or what it was to be filled into: who logs is never harmed."""
        with suppress(Exception):  # words and arguments may not fit
            return self.getMessage()
        return str(self.msg)

    def _shorten_objects(self) -> None:
        """Keep what happened, and of what kind of object; drop its contents."""
        first = self._words().partition("\n")[0]
        self.msg, self.args = OBJECT.sub(r"<\1>", first), None

    def _quotes_a_traceback(self) -> bool:
        parts = self.args.values() if isinstance(self.args, Mapping) else self.args
        return any(
            TRACEBACK in part
            for part in (self.msg, *(parts or ()))
            if isinstance(part, str)
        )

    def _replace_traceback(self) -> None:
        """Some libraries write the traceback into the message itself."""
        head = self._words().partition(TRACEBACK)[0]
        self.msg, self.args = head.rstrip() or "An exception was raised", None
        error = sys.exc_info()[1]
        if self.exc_text is None and error is not None:
            self.exc_text = story(error)


def wordless(value: Any, depth: int = 2) -> Any:
    """Put an exception's name in its place, in a collection too.

    Anything else stays the very object that it is.
    """
    if type(value).__name__ == "Failure":  # as Twisted wraps an exception
        value = getattr(value, "value", None)
    if isinstance(value, BaseException):
        return named(value)
    if depth and isinstance(value, Mapping):
        told = {key: wordless(inner, depth - 1) for key, inner in value.items()}
        return told if any(told[key] is not value[key] for key in told) else value
    if depth and isinstance(value, (list, tuple, set, frozenset)):
        inner = list(value)
        names = [wordless(part, depth - 1) for part in inner]
        if any(name is not part for name, part in zip(names, inner, strict=True)):
            return tuple(names) if isinstance(value, tuple) else names
    return value


def _text(message: object) -> str:
    """A message as text; one that cannot say what it is keeps nobody from going on."""
    with suppress(Exception):  # anybody's code
        return str(message)
    return f"<{type(message).__name__}>"


def story(error: BaseException) -> str:
    """Tell an exception and its causes as Python does, but without their words."""
    told = ""
    for link, joint in reversed(list(chain(error))):
        frames = traceback.extract_tb(link.__traceback__, limit=-FRAMES)
        told += f"{TRACEBACK}:\n{''.join(frames.format())}" if frames else ""
        told += f"{named(link)}\n{joint}"
    return told.rstrip("\n")


def chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """Yield an exception and its causes, each with what joins it to the one before."""
    link: BaseException | None = error
    joint = ""
    for _ in range(CHAIN_LINKS):
        if link is None:
            return
        yield link, joint
        joint = CAUSED if link.__cause__ is not None else MET
        context = None if link.__suppress_context__ else link.__context__
        link = link.__cause__ or context


def named(error: BaseException) -> str:
    """Name an exception's class, and the numbers that diagnose it."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ != "builtins":
        name = f"{kind.__module__}.{name}"
    numbers: list[str] = []
    with suppress(Exception):  # its attributes are anybody's code
        numbers = [number for number in _numbers(error) if number]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def _numbers(error: BaseException) -> Iterator[str]:
    """Codes that come from a closed list, and sizes; never free text."""
    if isinstance(error, OSError) and error.errno is not None:
        yield errno.errorcode.get(error.errno, str(error.errno))
    if isinstance(error, UnicodeError):
        start = getattr(error, "start", None)
        yield f"at {start}" if isinstance(start, int) else ""
    if isinstance(error, BaseExceptionGroup):
        yield " and ".join(type(inner).__name__ for inner in error.exceptions[:5])
    status = getattr(error, "status_code", None)
    yield f"status {status}" if isinstance(status, int) else ""
    for attribute in ("sqlstate", "sqlite_errorname"):
        code = getattr(error, attribute, None)
        if isinstance(code, str) and re.fullmatch(r"[A-Z0-9_]{5,40}", code):
            yield code
