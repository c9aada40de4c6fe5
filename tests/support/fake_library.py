"""The fake NVML library for tests: built once in a run for all who ask, whatever process they are in."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from drill.fake_nvml import build
from drill.fake_nvml.library import SONAME

Without = Callable[..., Path]
"""Gives the library without the functions of these names, as an older driver has it."""


def need_parts() -> None:
    """Skips without gcc or the binding, loudly; in CI both must be there."""
    missing = [] if shutil.which("gcc") else ["gcc"]
    missing += [] if importlib.util.find_spec("pynvml") else ["nvidia-ml-py"]
    if missing:
        why = f"NOT TESTED: the fake NVML library needs {' and '.join(missing)}"
        if os.environ.get("CI") == "true":
            pytest.fail(why, pytrace=False)
        pytest.skip(why)


def built_in(folder: Path) -> Without:
    """Builds into ``folder``, which several processes may share: who comes second waits, and finds it there."""
    folder.mkdir(exist_ok=True)

    def without(*hidden: str) -> Path:
        home = folder / hashlib.sha256(" ".join(sorted(hidden)).encode()).hexdigest()[:16]
        with (folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            library = home / SONAME
            return library if library.exists() else build(home, hidden)

    return without
