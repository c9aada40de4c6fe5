"""Recordings of real engines: the few scrapes in the repository, and the whole captures beside it.

The whole captures are too large to commit. They lie in ``../shared/captures`` beside the repository,
or in the folder that the environment variable THRASHOLD_CAPTURES names.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

NAMES = (
    "llamacpp-2026.10.11549",
    "vllm-0.8.5-v0-swap",
    "vllm-0.32.0",
    "vllm-0.32.0-dp2-api2",
    "vllm-0.32.0-offload",
    "vllm-0.32.0-oracle",
)

_ROOT = Path(__file__).resolve().parents[2]
FIXTURES = _ROOT / "tests" / "fixtures" / "captures"


@dataclass(frozen=True, slots=True)
class Scrape:
    """One answer of an engine's /metrics.

    ``at`` is when it was asked (seconds since the epoch), ``seconds`` how long it took, ``phase`` what
    the load did (idle, load, overload, after), ``size`` how many bytes came.
    """

    index: int
    at: float
    seconds: float
    phase: str
    status: int
    size: int
    path: Path

    def body(self) -> bytes:
        """The answer, byte for byte."""
        return self.path.read_bytes()


@dataclass(frozen=True, slots=True)
class Recording:
    """One run of an engine: its files by name."""

    name: str
    files: dict[str, bytes]

    def lines(self, file: str) -> list[dict[str, Any]]:
        """The objects of one of the recording's JSON-lines files, ``clients.jsonl`` for one."""
        return [json.loads(line) for line in self.files[file].decode().splitlines()]

    def scrapes(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Every good scrape, oldest first: its line of ``index.jsonl`` and the engine's answer."""
        for entry in self.lines("index.jsonl"):
            if entry["status"] == 200:
                yield entry, self.files[f"{entry['i']:03d}.prom"]


@dataclass(frozen=True, slots=True)
class Capture:
    """One run of an engine, unpacked."""

    name: str
    folder: Path

    def scrapes(self) -> Iterator[Scrape]:
        """Every scrape, oldest first."""
        for entry in self.lines("index.jsonl"):
            yield Scrape(
                index=entry["i"],
                at=entry["t"],
                seconds=entry["ms"] / 1000,
                phase=entry["phase"],
                status=entry["status"],
                size=entry["bytes"],
                path=self.folder / f"{entry['i']:03d}.prom",
            )

    def lines(self, file: str) -> Iterator[dict[str, Any]]:
        """The objects of one of the capture's JSON-lines files, ``clients.jsonl`` for one."""
        with (self.folder / file).open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)


@lru_cache(maxsize=2)
def recording(name: str) -> Recording:
    """A whole recording from the repository, in memory (up to 10 MB)."""
    with tarfile.open(FIXTURES / f"{name}.tar.xz") as tar:
        files = {
            member.name.rpartition("/")[2]: opened.read()
            for member in tar
            if (opened := tar.extractfile(member)) is not None
        }
    return Recording(name, files)


def fixture(path: str) -> bytes:
    """A committed scrape by its path, as in ``vllm-0.32.0/113.prom``."""
    return (FIXTURES / path).read_bytes()


def fixtures() -> list[str]:
    """The paths of all committed scrapes."""
    return sorted(path.relative_to(FIXTURES).as_posix() for path in FIXTURES.glob("*/*.prom"))


def archives() -> Path:
    """Where the whole captures are, or should be."""
    return Path(os.environ.get("THRASHOLD_CAPTURES") or _ROOT.parent / "shared" / "captures")


def whole(name: str, tmp_path_factory: pytest.TempPathFactory) -> Capture:
    """A whole capture, unpacked once a test run; skips the test where it isn't on this machine."""
    archive = archives() / f"{name}.tar.xz"
    if not archive.is_file():
        pytest.skip(
            f"the capture {archive} is not here: put the project's captures into that folder, "
            "or name theirs in THRASHOLD_CAPTURES"
        )
    unpacked = tmp_path_factory.getbasetemp() / "captures" / name
    if not unpacked.is_dir():
        # Unpacked beside and moved, so that a run that broke off leaves no half of a capture.
        draft = tmp_path_factory.mktemp("unpacking")
        with tarfile.open(archive) as tar:
            tar.extractall(draft, filter="data")
        (top,) = draft.iterdir()
        unpacked.parent.mkdir(exist_ok=True)
        top.rename(unpacked)
    return Capture(name, unpacked)
