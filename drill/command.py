"""``thrashold drill``: list scenarios and run them."""

from __future__ import annotations

from pathlib import Path

import click

from drill.playing.play import Moment
from drill.playing.run import run as run_scenario
from drill.playing.table import table
from drill.scenarios.catalogue import SCENARIOS, scenario_by_name
from drill.scenarios.setting import Setting, SettingError, Size
from drill.serving.config import EngineConfigError, Generation
from drill.workload.trace_files import TraceError


class UsageFailure(click.ClickException):
    """Something the caller gave can't be used: one line, exit code 2."""

    exit_code = 2


@click.group()
def drill() -> None:
    """Let a simulated fleet fail, with known truth."""


@drill.command("list")
def list_scenarios() -> None:
    """List the scenarios: name, cause, and what happens."""
    wide = max(map(len, SCENARIOS))
    for name, scenario in sorted(SCENARIOS.items()):
        click.echo(f"{name:{wide}}  {scenario.summary}")


@drill.command("run")
@click.argument("scenario")
@click.option(
    "--size", type=click.Choice(list(Size)), default=Size.SMALL, show_default=True, help="How large a run."
)
@click.option("--with", "others", metavar="SCENARIO", multiple=True, help="What else goes wrong. Repeatable.")
@click.option("--model", help="Another model, by name.")
@click.option("--gpu", help="Another GPU, by name.")
@click.option("--generation", type=click.Choice(list(Generation)), help="vLLM's engine.")
@click.option("--engines", type=int, help="How many engines.")
@click.option(
    "--ramp",
    "ramp_seconds",
    type=float,
    default=0.0,
    help="Seconds over which load rises that else rises at once.",
)
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Of all chance: the same gives the same run."
)
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to.  [default: drill-SCENARIO]",
)
def run_one(  # noqa: PLR0913, PLR0917 - one each for click's options
    scenario: str,
    size: Size,
    others: tuple[str, ...],
    model: str | None,
    gpu: str | None,
    generation: Generation | None,
    engines: int | None,
    ramp_seconds: float,
    seed: int,
    out: Path | None,
) -> None:
    """Run a scenario and keep what a sidecar saw of it, and the truth.

    Writes truth.json, metrics.om (the sidecar's signals as OpenMetrics, each second), recording.db (the same for
    thrashold recorder) and summary.json, and prints the key metrics.
    """
    try:
        chosen = scenario_by_name(scenario)
        more = [scenario_by_name(name) for name in others]
        setting = Setting(
            Size(size),
            seed,
            model,
            gpu,
            None if generation is None else Generation(generation),
            engines,
            ramp_seconds,
        )
        length = chosen.scene(setting, more).seconds
        folder = out or Path(f"drill-{scenario}")
        with click.progressbar(length=length, label=scenario) as bar:

            def told(_moment: Moment) -> None:
                bar.update(1)

            ran = run_scenario(chosen, setting, folder, others=more, told=told)
    except (SettingError, EngineConfigError, TraceError) as error:
        raise UsageFailure(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or folder}: {error.strerror}") from error
    click.echo(table(ran.metrics))
    click.echo(f"\nall of it: {folder}")
