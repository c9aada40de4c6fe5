"""Builds the fake ``libnvidia-ml.so.1`` with gcc, which takes less than a second."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

SONAME = "libnvidia-ml.so.1"
_SOURCES = Path(__file__).parent
_SECONDS = 60
# a definition starts its line: API and the name, or a macro that makes a function of the name
_DEFINITION = re.compile(r"^(?:API [\w ]+?\*?|NUMBER\(|LIST\()\s*\*?(nvml\w+)\b", re.MULTILINE)


class BuildError(Exception):
    """There is no gcc, or it refused: the message says which and what it said."""


@lru_cache
def functions() -> frozenset[str]:
    """The names that the library exports, read from its sources."""
    return frozenset(name for file in _SOURCES.glob("*.c") for name in _DEFINITION.findall(file.read_text()))


def build(folder: Path, hidden: Iterable[str] = ()) -> Path:
    """Build into ``folder`` and give the library's path; programs find it by LD_LIBRARY_PATH.

    ``hidden`` are functions that it shall not export: what an older driver doesn't have.
    Raises BuildError, also for a hidden name that never was one.
    """
    gcc = shutil.which("gcc")
    if gcc is None:
        raise BuildError("no gcc: install one to build the fake NVML library")
    unknown = sorted(set(hidden) - functions())
    if unknown:
        raise BuildError(f"can't hide what isn't there: {', '.join(unknown)}")
    folder.mkdir(parents=True, exist_ok=True)
    command = [gcc, "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command += ["-fvisibility=hidden", f"-Wl,-soname,{SONAME}", "-o", str(folder / SONAME)]
    if names := sorted(hidden):
        script = folder / "hidden.map"
        script.write_text(f"{{ local: {' '.join(f'{name};' for name in names)} }};\n")
        command.append(f"-Wl,--version-script={script}")
    command += [*map(str, sorted(_SOURCES.glob("*.c"))), "-lm"]
    done = subprocess.run(  # noqa: S603 - our own sources
        command, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"gcc failed:\n{done.stderr}")
    return folder / SONAME
