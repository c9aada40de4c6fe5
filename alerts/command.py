"""``thrashold alerts``: list the pack, explain an alert, render it for Prometheus, find faults in others."""

from __future__ import annotations

import difflib
import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import click

from alerts.alert import Alert
from alerts.catalogue import ALERTS
from alerts.lint.command import lint
from alerts.pack_settings import PackSettings
from alerts.render import alertmanager_file, prometheus_rule, rule, rule_file
from alerts.runbooks import BASE
from exporter.settings import SettingsError, load
from exporter.usage import UsageFailure

RENDERED: dict[str, Callable[[PackSettings], str]] = {
    "thrashold.rules.yml": rule_file,
    "thrashold.prometheusrule.yml": prometheus_rule,
    "alertmanager.example.yml": alertmanager_file,
}
"""What ``render`` writes, by name."""
SHIPPED = Path("deploy/prometheus")
_WIDTH, _LABEL = 80, 12
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
    """Say what an alert means, when it fires, and what it compares."""
    settings = _settings(config_file)
    alert = ALERTS.get(name)
    if alert is None:
        written = {each.lower(): each for each in ALERTS}
        near = difflib.get_close_matches(name.lower(), written, 1)
        hint = f"did you mean {written[near[0]]}?" if near else "`thrashold alerts list` names them all"
        raise UsageFailure(f"no alert {name}: {hint}")
    click.echo(explained(alert, settings))


def explained(alert: Alert, settings: PackSettings) -> str:
    """In words, for a terminal."""
    made = rule(alert, settings)
    lines = [
        f"{alert.name}  ({made['labels']['severity']})",
        "",
        *textwrap.wrap(alert.meaning, _WIDTH),
        "",
        *_labelled("cause", f"{alert.cause.value}: {alert.cause.sentence}"),
        *_labelled(
            "fires",
            f"after {made.get('for', '0s')}, and for {made.get('keep_firing_for', '0s')} beyond its end",
        ),
        f"{'runbook':{_LABEL}}{made['annotations']['runbook_url']}",
    ]
    if alert.quiet_under:
        lines += _labelled("quiet under", ", ".join(alert.quiet_under))
    if alert.consequence_of:
        lines += _labelled("follows", ", ".join(alert.consequence_of))
    return "\n".join([*lines, "", textwrap.indent(made["expr"], "    ")])


def _labelled(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=label.ljust(_LABEL),
        subsequent_indent=" " * _LABEL,
        break_on_hyphens=False,
    )


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
    settings = _settings(config_file)
    stale = []
    for name, write in RENDERED.items():
        path, text = out / name, write(settings)
        if check:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                stale.append(str(path))
            continue
        try:
            out.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"{path}: {error.strerror}") from error
        click.echo(path)
    if not check and settings.runbooks == BASE:
        click.echo(
            f"runbook_url is a path ({BASE}/NAME.md), which nobody can click on in a pager: `runbooks` in a file of"
            " settings says where you serve the pages",
            err=True,
        )
    if stale:
        raise click.ClickException(f"not as `thrashold alerts render` writes it: {', '.join(stale)}")


def _settings(file: Path | None) -> PackSettings:
    try:
        return load(PackSettings, file=file, environ=os.environ, prefix="THRASHOLD_ALERTS_")
    except SettingsError as error:
        raise UsageFailure(str(error)) from error
