"""Files that are there once all of them is written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO


@contextlib.contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """To be written to; what broke off leaves nothing. Raises OSError."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_json(path: Path, what: Mapping[str, Any], indent: int | None = None) -> None:
    """One object. Raises OSError."""
    with whole(path) as file:
        file.write(json.dumps(what, indent=indent).encode() + b"\n")
