"""``thrashold alerts``: list the pack, explain an alert, render it for Prometheus, find faults in others."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

import click

from alerts.catalogue import ALERTS
from alerts.explain import explained
from alerts.lint.command import lint
from alerts.pack_file import read_pack_settings
from alerts.pack_settings import PackSettings
from alerts.render import alertmanager_file, prometheus_rule, rule_file
from alerts.runbooks import BASE
from exporter.rendered import write_or_check
from exporter.usage import UsageFailure

RENDERED: dict[str, Callable[[PackSettings], str]] = {
    "thrashold.rules.yml": rule_file,
    "thrashold.prometheusrule.yml": prometheus_rule,
    "alertmanager.example.yml": alertmanager_file,
}
"""What ``render`` writes, by name."""
SHIPPED = Path("deploy/prometheus")
_config = click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Settings of the pack in YAML.",
)


@click.group()
def alerts() -> None:
    """List, explain and render the alerts that are shipped; find faults in your own."""


alerts.add_command(lint)


@alerts.command("list")
def list_alerts() -> None:
    """List the alerts: severity, cause, name."""
    wide = max(map(len, ALERTS))
    for name, alert in ALERTS.items():
        click.echo(f"{alert.severity.value:7}  {name:{wide}}  {alert.cause.value}")


@alerts.command()
@click.argument("name")
@_config
def explain(name: str, config_file: Path | None) -> None:
    """Say what an alert means, when it fires, what it compares, and which settings change that."""
    settings = read_pack_settings(config_file)
    alert = ALERTS.get(name)
    if alert is None:
        written = {each.lower(): each for each in ALERTS}
        near = difflib.get_close_matches(name.lower(), written, 1)
        hint = f"did you mean {written[near[0]]}?" if near else "`thrashold alerts list` names them all"
        raise UsageFailure(f"no alert {name}: {hint}")
    click.echo(explained(alert, settings))


@alerts.command()
@_config
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
    """Write the rules as files, for Prometheus and for its operator, and an example for Alertmanager."""
    settings = read_pack_settings(config_file)
    files = {name: write(settings) for name, write in RENDERED.items()}
    write_or_check(files, out, "thrashold alerts render", check=check)
    if not check and settings.runbooks == BASE:
        click.echo(
            f"runbook_url is a path ({BASE}/NAME.md), which nobody can click on in a pager: `runbooks` in a file of"
            " settings says where you serve the pages",
            err=True,
        )
