"""Environments apart from the repository's own, each with one set of packages and what those need.

They live in ``.bench-peers/`` and are made on the first run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.bench.processes import ROOT

_FOLDER = ROOT / ".bench-peers"
_INSTALL_SECONDS = 90


class CannotInstallError(Exception):
    """Why an environment can't be made, in one line."""


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment: its folder's name, and what is asked of pip."""

    name: str
    requirements: tuple[str, ...]

    def command(self, script: str) -> Path:
        """Where a command of it is, once installed."""
        return _FOLDER / self.name / "bin" / script

    def install(self) -> None:
        """Makes it where it isn't yet, or is another. Raises CannotInstallError."""
        receipt = _FOLDER / self.name / "installed"  # written last: half an installation has none
        wanted = "\n".join(self.requirements)
        if receipt.is_file() and receipt.read_text(encoding="utf-8") == wanted:
            return
        try:
            _run(sys.executable, "-m", "venv", "--clear", str(_FOLDER / self.name))
            _run(str(self.command("python")), "-m", "pip", "install", "--quiet", *self.requirements)
        except subprocess.CalledProcessError as error:
            words = error.stderr.decode(errors="replace").strip().splitlines()
            raise CannotInstallError(words[-1] if words else f"it ended with {error.returncode}") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise CannotInstallError(str(error)) from error
        receipt.write_text(wanted, encoding="utf-8")


def _run(*command: str) -> None:
    subprocess.run(
        command, check=True, capture_output=True, timeout=_INSTALL_SECONDS, cwd=tempfile.gettempdir()
    )
