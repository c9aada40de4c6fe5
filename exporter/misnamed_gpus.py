"""GPUs that settings name for an engine and that nobody tells of: said in words, to whom it may concern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from exporter.derive.phenomenon import EngineFacts
from exporter.gpu_sample import GpuIdentity
from exporter.join import unknown

SURE_AFTER_SECONDS = 10.0
"""Sources begin to answer one after the other: what is missing before is only not there yet."""


def misnamed(
    before: Mapping[str, float], facts: Mapping[str, EngineFacts], gpus: Sequence[GpuIdentity], now: float
) -> dict[str, float]:
    """One line for each engine whose settings name GPUs that are none of ``gpus``, and since when that is so.

    Where no GPU is known at all, none is missed.
    """
    lines = (_line(name, each.gpus, gpus) for name, each in facts.items() if each.gpus and gpus)
    return {line: before.get(line, now) for line in lines if line}


def sure(lines: Mapping[str, float], now: float) -> tuple[str, ...]:
    """Those of :func:`misnamed` that have held for long enough."""
    return tuple(line for line, since in lines.items() if now - since >= SURE_AFTER_SECONDS)


def _line(engine: str, wanted: Sequence[str], gpus: Sequence[GpuIdentity]) -> str:
    missing = unknown(wanted, gpus)
    return f"engine {engine}: gpus: {'; '.join(_each(missing, gpus))}" if missing else ""


def _each(missing: Sequence[str], gpus: Sequence[GpuIdentity]) -> Iterator[str]:
    known = sorted({gpu.device_index for gpu in gpus if gpu.device_index is not None})
    numbers = [name for name in missing if name.isdecimal()] if known else []
    if numbers:
        yield f"{_quoted(numbers)}: there {_those(known)}"
    others = [name for name in missing if name not in numbers]
    if others:
        yield f"{_quoted(others)} {'are none' if len(others) > 1 else 'is none'} of the GPUs that are read"


def _those(known: Sequence[int]) -> str:
    if len(known) == 1:
        return f"is GPU {known[0]} alone"
    if known[-1] - known[0] + 1 == len(known):
        return f"are GPUs {known[0]} to {known[-1]}"
    return f"are GPUs {', '.join(map(str, known))}"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
