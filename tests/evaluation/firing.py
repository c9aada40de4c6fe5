"""The state machine of alerts beside Prometheus's own, on generated cases: by promtool, live, and by vmalert.

    python -m tests.evaluation.firing [--cases 200] [--seconds 90] [--seed N] [--no-live] [--vmalert PATH]

Live: a real Prometheus evaluates once a second what was pushed for the seconds to come, and is started anew twice
meanwhile. What it did at each evaluation it has written itself (``ALERTS``), and when it evaluated too.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.bench.report import line
from tests.evaluation.firing_live import live
from tests.evaluation.firing_vmalert import by_vmalert
from tests.support.alert_cases import by_promtool, cases

_STEP, _LENGTH = 15, 60
_DURATIONS = (0, 10, 15, 20, 40, 60, 120, 180)


def main() -> int:
    """The command; 1 where anything differs that isn't known to."""
    parser = argparse.ArgumentParser(prog="python -m tests.evaluation.firing", description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=90, help="of the live part")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-live", action="store_true")
    parser.add_argument("--vmalert", help="its program, as of Debian's victoria-metrics")
    asked = parser.parse_args()
    chance = random.Random(asked.seed)  # noqa: S311 -- histories, no secrets
    every = cases(asked.cases, _LENGTH, chance, _DURATIONS)
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        complaints, told = by_promtool(every, _STEP, Path(name))
        line(
            f"promtool: {len(every)} cases x {_LENGTH} evaluations, {told} states: {complaints or 'the same'}"
        )
        wrong += bool(complaints)
    if not asked.no_live:
        with tempfile.TemporaryDirectory() as name:
            found = live(asked.cases, asked.seconds, asked.seed, Path(name))
        line(
            f"live: {asked.cases} cases x {found.evaluations} evaluations over {found.starts} starts, {found.states}"
            f" states, of which {found.restored} of restored alerts: {len(found.differ)} differ"
        )
        for words in found.differ[:10]:
            line(f"  {words}")
        wrong += bool(found.differ)
    if asked.vmalert:
        with tempfile.TemporaryDirectory() as name:
            said = by_vmalert(every, _STEP, Path(name), asked.vmalert)
        line(
            f"vmalert -replay: {said.cases} cases without keep_firing_for x {_LENGTH} evaluations:"
            f" {said.states} states, {len(said.differ)} instants differ"
        )
        for words in said.differ[:10]:
            line(f"  {words}")
        wrong += bool(said.differ)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
