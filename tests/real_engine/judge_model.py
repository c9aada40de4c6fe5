"""The drill's model under the arrivals of the run: how far its KV cache and its preemptions are from the engine's."""

from __future__ import annotations

from pathlib import Path

from drill.validate import BAR, PREEMPTION_BAR, compare_fresh
from drill.validation.fresh_run import read_fresh
from tests.real_engine.judging import Figure, within

NAMES = ("model: KV usage", "model: preemptions")


def judged(traces: Path) -> dict[str, Figure]:
    """Both figures of the run that lies there; where it can't be read, neither holds."""
    try:
        return _judged(traces)
    except Exception as error:  # noqa: BLE001 - whatever a broken trace leads to: it spoils no other figure
        return {name: Figure(None, None, "", holds=False, note=repr(error)) for name in NAMES}


def _judged(traces: Path) -> dict[str, Figure]:
    fresh = read_fresh(traces)
    beside = compare_fresh(fresh)
    paces = fresh.times.paces.values()
    about = f"{len(fresh.run.readings)} instants; the machine's pace {min(paces):.2f} to {max(paces):.2f}"
    happened = beside.real_preemptions or 0
    return {
        NAMES[0]: within(beside.usage_rms, 0.0, BAR, f"{BAR:.0%} RMS", about),
        NAMES[1]: within(beside.preemptions, happened, PREEMPTION_BAR * happened, f"+-{PREEMPTION_BAR:.0%}"),
    }
