"""A recorded engine runs out of KV cache, a real sidecar reads it, the terminal shows it."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import time
from contextlib import suppress

import click

from drill import sidecar as sidecars
from drill.recording import KV_BYTES_PER_TOKEN, Recording, Scrape, load
from drill.replay import Replayer
from drill.screen import State, frame
from drill.sidecar import Cost, Reading, Sidecar, SidecarError
from drill.story import Event, new_events
from drill.summary import NEXT, Run, failures, report
from drill.terminal import LiveScreen, PlainScreen, Screen, glyphs_for, is_live, wants_colour

FROM_SECOND = 17.0
"""Leaves 12 s of calm load, enough to see what normal looks like, before the burst at second 29."""
SECONDS = 86.0
"""Until the pool has been empty again for some seconds. Rates over 30 s and quantiles over 60 s need
that long to exist, so the recording can't be cut shorter; and it can't be played faster, because the
sidecar measures in real time."""
_REDRAW_SECONDS = 0.25


class _Player:
    """Plays ``seconds`` of a recording from second ``begin`` to a running sidecar."""

    def __init__(self, recording: Recording, begin: float, seconds: float) -> None:
        self._recording = recording
        self._begin = begin
        self._seconds = seconds
        self._played = recording.between(begin, begin + seconds)
        self._history: list[tuple[float, Reading]] = []
        self._events: tuple[Event, ...] = ()
        self._elapsed = 0.0

    def play(self, replayer: Replayer, sidecar: Sidecar, screen: Screen) -> Run:
        """Play to the end. Raises SidecarError when the sidecar fails meanwhile."""
        # The engine's numbers change once a second, and as often they are read. Half a second apart, no
        # read meets a change, which would show one number twice and miss the next.
        if not replayer.wait_for_read(timeout=5.0):
            raise SidecarError("the sidecar stopped reading the engine")
        time.sleep(0.5)
        replayer.play()
        cost_before, reads_before, start = sidecar.cost(), replayer.reads, time.monotonic()
        for tick in itertools.count():
            self._elapsed = time.monotonic() - start
            if self._elapsed >= len(self._history) and len(self._history) < self._seconds:
                self._take(sidecar.read())
            screen.show(self.state(sidecar.url))
            if self._elapsed >= self._seconds:
                break
            time.sleep(max(0.0, start + (tick + 1) * _REDRAW_SECONDS - time.monotonic()))
        end = self._begin + self._seconds
        departures = sum(self._begin < at <= end for at in self._recording.departures)
        cost = _difference(sidecar.cost(), cost_before)
        reads = replayer.reads - reads_before
        return Run(self._seconds, self._played, self._history, self._events, departures, reads, cost)

    def state(self, url: str) -> State:
        """What there is to show now."""
        elapsed = min(self._elapsed, self._seconds)
        history = tuple(self._history)
        return State(elapsed, self._seconds, url, _phases(self._played, self._begin), history, self._events)

    def _take(self, reading: Reading) -> None:
        self._history.append((self._elapsed, reading))
        self._events += new_events(self._events, self._elapsed, reading)


def _phases(played: tuple[Scrape, ...], begin: float) -> tuple[tuple[float, str], ...]:
    """The phases of the load as (until, name), in seconds of the demo; the last has no end."""
    phases: list[tuple[float, str]] = []
    for scrape, following in itertools.pairwise(played):
        if following.phase != scrape.phase:
            phases.append((following.at - begin, scrape.phase))
    return (*phases, (float("inf"), played[-1].phase))


def _difference(now: Cost | None, before: Cost | None) -> Cost | None:
    if now is None or before is None:
        return None
    return Cost(now.cpu_seconds - before.cpu_seconds, now.peak_bytes)


def show_recording(begin: float, seconds: float, *, keep: bool) -> None:
    """Play so many seconds of the recording from ``begin`` on; ``keep``: the sidecar runs on until a signal.

    Raises RecordingError, SidecarError where the sidecar missed what the recording holds, and UsageError.
    """
    recording = load()
    if begin + seconds > recording.seconds:
        raise click.UsageError(f"the recording ends at second {recording.seconds:.0f}: begin or end earlier")
    click.echo(f"A real vLLM 0.8.5 running out of KV cache: {seconds:.0f} s of a recording, in real time.")
    click.echo("Starting the replayed engine, and a sidecar that reads it ...")
    player = _Player(recording, begin, seconds)
    with (
        Replayer(recording, begin=begin) as engine,
        sidecars.running(engine.url, name="vllm-0.8.5", kv_bytes_per_token=KV_BYTES_PER_TOKEN) as sidecar,
    ):
        click.echo(f"The sidecar is at {sidecar.url}/, its metrics at /metrics")
        run = _shown(player, engine, sidecar)
        width = shutil.get_terminal_size().columns
        click.echo(f"\n{report(run, width)}\n\n{NEXT}")
        missed = failures(run)
        if missed:
            raise SidecarError("; ".join(missed))
        if keep:
            _go_on(sidecar.url)


def _shown(player: _Player, engine: Replayer, sidecar: Sidecar) -> Run:
    """Play, and show it in the way that fits where the output goes."""
    colour, glyphs = wants_colour(sys.stdout), glyphs_for(sys.stdout)
    live = is_live(sys.stdout)
    screen: Screen = LiveScreen(sys.stdout, colour=colour, glyphs=glyphs) if live else PlainScreen(sys.stdout)
    try:
        run = player.play(engine, sidecar, screen)
    finally:
        screen.close()
    if live:
        width = shutil.get_terminal_size().columns
        click.echo("\n" + frame(player.state(sidecar.url), width, colour=colour, glyphs=glyphs))
    return run


def _go_on(url: str) -> None:
    with suppress(KeyboardInterrupt):
        click.echo(f"\nThe sidecar goes on at {url}/ until Ctrl-C, or kill {os.getpid()}.")
        while True:
            time.sleep(1)  # and not pause(), which sleeps through a signal that comes just before it
