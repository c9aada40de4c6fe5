"""What the sampler is told on its command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

NVML = "exporter.sampler.nvml:NvmlBackend"


class Options(NamedTuple):
    """``backend`` names what makes the maker's library, as MODULE:CALLABLE."""

    backend: str = NVML
    processes: bool = False
    pcie_window: bool = False


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line. Ends the process with code 2 and a line for one that can't be used."""
    parser = argparse.ArgumentParser(
        prog="python -m exporter.sampler",
        description="Read the GPUs of this machine and write what they show to standard output, one line of JSON a"
        " second. Ends on SIGTERM and when standard input ends.",
    )
    parser.add_argument(
        "--backend",
        metavar="MODULE:CALLABLE",
        default=NVML,
        help="What makes the maker's library: called without arguments, it gives an object as"
        " exporter.sampler.backend.Backend describes. [default: %(default)s]",
    )
    parser.add_argument(
        "--processes", action="store_true", help="List the processes on each GPU, every 30 s."
    )
    parser.add_argument(
        "--pcie-window",
        action="store_true",
        help="Measure PCIe over windows of 20 ms where nothing better is to be had.",
    )
    given = parser.parse_args(arguments)
    if not all(part.strip() for part in given.backend.partition(":")):
        parser.error(f"--backend: {given.backend!r} is not MODULE:CALLABLE, as in {NVML}")
    return Options(given.backend, given.processes, given.pcie_window)
