"""Probes that tell of a rank which the engine's page doesn't have: said in words, or they would stay silent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from exporter.engine_cycle import EngineState
from exporter.probe_sample import ProbeSample


def unmatched(
    before: Mapping[str, float],
    samples: Iterable[ProbeSample],
    engines: Mapping[str, EngineState],
    now: float,
) -> dict[str, float]:
    """One line for each engine whose probes tell of ranks that its page doesn't, and since when that is so.

    Before the page was read once nothing is amiss.
    """
    told: dict[str, set[str]] = {}
    for sample in samples:
        told.setdefault(sample.engine, set()).add(sample.rank)
    lines = (_line(name, ranks, engines[name]) for name, ranks in told.items() if name in engines)
    return {line: before.get(line, now) for line in lines if line}


def _line(engine: str, told: set[str], state: EngineState) -> str:
    known = {rank for rank, _ in state.ranks}
    missing = told - known
    if not missing or not known:
        return ""
    return (
        f"engine {engine}: its probe tells of {_ranks(missing)}, its page of {_ranks(known)}: what the probe tells of"
        f" {'these' if len(missing) > 1 else 'it'} is left out; let this engine's probe be the socket of the engine at"
        " its url, and give another engine a socket of its own (docs/probe.md)"
    )


def _ranks(names: set[str]) -> str:
    ordered = sorted(names, key=lambda name: (len(name), name))
    return f"rank{'s' if len(ordered) > 1 else ''} {', '.join(ordered)}"
