"""Recordings of real engines, whole, from the repository."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = (_ROOT / "tests" / "fixtures" / "captures", _ROOT / "drill" / "recordings")
"""The demo's recording has its one home with the demo."""

NAMES = (
    "llamacpp-2026.10.11549",
    "vllm-0.8.5-v0-swap",
    "vllm-0.32.0",
    "vllm-0.32.0-dp2-api2",
    "vllm-0.32.0-offload",
    "vllm-0.32.0-oracle",
)


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


@lru_cache(maxsize=3)
def recording(name: str) -> Recording:
    """A whole recording, in memory (up to 10 MB)."""
    (archive,) = (path for folder in _FOLDERS if (path := folder / f"{name}.tar.xz").is_file())
    with tarfile.open(archive) as tar:
        files = {
            member.name.rpartition("/")[2]: opened.read()
            for member in tar
            if (opened := tar.extractfile(member)) is not None
        }
    return Recording(name, files)


def fixture(path: str) -> bytes:
    """One scrape by its path, as in ``vllm-0.32.0/113.prom``."""
    name, _, file = path.partition("/")
    return recording(name).files[file]
