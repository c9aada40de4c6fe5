"""Tells whether a file changed: certificates and secrets are renewed by others while we run."""

from __future__ import annotations

from pathlib import Path

Stamp = tuple[int, int, int] | None
"""What changes with a file: its time, size and inode; None where there is no such file."""


def stamp_of(path: Path) -> Stamp:
    """What to compare to see whether ``path`` changed. Follows links, as mounted secrets are links."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
