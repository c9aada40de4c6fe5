"""The llama.cpp server in a virtual environment of its own: put up once, served on loopback, ended by its id."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.real_engine import beside
from tests.real_engine.serve import free_port

HERE = Path(__file__).parent
PACKAGES = ("xllamacpp==2026.10.11549", "gguf==0.19.0", "numpy==2.4.6")
SLOTS = 4


def ensure() -> Path:
    """The interpreter that has it, put up when missing. Raises UnavailableError."""
    return beside.environment("llamacpp", PACKAGES)


@contextlib.contextmanager
def serving(out: Path) -> Iterator[str]:
    """Serve a tiny model whose file and log go to ``out``; the server's URL. Raises UnavailableError."""
    python = ensure()
    model, log = out / "tiny.gguf", out / "llamacpp.log"
    beside.step([python, HERE / "gguf_model.py", model], PACKAGES)
    port = free_port()
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [python, HERE / "server.py", str(port), model, str(SLOTS)], stdout=sink, stderr=subprocess.STDOUT
        )
    try:
        url = f"http://127.0.0.1:{port}"
        beside.wait_ready(process, f"{url}/health", log)
        yield url
    finally:
        process.kill()  # it takes its time over SIGTERM
        process.wait()
