"""What a postmortem lists beside the sidecar's signals, counted in the truth of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from drill.playing.key_metrics import PHASES, KeyMetrics, Phases
from drill.scenarios.scene import Scene
from exporter.pcie import HEADER_FACTOR

_UNANSWERED = ("timed_out", "rejected", "failed")


class Counted(NamedTuple):
    """Of a phase, over the fleet.

    ``swapped_blocks_per_second``: the most within a second, both directions. ``copying_bytes_per_second``: over one
    GPU's link, headers included, while forward passes waited for copies of blocks; None: none did. ``requests_hit``:
    attempts that timed out, failed or were turned away.
    """

    swapped_blocks_per_second: float
    copying_bytes_per_second: float | None
    requests_hit: float


def count(scene: Scene, truth: Mapping[str, Any], phases: Phases) -> dict[str, Counted]:
    """By phase. ``truth``: as TruthLog tells it."""
    return {phase: _of(scene, truth, getattr(phases, phase)) for phase in PHASES}


def as_json(
    metrics: Mapping[str, KeyMetrics], counted: Mapping[str, Counted]
) -> dict[str, dict[str, float | None]]:
    """As ``summary.json`` has it: by phase, all that the table has."""
    return {phase: {**metrics[phase]._asdict(), **counted[phase]._asdict()} for phase in PHASES}


def _of(scene: Scene, truth: Mapping[str, Any], span: tuple[float, float]) -> Counted:
    length = len(truth["seconds"])
    first, last = min(int(span[0]), length), min(int(span[1]), length)
    moved = [0.0] * (last - first)
    carried = copying = 0.0
    for name, columns in truth["engines"].items():
        config = scene.engines[name]
        copying += sum(columns["copy_seconds"][first:last])
        for direction in ("swap_in_bytes", "swap_out_bytes"):
            for place, value in enumerate(columns[direction][first:last]):
                moved[place] += value / config.block_bytes
                carried += value / config.tensor_parallel * HEADER_FACTOR
    fleet = truth["fleet"]

    def unanswered(seconds: int) -> float:
        return float(sum(fleet[name][seconds - 1] for name in _UNANSWERED)) if seconds else 0.0

    return Counted(
        max(moved, default=0.0),
        carried / copying if copying else None,
        unanswered(last) - unanswered(first),
    )
