"""``thrashold dashboards``: render Grafana's boards, and hold any board against what makes one good."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import click

from alerts.lint.problem import NARROWEST, Problem, counted, told
from alerts.lint.reading.source import UnreadableError
from alerts.pack_file import read_pack_settings
from dashboards.lint.reading import problems
from exporter.rendered import write_or_check
from exporter.usage import UsageFailure

SHIPPED = Path("deploy/grafana")


@click.group()
def dashboards() -> None:
    """Work with Grafana's boards."""


@dashboards.command()
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Settings of the alerts' pack in YAML: thresholds, labels of clusters and selectors are the boards' too.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=SHIPPED,
    show_default=True,
    help="The folder to write to.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 where a file isn't what it would be.")
def render(config_file: Path | None, out: Path, check: bool) -> None:  # noqa: FBT001 - click calls by name
    """Write the boards as JSON, and what brings them into a Grafana: provisioning, and ConfigMaps for Kubernetes."""
    if find_spec("grafanalib") is None:
        raise click.ClickException(
            "boards are made with grafanalib, which comes with an extra: pip install 'thrashold[dashboards]'"
        )
    from dashboards.provisioning import files  # noqa: PLC0415 - lint does without grafanalib

    write_or_check(files(read_pack_settings(config_file)), out, "thrashold dashboards render", check=check)


@dashboards.command()
@click.argument("boards", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
def lint(boards: tuple[Path, ...]) -> None:
    """Say what is wrong with boards in JSON, ours or others.

    A PATH is a file, or a folder whose *.json are boards. Exit code 0: nothing was found, 1: something was,
    2: something can't be read, or is no board.
    """
    found: list[Problem] = []
    unreadable: list[str] = []
    files = list(_files(boards))
    for path in files:
        try:
            found += problems(path)
        except UnreadableError as error:
            line, column = error.place
            unreadable.append(f"{path}:{line}:{column}: {error.problem}")
    # where there is no terminal: COLUMNS, else 80
    width = max(shutil.get_terminal_size().columns, NARROWEST)
    for problem in found:
        click.echo("\n".join((*told(problem, width), "")))
    if unreadable:
        raise UsageFailure("\n".join(unreadable))
    if found:
        raise click.ClickException(f"{counted(len(found), 'problem')} in {counted(len(files), 'board')}")
    click.echo(f"{counted(len(files), 'board')} without a problem")


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """Raises UsageFailure: a folder without any."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(path.rglob("*.json"))
        if not inside:
            raise UsageFailure(f"{path}: a folder without a board (*.json)")
        yield from inside
