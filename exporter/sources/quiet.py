"""Reads whose outcome is shown by whoever asked for them, and is not logged beside that."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logging_from(level: int) -> Iterator[None]:
    """What the sources log below ``level`` is not said until the end of this; then their level is as it was."""
    sources = logging.getLogger("exporter.sources")
    before = sources.level
    sources.setLevel(level)
    try:
        yield
    finally:
        sources.setLevel(before)
