"""Signals where no sidecar was: the cycle of the sidecar, run over what a Prometheus scraped of engines.

A page is what a target's series were worth at one scrape. The sidecar's own dialects read it, and
``exporter.cycle.step`` derives from it, so there is no second implementation of a signal. What differs is how often
pages come (``coarse.py``): what can't be told from few is absent, and what is told less well stands in the notes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from analysis.frame import CLUSTER, Key, Values, grid
from analysis.history.coarse import EACH_SECOND, caveats, left_out
from analysis.history.following import Follower, followers
from analysis.history.history import History, HistoryError
from analysis.history.samples import Gathered, Progress
from analysis.history.steps import whole_step
from analysis.history.targets import Kind, Target, targets_of
from exporter.cycle import CycleSettings, initial, step
from exporter.derive.phenomenon import EngineFacts
from exporter.sample import STALE_AFTER_SECONDS
from exporter.signal import Signal
from exporter.snapshot import Snapshot
from exporter.source_signals import BUILD_INFO, SIGNAL_INFO

TOGETHER_SECONDS = 5.0
"""On longer steps, pages that come within this time are one cycle's."""

_NOT_OURS = frozenset({SIGNAL_INFO, BUILD_INFO})
"""They speak of a sidecar, and there was none."""


def derive(  # noqa: PLR0913 - what of, for when, and how
    raw: Gathered,
    start: float | None = None,
    end: float | None = None,
    step_seconds: float | None = None,
    *,
    facts: Mapping[str, EngineFacts] | None = None,
    progress: Progress | None = None,
) -> History:
    """Derive the signals of all engines, gateways and GPUs whose series are among the ``raw`` ones.

    ``facts``: what settings would say of engines, by name (the target's ``instance``). Give ``raw`` from
    ``exporter.window.HORIZON_SECONDS`` before ``start``, or windows begin empty there. Raises HistoryError: no target's
    series, nothing in that range.
    """
    targets = targets_of(raw.series())
    if not targets:
        raise HistoryError(
            f"{raw.source}: holds neither thrashold's signals nor series of an engine, a gateway or dcgm-exporter"
        )
    told = Gathered(raw.source)
    told.notes += raw.notes
    clusters: dict[str, list[Target]] = {}
    for target in targets:
        clusters.setdefault(target.labels.get(CLUSTER, ""), []).append(target)
    reads = Reads(sum(len(target.pages.times) + len(target.pages.failed_at) for target in targets), progress)
    alike: dict[float, _Alike] = {}
    for cluster, members in clusters.items():
        steps = _scrape_steps(members)
        mine = alike.setdefault(steps[1], _Alike())
        mine.signals |= _derive_cluster(told, cluster, members, steps, facts or {}, reads)
        mine.clusters.append(cluster)
        mine.targets += members
    for seldom, each in alike.items():
        where = f"in {', '.join(filter(None, each.clusters))}: " if len(alike) > 1 else ""
        told.notes += [where + story for story in _stories(each.targets, seldom, each.signals)]
    names = frozenset(signal.full_name for each in alike.values() for signal in each.signals)
    return told.framed(start, end, step_seconds or _scrape_steps(targets)[0], names)


@dataclass(slots=True)
class _Alike:
    """Clusters that are scraped as often, and what was derived of them."""

    clusters: list[str] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    signals: set[Signal] = field(default_factory=set)


class Reads:
    """How many of all pages were read so far."""

    def __init__(self, count: int, progress: Progress | None) -> None:
        self._all = max(1, count)
        self._progress = progress
        self._done = 0

    def passed(self, count: int) -> None:
        """So many more were."""
        self._done += count
        if count and self._progress is not None:
            self._progress(self._done / self._all)


def _scrape_steps(targets: Sequence[Target]) -> tuple[float, float]:
    """How far apart scrapes are: of the target that is scraped most often, and of the engine or gateway that is least.

    Where there is neither engine nor gateway, of the dcgm-exporter.
    """
    steps = [(target.kind, whole_step(np.diff(target.pages.times)) or 1.0) for target in targets]
    read = [step for kind, step in steps if kind is not Kind.GPUS] or [step for _, step in steps]
    return min(step for _, step in steps), max(read)


def _derive_cluster(  # noqa: PLR0913, PLR0917 - a cluster, what is known of it, and where its signals go
    told: Gathered,
    cluster: str,
    targets: Sequence[Target],
    steps: tuple[float, float],
    facts: Mapping[str, EngineFacts],
    reads: Reads,
) -> set[Signal]:
    """Derive one cluster's signals, as a sidecar would that read all of its targets.

    ``steps``: how far apart scrapes are at least, and at most.
    """
    often, seldom = steps
    sources = list(followers(targets))
    settings = CycleSettings(_facts(targets, facts, told.notes))
    state, values = initial(settings), _Values(_NOT_OURS | left_out(seldom))
    failed: dict[str, int] = {}
    patience = max(STALE_AFTER_SECONDS, often)
    for now in _instants(sources, often):
        reads.passed(sum(source.read_until(now) for source in sources))
        if not any(source.was_watched(now, patience) for source in sources):
            continue  # where nobody looked, nothing is known, not even that it was down
        observations = [source.observe() for source in sources if source.has_begun]
        state, snapshot = step(state, now, observations)
        values.take(snapshot)
        for failure in snapshot.failures:
            failed[failure.phenomenon] = failed.get(failure.phenomenon, 0) + 1
    told.notes += sorted(problem for source in sources for problem in source.problems)
    told.notes += [
        f"{phenomenon} could not be derived at {count:,} instants: please report this"
        for phenomenon, count in sorted(failed.items())
    ]
    return values.into(told, {CLUSTER: cluster})


def _instants(sources: Sequence[Follower], scrape_step: float) -> Values:
    """When cycles run.

    Where pages come each second, at each instant, whether or not any has come, as in a sidecar: values hold and vanish
    by themselves. Else whenever pages have come; between scrapes nothing is known.
    """
    ends = np.unique(np.concatenate([source.ends for source in sources]))
    if scrape_step <= EACH_SECOND:
        return grid(float(ends[0]), float(ends[-1]) + scrape_step, scrape_step)
    kept: list[float] = []
    first = -np.inf
    for end in ends.tolist():
        if end - first <= TOGETHER_SECONDS:
            kept[-1] = end
        else:
            kept.append(end)
            first = end
    return np.array(kept)


class _Values:
    """Values of many cycles, until they become samples."""

    def __init__(self, unwanted: frozenset[Signal]) -> None:
        self._unwanted = unwanted
        self._series: dict[tuple[Signal, tuple[str, ...]], int] = {}
        self._times, self._places, self._values = array("d"), array("i"), array("d")

    def take(self, snapshot: Snapshot) -> None:
        """Take one cycle's, less the peak twins: they are maxima of what is there, and no recording has them either."""
        series = self._series
        count = 0
        for signal, labels, value, is_peak in snapshot.values:
            if is_peak or signal in self._unwanted:
                continue
            key = (signal, labels)
            place = series.get(key)
            if place is None:
                place = series[key] = len(series)
            self._places.append(place)
            self._values.append(value)
            count += 1
        self._times.extend([snapshot.at] * count)

    def into(self, told: Gathered, more: Mapping[str, str]) -> set[Signal]:
        """Put all of it there, with ``more`` labels; gives the signals."""
        places = [
            told.place(
                Key.of(signal.full_name, {**dict(zip(signal.label_names, labels, strict=True)), **more})
            )
            for signal, labels in self._series
        ]
        told.add(
            np.array(places, np.int32)[np.frombuffer(self._places, np.int32)]
            if places
            else np.empty(0, np.int32),
            np.frombuffer(self._times) if places else np.empty(0),
            np.frombuffer(self._values) if places else np.empty(0),
        )
        return {signal for signal, _ in self._series}


def _facts(
    targets: Sequence[Target], told: Mapping[str, EngineFacts], notes: list[str]
) -> dict[str, EngineFacts]:
    """What is known of each engine: what was ``told``, and the GPUs it runs on, where labels say so."""
    exporters = [target for target in targets if target.kind is Kind.GPUS]
    found, lone = {}, []
    for engine in (target for target in targets if target.kind is Kind.ENGINE):
        known = told.get(engine.name) or EngineFacts()
        if exporters and known.gpus is None:
            uuids = _gpus_of(engine, exporters)
            lone += [engine.name] if uuids is None else []
            known = replace(known, gpus=tuple(sorted(uuids or ())))
        found[engine.name] = known
    if lone:
        notes.append(
            f"which GPUs {', '.join(sorted(lone))} runs on can't be told, for no label of node, host or pod is "
            "the same: signals of engines together with their GPUs are absent"
        )
    return found


def _gpus_of(engine: Target, exporters: Sequence[Target]) -> frozenset[str] | None:
    """The GPUs that a pod uses by DCGM's word, else all those of the engine's machine."""
    pod = engine.labels.get("pod", "")
    used = frozenset[str]().union(*(each.uuids.get(pod, frozenset()) for each in exporters if pod))
    if used:
        return used
    beside = [each for each in exporters if engine.machine and each.machine == engine.machine]
    return frozenset[str]().union(*(each.uuids[""] for each in beside)) if beside else None


def _stories(targets: Sequence[Target], scrape_step: float, signals: set[Signal]) -> Iterator[str]:
    """What has to be said of signals that were made from so many pages."""
    counts = {kind: sum(target.kind is kind for target in targets) for kind in Kind}
    what = ", ".join(
        f"{count} {kind.value}" + ("s" if count > 1 and not kind.value.endswith("s") else "")
        for kind, count in counts.items()
        if count
    )
    yield f"no sidecar kept these signals: they were derived from the series of {what}, scraped every {scrape_step:g} s"
    yield from caveats(signals, scrape_step)
