"""``thrashold stack``: all of it on this machine, until Ctrl-C."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import click

from deploy.envoy import UnservableError
from deploy.part import ALERTMANAGER, ENVOY, GRAFANA, PROMETHEUS, missing
from deploy.ports import Ports
from deploy.stack import SCRAPE_SECONDS, Asked, NotRenderedError, parts, write_files
from deploy.supervisor import PartFailedError, Supervisor
from exporter.usage import UsageFailure

_HIGHEST_BASE = 65_400


@click.command()
@click.option(
    "--engine",
    "engines",
    metavar="[NAME=]URL",
    multiple=True,
    help="An engine of yours, in place of a drill. Repeatable.",
)
@click.option(
    "--config",
    "sidecar_config",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Settings of the sidecar, in place of both: it names the engines.",
)
@click.option("--envoy", is_flag=True, help="Put an Envoy before your engines, for their clients to come to.")
@click.option(
    "--drill", "scenario", metavar="SCENARIO", default="incident", show_default=True, help="What fails."
)
@click.option(
    "--drill-option",
    "drill_options",
    metavar="OPTION",
    multiple=True,
    help="For `thrashold drill serve`, as --drill-option=--size=full. Repeatable.",
)
@click.option(
    "--alerts",
    "pack_config",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Settings of the alerts and boards.",
)
@click.option(
    "--data",
    "folder",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("stack"),
    show_default=True,
    help="Where files, logs and data are kept: the same one goes on where it was.",
)
@click.option(
    "--scrape-seconds",
    type=click.IntRange(1, SCRAPE_SECONDS),
    default=SCRAPE_SECONDS,
    show_default=True,
    help="Between scrapes, and between evaluations of the rules.",
)
@click.option(
    "--port-base",
    type=click.IntRange(1024, _HIGHEST_BASE),
    help="All ports from there on.  [default: 9807, 9808, 9090, 9093, 3000, a drill's from 18000, Envoy's 10000, 9901]",
)
def stack(  # noqa: PLR0913, PLR0917 - one each for click's options
    engines: tuple[str, ...],
    sidecar_config: Path | None,
    envoy: bool,  # noqa: FBT001 - click calls by name
    scenario: str,
    drill_options: tuple[str, ...],
    pack_config: Path | None,
    folder: Path,
    scrape_seconds: int,
    port_base: int | None,
) -> None:
    """Run the whole stack here: a drill or your engines, sidecar, Prometheus, Alertmanager, desk, Grafana.

    All listens on loopback only. What others have to install and isn't here is left out, and said.
    A part that dies is started anew. Ctrl-C ends all of them.
    """
    if engines and sidecar_config:
        raise UsageFailure("--engine and --config both name engines: give one of them")
    if envoy and not engines:
        raise UsageFailure("--envoy stands before engines that --engine names")
    if envoy and ENVOY.path() is None:
        raise UsageFailure("--envoy: " + missing((ENVOY,))[0])
    ports = Ports() if port_base is None else Ports.following(port_base)
    held = ports.held(gateway=envoy)
    if held:
        told = ", ".join(str(each) for each in held)
        raise UsageFailure(f"somebody listens on {told} already: end it, or give another --port-base")
    asked = Asked(
        folder.resolve(),
        ports,
        engines,
        sidecar_config,
        scenario,
        drill_options,
        pack_config,
        envoy,
        scrape_seconds,
    )
    try:
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        write_files(asked)
    except OSError as error:
        raise click.ClickException(f"{error.filename or folder}: {error.strerror}") from error
    except (NotRenderedError, UnservableError) as error:
        raise UsageFailure(str(error)) from error
    for line in missing((PROMETHEUS, ALERTMANAGER, GRAFANA)):
        click.echo(line, err=True)
    _run(asked)


def _run(asked: Asked) -> None:
    asked_to_end: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: asked_to_end.append(number))
    supervisor = Supervisor(asked.folder / "logs", _say)
    try:
        for part in parts(asked):
            if asked_to_end:
                return
            supervisor.start(part)
            click.echo(f"{part.name:13} {part.url:42} {part.does}")
        click.echo(f"all of it runs; files, logs and data in {asked.folder}. Ctrl-C ends it.")
        supervisor.watch(lambda: bool(asked_to_end))
    except PartFailedError as error:
        raise click.ClickException(str(error)) from error
    finally:
        supervisor.end()
    click.echo("ended")


def _say(line: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {line}", err=True)
