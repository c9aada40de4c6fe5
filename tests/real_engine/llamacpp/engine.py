"""The llama.cpp server in a virtual environment of its own: put up once, served on loopback, ended by its id."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx

from tests.real_engine import install
from tests.real_engine.install import UnavailableError
from tests.real_engine.serve import end_of, free_port

HERE = Path(__file__).parent
PACKAGES = ("xllamacpp==2026.10.11549", "gguf==0.19.0", "numpy==2.4.6")
SLOTS = 4
READY_SECONDS = 30.0
STEP_SECONDS = 300.0


def ensure() -> Path:
    """The interpreter of the server's environment, put up when missing or of other packages."""
    venv = install.HOME / "llamacpp"
    python, stamp = venv / "bin" / "python", venv / "packages.txt"
    wanted = "\n".join(PACKAGES)
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    _step([sys.executable, "-m", "venv", "--clear", venv])
    _step([python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *PACKAGES])
    stamp.write_text(wanted)
    return python


@contextlib.contextmanager
def serving(out: Path) -> Iterator[str]:
    """Serve a tiny model whose file and log go to ``out``; the server's URL. Raises UnavailableError."""
    python = ensure()
    model, log = out / "tiny.gguf", out / "llamacpp.log"
    _step([python, HERE / "gguf_model.py", model])
    port = free_port()
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [python, HERE / "server.py", str(port), model, str(SLOTS)], stdout=sink, stderr=subprocess.STDOUT
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_ready(process, url, log)
        yield url
    finally:
        process.kill()  # it takes its time over SIGTERM
        process.wait()


def _wait_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + READY_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            httpx.get(f"{url}/health", timeout=2.0, trust_env=False).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"the llama.cpp server never answered; the end of its log:\n{end_of(log)}")


def _step(command: Sequence[str | Path]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=STEP_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{command[0]} took over {STEP_SECONDS:.0f} s") from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise UnavailableError(
            f"no llama.cpp server: {tail}\nIt needs a package index that has {', '.join(PACKAGES)}."
        )
