"""Who holds a round: this process, named so that others can tell it is gone."""

import os
import secrets
import socket
from functools import lru_cache


@lru_cache(maxsize=1)
def _named(pid: int) -> str:
    host = socket.gethostname()[:100].replace(":", "-")
    return f"{host}:{pid}:{secrets.token_hex(4)}"


def worker_id() -> str:
    """Return this process's name: host, process id and a token of its own.

    The token tells it from an earlier process with the same id, as a restarted
    container has.
    """
    return _named(os.getpid())


def is_known_dead(worker: str) -> bool:
    """Tell whether a worker of this host has certainly gone.

    False for a worker elsewhere: only its heartbeat says something.
    """
    host, pid, _token = (*worker.split(":"), "", "")[:3]
    own_host, own_pid, _own_token = worker_id().split(":")
    if host != own_host or not pid.isdecimal():
        return False
    if pid == own_pid:
        return worker != worker_id()
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False
