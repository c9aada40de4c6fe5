"""How far something is, for somebody who waits."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click


class Progress:
    """One line on a terminal that is written over, and nothing anywhere else."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> Callable[[str], None]:
        return self._tell

    def __exit__(self, *_: object) -> None:
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)

    def _tell(self, what: str) -> None:
        if self._shown:
            click.echo(f"\r\x1b[K{self._title}: {what}", nl=False, err=True)
