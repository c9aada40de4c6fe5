"""What a user can give a command stands on a page: no flag is known to its help alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from thrashold import PARTS, main

ROOT = Path(__file__).resolve().parents[1]
PAGES = "".join(page.read_text() for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))))


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, (*path, name))
    else:
        yield " ".join(path), command


COMMANDS = dict(_commands(main, ("thrashold",)))


def test_every_part_has_a_command_here() -> None:
    assert {name.split()[1] for name in COMMANDS} == set(PARTS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_and_each_of_its_flags_stand_on_a_page(name: str) -> None:
    flags = {flag for each in COMMANDS[name].params for flag in each.opts if flag.startswith("--")}
    assert {text for text in (name, *flags) if text not in PAGES} == set()
