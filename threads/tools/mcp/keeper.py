"""Stands between the site and the process of a tool server; run as a script.

It leads the process group in which the server runs. When the server's process ends,
or the site's does (be it killed), whatever is left of the group is killed: the SDK
ends the group only of a server that is still there when its session closes.
Standard library only, and little of it: it starts with every server.
"""

import os
import signal
import sys
import threading
import time

WATCH_SECONDS = 1.0


def watch(site: int) -> None:
    """End the group once the process that started this one is gone."""
    while os.getppid() == site:
        time.sleep(WATCH_SECONDS)
    os.killpg(0, signal.SIGKILL)


def keep(site: int, command: list[str]) -> None:
    """Run a command in this group; never returns."""
    try:
        server = os.posix_spawnp(command[0], command, os.environ)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")
    # The server's end of the pipes is the server's alone: when it closes its output,
    # the site is to see that.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for pipe in (0, 1, 2):
        os.dup2(nowhere, pipe)
    threading.Thread(target=watch, args=(site,), daemon=True).start()
    os.waitpid(server, 0)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    keep(int(sys.argv[1]), sys.argv[2:])
