"""The demo: the incident as it happens, then its key metrics beside the postmortem's. Or a recorded real engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from drill import replayed
from drill.recording import RecordingError
from drill.sidecar import SidecarError
from exporter.usage import FiniteRange

_OUT = Path("drill-incident")
_INTERRUPTED = 130  # what a shell expects of a command ended by Ctrl-C


@click.command()
@click.option(
    "--size",
    type=click.Choice(["small", "full"]),
    default="small",
    show_default=True,
    help="How large a fleet.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of all chance.")
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path, file_okay=False),
    default=_OUT,
    show_default=True,
    help="Where to.",
)
@click.option("--recording", is_flag=True, help="Play a recorded real engine to a real sidecar instead.")
@click.option(
    "--from",
    "begin",
    type=FiniteRange(min=0),
    default=replayed.FROM_SECOND,
    show_default=True,
    metavar="SECOND",
    help="Where in the recording to begin.",
)
@click.option(
    "--seconds",
    type=FiniteRange(min=3),
    default=replayed.SECONDS,
    show_default=True,
    help="How long to play it, in real time.",
)
@click.option("--keep", is_flag=True, help="Leave its sidecar running at the end, until Ctrl-C or kill.")
def main(  # noqa: PLR0913, PLR0917 - one each for click's options
    size: str,
    seed: int,
    out: Path,
    recording: bool,  # noqa: FBT001 - click calls by name
    begin: float,
    seconds: float,
    keep: bool,  # noqa: FBT001
) -> None:
    """Watch a fleet thrash, as thrashold sees it: the incident of 2026-09-29 from burst to recovery, simulated.

    With --recording: a real vLLM that runs out of KV cache. A recorded engine is played by a small server on
    loopback; a real sidecar reads it once a second, and what the sidecar says is shown. The exit code is 0 only
    when the sidecar saw what the recording holds.
    """
    _end_on_signals()
    try:
        if recording:
            replayed.show_recording(begin, seconds, keep=keep)
        else:
            _show_incident(size, seed, out)
    except (RecordingError, SidecarError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # whoever read us has gone; Python would complain once more when it flushes at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        raise click.ClickException(f"{error.filename or out}: {error.strerror}") from error
    except KeyboardInterrupt:
        click.echo("stopped; the sidecar and the replayed engine are gone too" if recording else "stopped")
        sys.exit(_INTERRUPTED)


def _show_incident(size: str, seed: int, out: Path) -> None:
    try:
        # a recording needs no numpy
        from drill.playing.shown import show  # noqa: PLC0415
        from drill.scene_options import refused_in_words  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"the simulated fleet needs {error.name}: pip install 'thrashold[drill]', or take --recording"
        ) from error
    with refused_in_words():
        show("incident", size, seed, out)
    _report(out)


def _report(folder: Path) -> None:
    """As an analyst makes it, from the recording alone: by the command, as the drill knows nothing of the analysis."""
    click.echo("\nthrashold analyze, from what the sidecar recorded:\n")
    command = [sys.executable, "-m", "thrashold", "analyze", str(folder), "--out", str(folder)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode:
        told = done.stderr.strip().splitlines()
        raise click.ClickException(
            f"there is no report: {told[-1] if told else f'exit code {done.returncode}'}"
        )


def _end_on_signals() -> None:
    """What ends the demo must end the sidecar as well."""
    kinds = [signal.SIGINT, signal.SIGTERM]  # SIGINT as well: a shell lets what it starts with & ignore it
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup asks to go on
        kinds.append(signal.SIGHUP)
    for kind in kinds:
        signal.signal(kind, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main(prog_name="demo")
