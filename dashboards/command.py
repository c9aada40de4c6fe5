"""``thrashold dashboards``: render Grafana's boards, and hold any board against what makes one good."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import click

from alerts.pack_settings import PackSettings
from dashboards.lint import findings
from exporter.settings import SettingsError, load
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

    stale = []
    for name, text in files(_settings(config_file)).items():
        path = out / name
        if check:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                stale.append(str(path))
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"{path}: {error.strerror}") from error
        click.echo(path)
    if stale:
        raise click.ClickException(f"not as `thrashold dashboards render` writes it: {', '.join(stale)}")


@dashboards.command()
@click.argument("boards", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
def lint(boards: tuple[Path, ...]) -> None:
    """Say what is wrong with boards in JSON, ours or others; exit code 1 where anything is."""
    found = 0
    for path in boards:
        for finding in findings(_board(path)):
            click.echo(f"{path}: {finding}")
            found += 1
    if found:
        raise click.ClickException(f"{found} found")
    click.echo(f"{len(boards)} without a finding")


def _board(path: Path) -> dict[str, object]:
    try:
        board = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageFailure(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageFailure(f"{path}: no JSON: {error}") from error
    if not isinstance(board, dict) or not isinstance(board.get("panels"), list):
        raise UsageFailure(f"{path}: no board of Grafana: it has no panels")
    return board


def _settings(file: Path | None) -> PackSettings:
    try:
        return load(PackSettings, file=file, environ=os.environ, prefix="THRASHOLD_ALERTS_")
    except SettingsError as error:
        raise UsageFailure(str(error)) from error
