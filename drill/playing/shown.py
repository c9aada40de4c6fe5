"""A run that people watch: what happens as it happens, then the key metrics, and where everything is kept."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from drill.playing.deviations import beside
from drill.playing.narration import Narration
from drill.playing.play import Moment
from drill.playing.run import METRICS, RECORDING, SUMMARY, TRUTH, run
from drill.scenarios.catalogue import scenario_by_name
from drill.scenarios.setting import Setting, Size
from drill.terminal import is_live

_ERASE_LINE = "\r\x1b[K"
_STATE_EVERY_SECONDS = 60
_FILES = (
    (SUMMARY, "the key metrics"),
    (TRUTH, "what was true, second by second"),
    (METRICS, "what the sidecar said, as OpenMetrics"),
    (RECORDING, "the same, for thrashold recorder"),
)


def show(name: str, size: str, seed: int, out: Path) -> None:
    """Run a scenario into ``out``.

    On a terminal the last line says how things stand; elsewhere a line a minute of the drill does. Raises what ``run``
    does.
    """
    scenario, setting = scenario_by_name(name), Setting(Size(size), seed)
    scene = scenario.scene(setting)
    config = next(iter(scene.engines.values()))
    click.echo(f"{scenario.summary}")
    click.echo(
        f"{len(scene.engines)} simulated engines, each {config.model.name} on {config.tensor_parallel} "
        f"{config.gpu.name}, for {scene.seconds / 60:.0f} min; the sidecar's own code watches them each second."
    )
    narration, live = Narration(scene), is_live(sys.stdout)

    def told(moment: Moment) -> None:
        if live:
            click.echo(_ERASE_LINE, nl=False)
        for line in narration.lines(moment):
            click.echo(line)
        passed = moment.second.seconds
        if live:
            state = f"{passed / scene.seconds:4.0%}  {narration.state(moment)}"
            click.echo(state[: shutil.get_terminal_size().columns - 1], nl=False)
        elif passed % _STATE_EVERY_SECONDS == 0:
            click.echo(narration.state(moment))

    ran = run(scenario, setting, out, told=told)
    if live:
        click.echo(_ERASE_LINE, nl=False)
    width = min(110, max(60, shutil.get_terminal_size().columns))
    click.echo(f"\n{beside(ran, scenario.published, width)}\n\nin {out}:")
    for file, what in _FILES:
        click.echo(f"  {file:14} {what}")
    click.echo("docs/drill.md says how a Prometheus shows it, and how to see alerts fire")
