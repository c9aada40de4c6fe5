"""Prints how the model compares with real engines: ``python -m drill.validate ARCHIVE``.

ARCHIVE holds the public runs of vLLM 0.19 (docs/drill.md says where they come from). The exit code is 1 where a
bar is missed, 2 where the archive can't be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from drill.engine import Engine
from drill.public_runs import PublicRun, RunError, read_runs
from drill.validation import Comparison, Pair, compare

BAR = 0.10
"""Of means and of curves."""

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
            str(each.preemptions),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _seconds(pair: Pair) -> str:
    return f"{pair.real:.2f} s, {pair.model:.2f} s, {pair.error:+.1%}"


def _milliseconds(pair: Pair) -> str:
    return f"{1e3 * pair.real:.1f} ms, {1e3 * pair.model:.1f} ms, {pair.error:+.1%}"


def main() -> int:
    """Runs what is asked for; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m drill.validate", description="Compares the drill's engine with real ones."
    )
    parser.add_argument("archive", type=Path, metavar="ARCHIVE", help="trace-llmservingsim-vllm.tar.xz")
    try:
        runs = read_runs(parser.parse_args().archive)
    except (RunError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    comparisons = [compare_public(run) for run in runs]
    sys.stdout.write(table(comparisons) + "\n")
    missed = [line for each in comparisons for line in misses(each)]
    for line in missed:
        sys.stdout.write(f"beyond {BAR:.0%}: {line}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
