"""The process of a tool server: started behind a keeper, its last words remembered."""

import asyncio
import os
import sys
from contextlib import suppress
from typing import TextIO

from mcp.client.stdio import StdioServerParameters

from threads.tools.mcp import keeper as keeper_module
from threads.tools.mcp.values import ServerAddress

TAIL_LENGTH = 4_000


def parameters(address: ServerAddress) -> StdioServerParameters:
    """Return how the SDK starts a server: with a bare environment, behind its keeper."""
    keeper = ["-I", "-S", keeper_module.__file__, str(os.getpid())]
    return StdioServerParameters(
        command=sys.executable,
        args=[*keeper, address.command, *address.arguments],
        env=dict(address.environment),
        encoding_error_handler="replace",
    )


class LastWords:
    """The end of what a process writes to its error output; the rest is dropped.

    It never reaches a log: it is anybody's text. Its last line tells an operator why
    a server ended.
    """

    def __init__(self) -> None:
        self._read_end, write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self.writer: TextIO = os.fdopen(write_end, "w")
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._read_end, self._read)
        self._tail = b""
        self._is_open = True

    def line(self) -> str:
        """Return the last line, or nothing."""
        self._read()
        lines = self._tail.decode("utf-8", "replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """Stop listening."""
        self.writer.close()
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._read_end)
            os.close(self._read_end)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            while self._is_open:
                piece = os.read(self._read_end, 65_536)
                if not piece:
                    self.close()
                self._tail = (self._tail + piece)[-TAIL_LENGTH:]
