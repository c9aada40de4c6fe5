"""``thrashold drill``: list scenarios, run them, and put them on sockets."""

from __future__ import annotations

from pathlib import Path

import click

from drill.playing.play import Moment
from drill.playing.run import run as run_scenario
from drill.playing.table import table
from drill.scenarios.catalogue import SCENARIOS
from drill.scene_options import Chosen, asked, refused_in_words, scene_options
from drill.showing.command import serve


@click.group()
def drill() -> None:
    """Let a simulated fleet fail, with known truth."""


drill.add_command(serve)


@drill.command("list")
def list_scenarios() -> None:
    """List the scenarios: name, cause, and what happens."""
    wide = max(map(len, SCENARIOS))
    for name, scenario in sorted(SCENARIOS.items()):
        click.echo(f"{name:{wide}}  {scenario.summary}")


@drill.command("run")
@scene_options
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to.  [default: drill-SCENARIO]",
)
@click.option("--raw", is_flag=True, help="Write raw.om too: the pages of engines and gateway.")
@click.option(
    "--raw-every",
    metavar="SECONDS",
    type=click.IntRange(min=1),
    default=15,
    show_default=True,
    help="Between two of these pages. An engine takes some 65 kB for each.",
)
def run_one(*, out: Path | None, raw: bool, raw_every: int, **chosen: Chosen) -> None:
    """Run a scenario and keep what a sidecar saw of it, and the truth.

    Writes truth.json, metrics.om (the sidecar's signals as OpenMetrics, each second), recording.db (the same for
    thrashold recorder) and summary.json, and prints the key metrics.
    """
    with refused_in_words():
        what = asked(**chosen)
        folder = out or Path(f"drill-{what.scenario.name}")
        length = what.scene().seconds
        try:
            with click.progressbar(length=length, label=what.scenario.name) as bar:

                def told(_moment: Moment) -> None:
                    bar.update(1)

                ran = run_scenario(
                    what.scenario,
                    what.setting,
                    folder,
                    others=what.others,
                    told=told,
                    raw_every=raw_every if raw else None,
                )
        except OSError as error:
            raise click.ClickException(f"{error.filename or folder}: {error.strerror}") from error
    click.echo(table(ran.metrics))
    click.echo(f"\nall of it: {folder}")
