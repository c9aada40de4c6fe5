"""``thrashold drill serve``: a scene on sockets, for a live stack to be pointed at."""

from __future__ import annotations

import ipaddress
import math
import sys
import time
from dataclasses import replace
from pathlib import Path

import click

from drill.fake_nvml import BuildError
from drill.playing.files import write_json
from drill.playing.progress import Progress
from drill.playing.run import TRUTH
from drill.playing.truth import TruthLog
from drill.scenarios.scene import Scene
from drill.scene_options import Asked, Chosen, asked, refused_in_words, scene_options
from drill.showing import sidecar
from drill.showing.fake_gpus import FOLDER, FakeGpus
from drill.showing.pages import Pages, Performance
from drill.showing.serve import Late, perform, run_until_signal
from drill.showing.stage import CantListenError, Stage
from drill.terminal import is_live
from exporter.usage import UsageFailure

DEFAULT_PORT_BASE = 18_000
LOOPBACK = "127.0.0.1"
_PLAIN_EVERY_SECONDS = 60


@click.command()
@scene_options
@click.option(
    "--speed",
    type=float,
    default=1.0,
    show_default=True,
    help="Seconds of the drill in one of the clock. Rates are read so many times too high.",
)
@click.option(
    "--port-base",
    type=click.IntRange(0, 65_535),
    default=DEFAULT_PORT_BASE,
    show_default=True,
    help="The first engine's port; all others follow. 0 takes free ones.",
)
@click.option("--host", default=LOOPBACK, show_default=True, help="Where to listen.")
@click.option(
    "--gpus",
    "fake",
    type=click.Choice(["dcgm", "fake"]),
    default="dcgm",
    show_default=True,
    callback=lambda _context, _option, value: value == "fake",
    help="How a sidecar reads GPUs: from dcgm-exporters, or from a fake NVML library too, which is built in --out.",
)
@click.option(
    "--seconds",
    type=click.IntRange(min=1),
    help="Seconds of the drill, shorter or longer than the scenario's own: load goes on as it ends.",
)
@click.option("--repeat", is_flag=True, help="Begin anew at the end, until Ctrl-C.")
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"Where to write {sidecar.FILE}, settings for thrashold exporter, and at the end {TRUTH}, by the clock.",
)
def serve(  # noqa: PLR0913 - one each for click's options
    *,
    speed: float,
    port_base: int,
    host: str,
    fake: bool,
    seconds: int | None,
    repeat: bool,
    out: Path | None,
    **chosen: Chosen,
) -> None:
    """Play a scenario in real time on sockets, to be scraped.

    Each engine answers on a port of its own, late where a real one would be, and refuses connections while it is dead
    or starting. The gateway shows Envoy's stats, each machine dcgm-exporter's. Ends with the scenario, or at Ctrl-C.
    """
    if not (speed > 0 and math.isfinite(speed)):
        raise UsageFailure(f"--speed is {speed:g}: take a number above 0")
    if fake and out is None:
        raise UsageFailure("--gpus fake builds its library in a folder: give --out DIR")
    try:
        with refused_in_words():
            what = asked(**chosen)
            performance = Performance(_scene(what, seconds), what.setting.seed)
            if fake and out is not None:
                performance.beside = FakeGpus(performance.scene, performance.gpus, out / FOLDER)
        stage = Stage(performance.scene, host, port_base, speed=speed, seed=what.setting.seed)
        _introduce(stage, performance, host, out)
        truths: list[TruthLog] = []
        try:
            ended = run_until_signal(
                _serve(what, performance, stage, speed, seconds=seconds, repeat=repeat, truths=truths)
            )
        finally:
            if out is not None and truths:
                others = [each.name for each in what.others]
                write_json(out / TRUTH, truths[-1].told(what.scenario.name, others))
    except (CantListenError, BuildError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or host}: {error.strerror}") from error
    click.echo("the end" if ended else "ended")


def _scene(what: Asked, seconds: int | None) -> Scene:
    """From now on."""
    scene = replace(what.scene(), epoch=time.time())
    return scene if seconds is None else replace(scene, seconds=seconds)


async def _serve(  # noqa: PLR0913 - what, where, how fast, how long, and who keeps the truth
    what: Asked,
    performance: Performance,
    stage: Stage,
    speed: float,
    *,
    seconds: int | None,
    repeat: bool,
    truths: list[TruthLog],
) -> None:
    try:
        while True:
            truth = TruthLog(performance.scene)
            truths[:] = [truth]
            live = is_live(sys.stdout)
            progress = Progress(
                performance.scene, sys.stdout, live=live, every=1 if live else _PLAIN_EVERY_SECONDS
            )

            def told(
                pages: Pages, late: Late, progress: Progress = progress, truth: TruthLog = truth
            ) -> None:
                truth.see(pages.second, time.time())
                progress.see(pages.second, late.behind_seconds)

            def slow(late: Late, progress: Progress = progress) -> None:
                progress.say(
                    f"falls behind by {late.behind_seconds:.0f} s so far: a second of the drill is given "
                    f"{1 / speed:.2g} s and took up to {late.took_seconds:.2g} s here"
                )

            try:
                await perform(performance, stage, speed, told, slow)
            finally:
                progress.end()
            if not repeat:
                return
            progress.say("begins anew")
            performance = Performance(_scene(what, seconds), what.setting.seed, performance.beside)
    finally:
        stage.close()
        if performance.beside is not None:
            performance.beside.close()


def _introduce(stage: Stage, performance: Performance, host: str, out: Path | None) -> None:
    """Where everything is. Raises OSError."""
    scene = performance.scene
    addresses = stage.addresses
    wide = max(len(each.title) for each in addresses)
    for each in addresses:
        click.echo(f"{each.title:{wide}}  {each.url}")
    if not _is_loopback(host):
        click.echo(f"OPEN TO THE NETWORK: {host} is not loopback, and nobody is asked who they are", err=True)
    if out is None:
        click.echo(f"\nread all of it with:\n{sidecar.command(stage, scene)}\n")
        return
    out.mkdir(parents=True, exist_ok=True)
    file = out / sidecar.FILE
    fake = performance.beside
    settings = sidecar.settings(stage, scene, performance.uuids, nvml=fake is not None)
    file.write_text(settings, encoding="utf-8")
    found = "" if fake is None else "".join(f"{name}={value} " for name, value in fake.environment.items())
    click.echo(f"\nread all of it with:\n{found}thrashold exporter --config {file}\n")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"
