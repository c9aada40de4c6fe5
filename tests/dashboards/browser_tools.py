"""The node packages that draw boards and know Grafana's types: installed into ``.boards``, which git ignores."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".boards"
SOURCES = Path(__file__).resolve().parent / "browser"
MODULES = HOME / "node_modules"
_STAMP = HOME / ".installed"
_INSTALL_SECONDS = 900


def installed() -> bool:
    """Whether what package.json asks for is there."""
    return _STAMP.is_file() and _STAMP.read_text() == (SOURCES / "package.json").read_text()


def install() -> None:
    """Some 650 MB, a minute or several. Raises RuntimeError where there is no npm, or where it fails."""
    if installed():
        return
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("no npm here: node 20 or later is needed to draw boards")
    HOME.mkdir(exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        if (SOURCES / name).is_file():
            shutil.copy(SOURCES / name, HOME / name)
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
        check=False,
        preexec_fn=lambda: os.nice(10),
    )
    if done.returncode:
        raise RuntimeError(f"npm install failed:\n{done.stderr}")
    shutil.copy(SOURCES / "package.json", _STAMP)


def node(*command: str | Path, seconds: float = 300) -> None:
    """Runs a program of the packages. Raises RuntimeError with its words."""
    told = shutil.which("node")
    if told is None:
        raise RuntimeError("no node here: node 20 or later is needed to draw boards")
    done = subprocess.run(
        [told, *command],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env={**os.environ, "NODE_PATH": str(MODULES)},
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stderr or done.stdout}")
