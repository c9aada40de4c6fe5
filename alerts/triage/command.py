"""``thrashold triage URL``: the runbook's four steps on a live engine, in under two seconds."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import click

from alerts.pack_file import read_pack_settings, thresholds_option
from alerts.pack_settings import PackSettings
from alerts.triage.as_json import as_json, failure
from alerts.triage.asked import NO_SIDECAR, Asked, Flags, asked
from alerts.triage.looking import UnreadableError, taken
from alerts.triage.report import report
from alerts.triage.text import text
from exporter.clock import anchored_clock
from exporter.ending import leave, run_loop
from exporter.settings import SettingsError
from exporter.sidecar_settings import TRIAGE_VARIABLES
from exporter.sources.quiet import logging_from
from exporter.usage import FiniteRange, UsageFailure

MOST_SECONDS = 600.0


@click.command()
@click.argument("target", metavar="URL")
@click.option("--json", "wants_json", is_flag=True, help="The same as one JSON object.")
@click.option(
    "--gateway",
    "gateways",
    metavar="URL",
    multiple=True,
    help="The gateway before it: Envoy's admin port, or LiteLLM's /metrics/. Repeatable.",
)
@click.option(
    "--sidecar",
    metavar="URL",
    help=f"The sidecar beside it, or {NO_SIDECAR}.  [default: what --config says, else 127.0.0.1:9807]",
)
@click.option(
    "--sidecar-user",
    metavar="NAME",
    envvar=TRIAGE_VARIABLES[0],
    show_envvar=True,
    help="Who reads a sidecar that asks for a password.  [default: the only one of the web config in --config]",
)
@click.option(
    "--sidecar-password-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    envvar=TRIAGE_VARIABLES[1],
    show_envvar=True,
    help="Holds the password, and nothing else.",
)
@click.option("--name", metavar="NAME", help="What the sidecar calls this engine, where it reads several.")
@click.option(
    "--wait",
    metavar="SECONDS",
    type=FiniteRange(0, MOST_SECONDS),
    default=1.0,
    help="Watch for so long instead of a second, for what only time tells.",
)
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    envvar="THRASHOLD_CONFIG",
    show_envvar=True,
    help="The sidecar's settings: URL may then be the name of an engine in it.",
)
@thresholds_option
def triage(  # noqa: PLR0913, PLR0917 - one each for click's options
    target: str,
    wants_json: bool,  # noqa: FBT001 - click calls by name
    gateways: tuple[str, ...],
    sidecar: str | None,
    sidecar_user: str | None,
    sidecar_password_file: Path | None,
    name: str | None,
    wait: float,
    config: Path | None,
    thresholds_file: Path | None,
) -> None:
    """Walk the runbook's four steps on the live engine at URL: memory, backpressure, prompts, swap.

    Ends with a verdict, what it rests on, and what to do next. Exit code 0: healthy, 1: something was found, 2: the
    engine can't be read. Needs the engine's URL alone; a sidecar beside it has seen minutes, and is used where it
    answers.
    """
    settings = read_pack_settings(thresholds_file)
    try:
        flags = Flags(gateways, sidecar, name, sidecar_user, sidecar_password_file, thresholds_file)
        whom = asked(target, flags, config, os.environ)
    except SettingsError as error:
        raise UsageFailure(str(error)) from error
    leave(_told(whom, wait, settings, wants_json=wants_json))


def _told(whom: Asked, wait: float, settings: PackSettings, *, wants_json: bool) -> int:
    """Print the report; gives the exit code. Raises UsageFailure where there can be none."""
    if wait > 1 and sys.stderr.isatty():
        click.echo(f"watching for {wait:.0f} s ...", err=True)
    try:
        # what a source would log stands in what is said of the look
        with logging_from(logging.CRITICAL):
            look = run_loop(taken(whom, wait, anchored_clock()))
    except UnreadableError as error:
        if wants_json:
            click.echo(failure(str(error)))
        raise UsageFailure(str(error)) from error
    made = report(look, settings.thresholds, settings.runbooks)
    click.echo(as_json(made) if wants_json else text(made))
    return made.verdict.exit_code
