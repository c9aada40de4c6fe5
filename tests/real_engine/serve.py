"""The engine as a process: started on a loopback port, waited for, frozen, killed and stopped by id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from drill.validation.small_engine import CONFIG
from tests.real_engine.install import Installed

LONGEST_TOKENS = 8000
"""Nearly the whole pool: a quick machine is through two thousand tokens before a gateway's time is over."""
ENDLESS_TOKENS = 6000
"""An answer that nobody waits for: at a step of half a millisecond it takes three seconds."""

FLAGS = (
    f"--served-model-name tiny --dtype bfloat16 --enforce-eager --max-model-len {LONGEST_TOKENS}"
    f" --max-num-seqs {CONFIG.max_sequences} --max-num-batched-tokens {CONFIG.max_batched_tokens}"
    f" --block-size {CONFIG.block_tokens} --kv-cache-memory-bytes {CONFIG.total_blocks * CONFIG.block_bytes:.0f}"
    " --enable-prefix-caching --enable-chunked-prefill"
    # the core computes itself: a worker's process would import all of torch once more, a third of the start-up
    " --distributed-executor-backend vllm.v1.executor.uniproc_executor.UniProcExecutor"
).split()
READY_SECONDS = 600.0
CORE_TITLE = "VLLM::EngineCore"


@dataclass(frozen=True, slots=True)
class Engine:
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{self.address}"

    def wait_ready(self) -> float:
        """Seconds until it answered. Raises RuntimeError with the end of its log when it doesn't."""
        began = time.monotonic()
        while time.monotonic() - began < READY_SECONDS:
            if self.process.poll() is not None:
                break
            try:
                httpx.get(f"{self.url}/health", timeout=2.0, trust_env=False).raise_for_status()
            except httpx.HTTPError:
                time.sleep(0.25)
            else:
                return time.monotonic() - began
        raise RuntimeError(f"the engine never answered; the end of its log:\n{end_of(self.log)}")

    def core(self) -> int:
        """The process id of the engine core, the child that schedules and computes."""
        for child in _descendants(self.process.pid):
            if _title(child).startswith(CORE_TITLE):
                return child
        raise RuntimeError(f"no {CORE_TITLE} among the engine's children")

    def stop(self) -> None:
        """End it and every child of its own."""
        children = list(_descendants(self.process.pid))
        stop(self.process)
        for child in children:
            if _title(child).startswith(CORE_TITLE.partition("::")[0]):  # else the id has a new owner
                os.kill(child, signal.SIGKILL)


def start(  # noqa: PLR0913, PLR0917 -- what is served, how, and where
    made: Installed,
    model: Path,
    log: Path,
    flags: Sequence[str],
    environment: Mapping[str, str],
    port: int | None = None,
) -> Engine:
    """Serve ``model``, on a free port unless told. ``flags`` and ``environment`` come on top of the usual."""
    port = free_port() if port is None else port
    caches = made.venv.parent / "cache"  # nothing of it into the user's home
    whole = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    whole |= {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HOME": str(caches / "hf"),
        "VLLM_CACHE_ROOT": str(caches / "vllm"),
        "VLLM_CONFIG_ROOT": str(caches / "vllm-config"),
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "VLLM_PLUGINS": "thrashold_oracle,thrashold_kv_oracle,thrashold_probe,thrashold_toggle",
        **environment,
    }
    command: list[str | Path] = [
        made.venv / "bin" / "vllm",
        "serve",
        model,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        *FLAGS,
        *flags,
    ]
    with log.open("wb") as sink:
        process = subprocess.Popen(command, env=whole, stdout=sink, stderr=subprocess.STDOUT, cwd=log.parent)
    return Engine(process, port, log)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask a process of ours to end; make it, when it doesn't within 10 s."""
    process.terminate()
    try:
        process.wait(10.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """A loopback port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end_of(log: Path) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-25:])


def _descendants(parent: int) -> Iterator[int]:
    for told in Path(f"/proc/{parent}/task").glob("*/children"):  # each thread has children of its own
        try:
            children = told.read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from _descendants(child)


def _title(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
