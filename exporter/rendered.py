"""Files that a command makes from what is declared, and that are committed: written, or held against what is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click


def write_or_check(files: Mapping[str, str], out: Path, command: str, *, check: bool) -> None:
    """Write ``files``, texts by their paths below ``out``, and say each; with ``check`` write nothing.

    Raises ClickException: a file that can't be written; with ``check`` those that aren't as ``command`` writes them.
    """
    stale = []
    for name, text in files.items():
        path = out / name
        if check:
            if _read(path) != text:
                stale.append(str(path))
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"{path}: {error.strerror}") from error
        click.echo(path)
    if stale:
        raise click.ClickException(f"not as `{command}` writes it: {', '.join(stale)}")


def _read(path: Path) -> str | None:
    """What stands there; None: nothing that is a text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return None
