"""Snapshots for the flight recorder, and a writer of them that is killed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from exporter.recorder import Recorder
from exporter.signal import Confidence, Kind, Scope, Signal
from exporter.snapshot import Snapshot, Value

ROOT = Path(__file__).resolve().parents[2]
START = 1_800_000_000.0


def signal(name: str, kind: Kind = Kind.GAUGE, labels: tuple[str, ...] = (), *, peak: bool = False) -> Signal:
    """A signal of this test's own."""
    return Signal(
        name, kind, Scope.SIDECAR, f"Help on {name}.", Confidence.MEASURED, "", (), labels, peak=peak
    )


USAGE = signal("kv_usage_ratio", peak=True)
TOKENS = signal("generation_tokens_total", Kind.COUNTER)
BY_REASON = signal("errors_total", Kind.COUNTER, ("reason",))


def snapshot(at: float, *values: tuple[Signal, tuple[str, ...], float]) -> Snapshot:
    """What a cycle hands over at ``at``."""
    return Snapshot(
        at, tuple(Value(each, labels, value, is_peak=False) for each, labels, value in values), ready=True
    )


def second(place: int, width: int = 1) -> Snapshot:
    """The cycle ``place`` seconds after the start: a gauge, a counter that says which, ``width`` more of them."""
    more = [(BY_REASON, (f"reason {each}",), float(place * each)) for each in range(width)]
    return snapshot(
        START + place, (USAGE, (), (place % 97) / 97), (TOKENS, (), float(place * 1_000_003)), *more
    )


def write_until_killed(path: Path, place: int) -> None:
    """Record second after second from ``place`` on as fast as it goes, saying each before it is handed over."""
    recorder = Recorder(path)
    recorder.start()
    written = 0
    while True:
        sys.stdout.write(f"{place}\n")
        sys.stdout.flush()
        recorder.put(second(place, width=50))
        place += 1
        written += 1
        # in life there is a second for that; a queue that fills here would prove nothing
        while recorder.status.written < written and not recorder.status.failed:
            time.sleep(0.0002)  # SQLite gives the interpreter away with each statement


def kill_a_writer(path: Path, place: int, chance: random.Random) -> int:
    """Run ``write_until_killed`` in a process and kill it at a random moment; gives the last place it said."""
    script = "import sys, pathlib; from tests.support.recorder import write_until_killed as w; "
    command = [
        sys.executable,
        "-c",
        f"{script}w(pathlib.Path(sys.argv[1]), int(sys.argv[2]))",
        str(path),
        str(place),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, bufsize=0) as process:
        if process.stdout is None:
            raise AssertionError("stdout is a pipe")
        for _ in range(2):  # with the second line the first cycle is written
            process.stdout.readline()
        try:
            # the sleep is the moment: anywhere in the first few minutes of the recording
            process.wait(chance.uniform(0.0, 0.25))
        except subprocess.TimeoutExpired:
            process.kill()
        else:
            raise AssertionError(f"the writer ended by itself: {process.returncode}")
        said = process.stdout.read().split(b"\n")[:-1]
    return int(said[-1]) if said else place + 1
