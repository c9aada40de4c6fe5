"""``thrashold drill``: list scenarios, run them, and put them on sockets."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from drill.playing.deviations import beside
from drill.playing.progress import Progress
from drill.playing.run import run as run_scenario
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.listing import as_json, as_table
from drill.scene_options import Chosen, asked, refused_in_words, scene_options
from drill.showing.command import serve
from drill.terminal import is_live

_STEPS, _LIVE_STEPS = 10, 200
"""How often a run says where it stands, in a log and on a terminal."""

_RAW_EVERY = 15
"""Seconds, as a Prometheus scrapes."""


@click.group()
def drill() -> None:
    """Let a simulated fleet fail, with known truth."""


drill.add_command(serve)


@drill.command("list")
@click.option("--json", "in_json", is_flag=True, help="As JSON.")
def list_scenarios(*, in_json: bool) -> None:
    """List the scenarios: name, cause, size, what happens."""
    found = [SCENARIOS[name] for name in sorted(SCENARIOS)]
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    click.echo(as_json(found) if in_json else as_table(found, columns))


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
    help=f"Write raw.om, and so long between two of these pages. An engine takes some 65 kB for each.  "
    f"[default: {_RAW_EVERY}]",
)
def run_one(*, out: Path | None, raw: bool, raw_every: int | None, **chosen: Chosen) -> None:
    """Run a scenario and keep what a sidecar saw of it, and the truth.

    Writes truth.json, metrics.om (the sidecar's signals as OpenMetrics, of a full run every 15 s), recording.db (the
    same each second, for thrashold recorder) and summary.json, and prints the key metrics.
    """
    with refused_in_words():
        what = asked(**chosen)
        folder = out or Path(f"drill-{what.scenario.name}")
        scene = what.scene()
        live = is_live(sys.stderr)
        progress = Progress(
            scene, sys.stderr, live=live, every=max(1, scene.seconds // (_LIVE_STEPS if live else _STEPS))
        )
        try:
            ran = run_scenario(
                what.scenario,
                what.setting,
                folder,
                others=what.others,
                told=lambda moment: progress.see(moment.second),
                raw_every=(raw_every or _RAW_EVERY) if raw or raw_every else None,
            )
        except OSError as error:
            raise click.ClickException(f"{error.filename or folder}: {error.strerror}") from error
        finally:
            progress.end()
    click.echo(beside(ran, what.scenario.published))
    click.echo(f"\nall of it: {folder}")
