"""When does what begin in a scenario, by ramp: the truth, and signals beside the lines that alerts draw?

    python -m tests.evaluation.firsts [SCENARIO] [--ramp SECONDS ...] [--size full] [--engines N]

Seconds after the onset, each second played and seen as a sidecar would, before any waiting of rules or Alertmanager:
no page can come sooner than what it is made of. Blank: never until the end.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping

from alerts.thresholds import THRESHOLDS
from drill.playing.play import Moment, Play
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting, SettingError, Size
from exporter.derive.blocks import KV_USAGE
from exporter.derive.headroom import DEMAND
from exporter.derive.latency import TOKEN_INTERVAL, TPOT_P99
from exporter.derive.stalls import TOKEN_AGE
from exporter.signal import Signal
from tests.bench.report import line
from tests.evaluation.live_figures import SLOW_SECONDS


def _above(signal: Signal, limit: float) -> Callable[[Moment], bool]:
    return lambda moment: any(
        value.signal is signal and not value.is_peak and value.value >= limit
        for value in moment.snapshot.values
    )


FIRSTS: Mapping[str, Callable[[Moment], bool]] = {
    f"no token for {THRESHOLDS.decode_stall_seconds:g} s": _above(TOKEN_AGE, THRESHOLDS.decode_stall_seconds),
    f"mean gap {THRESHOLDS.token_interval_seconds:g} s": _above(
        TOKEN_INTERVAL, THRESHOLDS.token_interval_seconds
    ),
    f"KV usage {THRESHOLDS.kv_usage_full_ratio:g}": _above(KV_USAGE, THRESHOLDS.kv_usage_full_ratio),
    f"KV demand {THRESHOLDS.kv_demand_ratio:g}": _above(DEMAND, THRESHOLDS.kv_demand_ratio),
    f"TPOT p99 {SLOW_SECONDS:g} s": _above(TPOT_P99, SLOW_SECONDS),
    "swapped out": lambda moment: any(each.truth.swap_out_bytes for each in moment.second.engines),
    "swapped in": lambda moment: any(each.truth.swap_in_bytes for each in moment.second.engines),
    "preempted again": lambda moment: any(
        each.truth.repeat_preemptions_30s for each in moment.second.engines
    ),
}


def firsts(scenario: str, setting: Setting) -> dict[str, float]:
    """Of each thing that comes to be: seconds from the onset to it, until the first episode's end."""
    scene = SCENARIOS[scenario].scene(setting)
    episode = scene.episodes[0]
    found: dict[str, float] = {}
    for moment in Play(scene, setting.seed).moments():
        since = moment.second.seconds - episode.onset_seconds
        if moment.second.seconds > episode.end_seconds:
            break
        for name, begins in FIRSTS.items():
            if since >= 0 and name not in found and begins(moment):
                found[name] = since
    return found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.evaluation.firsts", description=__doc__)
    parser.add_argument(
        "scenario", nargs="?", default="incident", choices=sorted(SCENARIOS), metavar="SCENARIO"
    )
    parser.add_argument("--ramp", type=float, nargs="+", default=[0.0, 60.0, 120.0, 240.0], metavar="SECONDS")
    parser.add_argument("--size", choices=[each.value for each in Size], default=Size.SMALL.value)
    parser.add_argument("--engines", type=int)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if not SCENARIOS[asked.scenario].scene(Setting()).episodes:
        parser.error(f"nothing goes wrong in {asked.scenario}")
    line("| ramp | " + " | ".join(FIRSTS) + " |")
    line("|---" * (len(FIRSTS) + 1) + "|")
    for ramp in asked.ramp:
        setting = Setting(Size(asked.size), asked.seed, engines=asked.engines, ramp_seconds=ramp)
        try:
            found = firsts(asked.scenario, setting)
        except SettingError as error:
            parser.error(str(error))
        cells = [f"{found[name]:.0f}" if name in found else "" for name in FIRSTS]
        line(f"| {ramp:g} s | " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
