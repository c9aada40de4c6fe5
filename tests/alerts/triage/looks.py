"""Looks at what was recorded or played: as the command would have taken them at a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from alerts.thresholds import THRESHOLDS
from alerts.triage.known import Origin, Witness
from alerts.triage.look import Beside, Look
from alerts.triage.rows import Name, Row, Rows, of_snapshot
from alerts.triage.verdict import Verdict, judged
from exporter.cycle import CycleSettings, initial, step
from exporter.observation import Observation, SourceStatus
from exporter.sample import EngineSample
from exporter.signal import Signal
from exporter.snapshot import Snapshot

ENGINE = "worker-1"
Labelled = Mapping[tuple[Signal, tuple[str, ...]], float]


def alone(samples: Sequence[EngineSample]) -> Look:
    """By the engine alone, from the first of its reads to the last."""
    state, moments = initial(CycleSettings()), []
    for sample in samples:
        name = sample.engine
        status = SourceStatus(name, "engine", answering=True, last_at=sample.at, read_seconds=0.01)
        state, snapshot = step(state, sample.at + 0.01, [Observation(status, sample)])
        moments.append(of_snapshot(snapshot))
    name, seconds = samples[-1].engine, samples[-1].at - samples[0].at
    own = Witness(Origin.LOOK, name, moments[0], moments[-1])
    return Look(name, f"http://{name}/metrics", seconds, (samples[0], samples[-1]), own=own)


def beside(samples: Sequence[EngineSample], first: Snapshot, last: Snapshot) -> Look:
    """The same, and a sidecar's page at both ends."""
    look = alone(samples)
    witness = Witness(Origin.SIDECAR, look.engine, of_snapshot(first), of_snapshot(last))
    told = Beside("http://sidecar/metrics", asked_for=False, witness=witness)
    return Look(look.engine, look.url, look.seconds, look.samples, own=look.own, beside=told)


def verdict(look: Look) -> str:
    """By its name, with a question mark where it is only possible."""
    made: Verdict = judged(look, THRESHOLDS)
    unsure = made.finding is not None and made.finding.certainty == "possible"
    return f"{made.name}?" if unsure else made.name


def rows(at: float, told: Labelled) -> Rows:
    """Values by signal and labels, as they stand on a page."""
    found: dict[Name, tuple[Row, ...]] = {}
    for (signal, labels), value in told.items():
        name = Name(signal, is_peak=False)
        found[name] = (*found.get(name, ()), Row(labels, value))
    return Rows(at, found)


def by_sidecar(then: Labelled, now: Labelled, *, failure: str = "") -> Look:
    """What a sidecar's page said of ``ENGINE`` a second ago and says now; the engine itself wasn't read."""
    witness = Witness(Origin.SIDECAR, ENGINE, rows(0.0, then), rows(1.0, now))
    told = Beside("http://sidecar/metrics", asked_for=True, witness=witness)
    return Look(ENGINE, f"http://{ENGINE}/metrics", 1.0, failure=failure, beside=told)
