"""The figures of a run, for people and for the release notes."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from tests.real_engine import judging
from tests.real_engine.figures import FIGURES
from tests.real_engine.install import ENGINE
from tests.real_engine.judging import Figure
from tests.real_engine.recording import Recording


def judged(run: Recording) -> dict[str, Figure]:
    """All figures of a run."""
    return judging.judged(FIGURES, run)


def table(figures: dict[str, Figure]) -> list[str]:
    """Measured against true, a line a figure."""
    rows = [("figure", "measured", "true", "allowed", "", "")]
    rows += [
        (name, _text(f.measured), _text(f.truth), f.allowed, "ok" if f.holds else "NO", f.note)
        for name, f in figures.items()
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]]).rstrip()
        for row in rows
    ]


def circumstances(run: Recording) -> dict[str, float | str]:
    """What kind of run it was, and what the sidecar cost."""
    marks = run.marks
    overload = marks["overload"], marks["overload_over"]
    steps = [step for step in run.oracle.steps if overload[0] < step.at < overload[1]]
    hits = sum(overload[0] < hit.at < overload[1] for hit in run.oracle.preemptions)
    watched = marks["cost"] - marks["watching"]
    return {
        "engine": ENGINE,
        "seconds": round(watched, 1),
        "ready_seconds": round(marks["ready"] - marks["watching"], 1),
        "overload_seconds": round(overload[1] - overload[0], 1),
        "overload_running_mean": round(statistics.fmean(step.running for step in steps), 2),
        "overload_preemptions_per_second": round(hits / (overload[1] - overload[0]), 2),
        "requests": len(run.requests),
        "longest_client_gap_seconds": round(max(r.max_gap for r in run.of_phase("overload")), 2),
        "sidecar_cpu_ratio": round(float(run.facts["sidecar_cpu_seconds"]) / watched, 4),
        "sidecar_resident_megabytes": round(float(run.facts["sidecar_resident_bytes"]) / 1e6, 1),
    }


def write(file: Path, run: Recording, figures: dict[str, Figure]) -> None:
    """Both as JSON."""
    whole = {
        "circumstances": circumstances(run),
        "figures": {name: f._asdict() for name, f in figures.items()},
    }
    file.write_text(json.dumps(whole, indent=1) + "\n")


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
