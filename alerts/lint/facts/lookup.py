"""What a series is, by its name, and whether the engines that are in use have it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from alerts.lint.facts.engines import DIALECTS
from alerts.lint.facts.gpus import DCGM
from alerts.lint.facts.gpus import known as dcgm_metric
from alerts.lint.facts.metric import (
    CREATED,
    PARTS,
    TOTAL,
    Exporter,
    Kind,
    Metric,
    Release,
    exposed,
    is_earlier,
    is_later,
    written,
)
from alerts.lint.facts.own import OWN
from alerts.lint.facts.vllm import VLLM

EXPORTERS: tuple[Exporter, ...] = (VLLM, *DIALECTS, DCGM, OWN)
Releases = Mapping[str, Release]
"""By the exporter's key: those that are in use. What isn't there is taken as the newest."""


class Known(NamedTuple):
    """A series of somebody's: ``part`` is the suffix of a histogram's."""

    exporter: Exporter
    metric: Metric
    part: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a series is never there. ``sure``: it can't be; else nobody has seen it."""

    what: str
    fix: str
    sure: bool = True


def known(series: str) -> Known | None:
    """Who exposes a series of this name, and as what; None where that isn't known."""
    for exporter in EXPORTERS:
        stem = exporter.stem(series)
        if stem is None:
            continue
        if exporter is DCGM:
            metric = dcgm_metric(series)
            return None if metric is None else Known(exporter, metric, "")
        return _known(exporter, stem)
    return None


def _known(exporter: Exporter, stem: str) -> Known | None:
    metric = exporter.metrics.get(stem)
    if metric is not None and metric.kind is not Kind.HISTOGRAM:
        return Known(exporter, metric, "")
    for part in PARTS:
        whole = exporter.metrics.get(stem.removesuffix(part)) if stem.endswith(part) else None
        if whole is not None and whole.kind is Kind.HISTOGRAM:
            return Known(exporter, whole, part)
    return None


def verdict(series: str, releases: Releases, recorded: Collection[str] = ()) -> Verdict | None:
    """Why nothing of this name can be there; None where it can, or isn't known.

    ``recorded``: names that rules make.
    """
    if series in recorded:
        return None
    for exporter in EXPORTERS:
        stem = exporter.stem(series)
        if stem is None or ":" in stem:  # a colon more: a recorded name
            continue
        if exporter is DCGM:
            metric = dcgm_metric(series)
            return _gone(exporter, series, metric, releases) if metric else None
        found = _known(exporter, stem)
        if found is not None:
            return _gone(exporter, series, found.metric, releases) or _prefix(exporter, series, found)
        return _unknown(exporter, series, stem)
    return None


def _gone(exporter: Exporter, series: str, metric: Metric, releases: Releases) -> Verdict | None:
    used = releases.get(exporter.key)
    if metric.first and used is not None and is_earlier(used, metric.first):
        return Verdict(
            f"{series} came with {exporter.title} {written(metric.first)}, and {written(used)} is in use",
            metric.use or f"leave it out, or say which release is in use (releases.{exporter.key})",
        )
    if metric.gone:
        return Verdict(f"{series} is gone from {exporter.title}", _take(metric.use))
    if not metric.last or (used is not None and not is_later(used, metric.last)):
        return None
    last = written(metric.last)
    return Verdict(f"{series} is gone: no release of {exporter.title} after {last} has it", _take(metric.use))


def _prefix(exporter: Exporter, series: str, found: Known) -> Verdict | None:
    """Names with an underscore for the colon, which engines write under Ray and in OpenMetrics alone."""
    wanted = exporter.spelling
    if not wanted.endswith(":") or series.startswith((wanted, "ray_")):
        return None
    stem = exporter.stem(series) or ""
    return Verdict(
        f"{series}: {exporter.title} writes {wanted}{stem}; with an underscore it comes from /metrics/ with its slash"
        " alone, or from something that renames",
        f"use {wanted}{found.metric.name}{found.part}",
        sure=False,
    )


def _unknown(exporter: Exporter, series: str, stem: str) -> Verdict | None:
    wrong = exporter.wrong.get(stem)
    if wrong is not None:
        return Verdict(f"no release of {exporter.title} has {series}", _take(wrong))
    if stem.endswith(CREATED) or stem.startswith(exporter.families or ("\0",)):
        return None
    said = _misspelt(exporter, series, stem)
    if said is not None or not exporter.complete or not _is_its_own(exporter, series):
        return said
    names = [each for metric in exporter.metrics.values() for each in exposed(metric)]
    near = difflib.get_close_matches(stem, names, 1, cutoff=0.7)
    span = f" from {exporter.oldest} to {exporter.newest}" if exporter.oldest else ""
    return Verdict(
        f"{exporter.title}{span} has no {series}",
        f"did you mean {exporter.spelling}{near[0]}?" if near else f"take a name that {exporter.title} has",
        sure=False,
    )


def _is_its_own(exporter: Exporter, series: str) -> bool:
    """Whether the prefix is the engine's: with an underscore, others' names begin so too."""
    return series.removeprefix("ray_").startswith(exporter.spelling)


def _misspelt(exporter: Exporter, series: str, stem: str) -> Verdict | None:
    """A counter without ``_total``, something else with it, a histogram without its parts."""
    counter = exporter.metrics.get(stem + TOTAL)
    if counter is not None:
        return _respelt(exporter, series, counter)
    plain = exporter.metrics.get(stem.removesuffix(TOTAL))
    if plain is not None and stem.endswith(TOTAL):
        return _respelt(exporter, series, plain)
    histogram = exporter.metrics.get(stem)
    if histogram is None:
        return None
    parts = ", ".join(exporter.spelling + each for each in exposed(histogram))
    return Verdict(f"{series} is a histogram, and no series bears its bare name", f"use one of {parts}")


def _respelt(exporter: Exporter, series: str, metric: Metric) -> Verdict:
    said = "with" if metric.name.endswith(TOTAL) else "without"
    right = " or ".join(exporter.spelling + each for each in exposed(metric))
    if metric.last:
        right += f", which is gone after {written(metric.last)}: {metric.use}"
    return Verdict(f"{series} is never there: {exporter.title} writes it {said} _total", f"use {right}")


def _take(use: str) -> str:
    """A hint that begins with a name or an expression, as advice; a sentence as it is."""
    first = use.partition(" ")[0].rstrip(",;")
    begins = first.startswith(("rate(", "dynamo_", "inference_", "DCGM_"))
    return f"use {use}" if begins or (first.count(":") == 1 and not first.endswith(":")) else use
