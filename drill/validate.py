"""Prints how the model compares with real engines: ``python -m drill.validate [ARCHIVE] [--recording ARCHIVE]``.

ARCHIVE holds the public runs of vLLM 0.19, the recording one of the engine that runs here (docs/drill.md says where
they come from); ``--fresh FOLDER`` are the traces of ``make real``, once or more often. The exit code is 1 where a bar
is missed, 2 where something can't be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from drill.serving.engine import Engine
from drill.validation.comparison import Comparison, Pair, compare
from drill.validation.fresh_run import FreshRun, read_fresh
from drill.validation.public_runs import PublicRun, RunError, read_runs
from drill.validation.recorded_run import RecordedRun, read_recorded
from drill.validation.small_engine import CONFIG

BAR = 0.10
"""Of means and of curves."""

PREEMPTION_BAR = 0.20

_SEEDS = 3

_COLUMNS = (
    "run",
    "end-to-end mean",
    "TPOT mean",
    "TTFT mean",
    "end-to-end p99",
    "TPOT p99",
    "running",
    "waiting",
    "KV usage",
    "preemptions",
)


def compare_public(public: PublicRun) -> Comparison:
    """One public run beside the model."""
    return compare(public.run, lambda: Engine(public.config), public.replicas)


def compare_recorded(recorded: RecordedRun) -> Comparison:
    """A recording of the engine that runs here beside the model."""
    return compare(recorded.run, lambda: Engine(CONFIG, recorded.times))


def compare_fresh(fresh: FreshRun) -> Comparison:
    """A run of ``make real`` beside the model."""
    times = fresh.times
    return compare(fresh.run, lambda: Engine(CONFIG, times.whole), timer_at=times.at)


def misses_recorded(comparison: Comparison) -> list[str]:
    """What is beyond the bars of the engine that runs here: of KV usage, and of preemptions."""
    found = []
    if comparison.usage_rms is not None and comparison.usage_rms > BAR:
        found.append(f"{comparison.name}: KV usage {comparison.usage_rms:.1%}")
    real, model = comparison.real_preemptions, comparison.preemptions
    if real is not None and abs(model - real) > PREEMPTION_BAR * real:
        found.append(f"{comparison.name}: preemptions {model} instead of {real}")
    return found


def misses(comparison: Comparison) -> list[str]:
    """What is beyond the bar: of means end-to-end and TPOT, of curves all that were recorded."""
    found = [
        (name, abs(pair.error))
        for name, pair in (
            ("end-to-end mean", comparison.end_to_end),
            ("TPOT mean", comparison.time_per_output_token),
        )
    ]
    curves = (("running", comparison.running_rms), ("waiting", comparison.waiting_rms))
    found += curves
    if comparison.usage_rms is not None:
        found.append(("KV usage", comparison.usage_rms))
    return [f"{comparison.name}: {name} {value:.1%}" for name, value in found if value > BAR]


def table(comparisons: Iterable[Comparison]) -> str:
    """Rows of Markdown: real, model and error of times; RMS of curves over their largest value."""
    lines = ["| " + " | ".join(_COLUMNS) + " |", "|---" * len(_COLUMNS) + "|"]
    for each in comparisons:
        usage = "not recorded" if each.usage_rms is None else f"{each.usage_rms:.1%}"
        cells = (
            each.name,
            _seconds(each.end_to_end),
            _milliseconds(each.time_per_output_token),
            _seconds(each.time_to_first_token),
            _seconds(each.end_to_end_p99),
            _milliseconds(each.time_per_output_token_p99),
            f"{each.running_rms:.1%}",
            f"{each.waiting_rms:.1%}",
            usage,
            _counts(each),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _counts(comparison: Comparison) -> str:
    real = comparison.real_preemptions
    if real is None:
        return f"not recorded, {comparison.preemptions}"
    if real == 0:
        return f"0, {comparison.preemptions}"
    return f"{real}, {comparison.preemptions}, {comparison.preemptions / real - 1.0:+.1%}"


def _seconds(pair: Pair) -> str:
    return f"{pair.real:.2f} s, {pair.model:.2f} s, {pair.error:+.1%}"


def _milliseconds(pair: Pair) -> str:
    return f"{1e3 * pair.real:.1f} ms, {1e3 * pair.model:.1f} ms, {pair.error:+.1%}"


def main() -> int:
    """Runs what is asked for; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m drill.validate", description="Compares the drill's engine with real ones."
    )
    parser.add_argument(
        "archive", type=Path, nargs="?", metavar="ARCHIVE", help="trace-llmservingsim-vllm.tar.xz"
    )
    parser.add_argument(
        "--recording",
        type=Path,
        metavar="ARCHIVE",
        help="vllm-0.32.0-oracle.tar.xz, with the truth from inside",
    )
    parser.add_argument(
        "--fresh",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="the traces of a run of make real: .real_engine/last_run",
    )
    given = parser.parse_args()
    if not (given.archive or given.recording or given.fresh):
        parser.error("nothing to compare with: give an ARCHIVE, --recording or --fresh")
    try:
        comparisons = [compare_public(run) for run in (read_runs(given.archive) if given.archive else ())]
        missed = [line for each in comparisons for line in misses(each)]
        beside = [
            compare_recorded(read_recorded(given.recording, seed))
            for seed in range(_SEEDS if given.recording else 0)
        ]
        beside += [compare_fresh(read_fresh(folder)) for folder in given.fresh]
        comparisons += beside
        missed += [line for each in beside for line in misses_recorded(each)]
    except (RunError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(table(comparisons) + "\n")
    for line in missed:
        sys.stdout.write(f"beyond the bar: {line}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
