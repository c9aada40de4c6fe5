"""Runs all benchmarks: ``python -m tests.bench [--strict] [NAME ...]``.

A module ``bench_NAME.py`` beside this file with a ``main()`` is a benchmark. One that breaks off
costs its own figures only. The exit code is 0 even where a bar is not met, since a busy machine can
do that; with ``--strict`` it is 1.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time
import traceback
from pathlib import Path

from tests.bench import report

_PREFIX = "bench_"


def names() -> list[str]:
    """The benchmarks there are."""
    found = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return sorted(name.removeprefix(_PREFIX) for name in found if name.startswith(_PREFIX))


def _run(name: str) -> bool:
    """One benchmark; False where it broke off."""
    report.line(f"== {name} ({report.load()})")
    began = time.monotonic()
    try:
        importlib.import_module(f"tests.bench.{_PREFIX}{name}").main()
    except SystemExit as error:
        if error.code:
            report.loud(f"{name} ended with: {error.code}")
        return not error.code
    except Exception:  # noqa: BLE001 -- the other benchmarks run all the same
        report.loud(f"{name} broke off:")
        traceback.print_exc(file=sys.stdout)
        return False
    finally:
        report.line(f"   {time.monotonic() - began:.0f} s")
    return True


def main() -> int:
    """Runs what is asked for; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Runs the benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}; all by default")
    parser.add_argument("--strict", action="store_true", help="exit code 1 where a bar is not met")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(names()))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(names())}")
    began = time.monotonic()
    broken = [name for name in given.names or names() if not _run(name)]
    report.line(f"== summary: {time.monotonic() - began:.0f} s, {report.load()}")
    report.table()
    for figure in report.missed():
        report.loud(f"NOT MET: {figure.name}: {figure.value:.4g} {figure.unit}, {figure.promise}")
    for name in broken:
        report.loud(f"NOT MET: {name} gave no full result")
    return 1 if given.strict and (report.missed() or broken) else 0


if __name__ == "__main__":
    sys.exit(main())
