"""PromQL for panels, made of signals: the name of a metric is written nowhere.

    look = Look(Rendering(), follows=("engine",))
    look.gauge(KV_USAGE, peak=True).across("max", "engine")

Every grouping keeps the cluster's labels, and one series comes of a subject however often it is scraped; of a source
one for each sidecar that reads it. Gauges are read over ``$__rate_interval``, four scrapes at least: a failed scrape
makes no hole, a spike is seen however far one zooms out, and what is gone is gone after a minute. Where one value is
shown the window is the alerts' own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from alerts.conditions import Rendering
from alerts.pack.promql import REMEMBERED, Where
from alerts.recording import Recording
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.signal import PEAK_SUFFIX, Kind, Scope, Signal

WINDOW = "$__rate_interval"
INSTANCE = "instance"
"""Of the sidecar. Each reads sources of its own, which bear the same names: every one has an ``nvml``."""
MODEL = "model_name"
"""A label that says nothing beside the engine's: no grouping keeps it."""


@dataclass(frozen=True, slots=True)
class Expression:
    """PromQL, the signals in it, and the labels of its series beside the cluster's.

    ``lookback``: how far back is still now, as alerts have it.
    """

    text: str
    signals: tuple[Signal, ...]
    labels: tuple[str, ...]
    clusters: tuple[str, ...]
    lookback: str = WINDOW

    @property
    def now(self) -> str:
        """Its text where it is asked for once: a window that grows with the zoom would call an hour ago now."""
        return self.text.replace(WINDOW, self.lookback)

    def across(self, operator: str, *labels: str) -> Expression:
        """Aggregated to fewer labels. Raises ValueError for one that it hasn't got."""
        return self._aggregated(operator, labels)

    def ranked(self, count: int) -> Expression:
        """The largest of them, for tables and bars: over time they would come and go."""
        return replace(self, text=f"topk({count}, {self.text})")

    def quantile(self, share: float, *labels: str) -> Expression:
        """Of all series that agree in ``labels``."""
        return self._aggregated("quantile", labels, f"{share:g}, ")

    def over(self, divisor: Expression) -> Expression:
        """Divided by what has the same labels, where that isn't 0."""
        return replace(
            self, text=f"({self.text}) / ({divisor.text} > 0)", signals=_merged(self.signals, divisor.signals)
        )

    def compared(self, operator: str, limit: float) -> Expression:
        """1 where it is so, 0 where it isn't, and absent where nothing is known."""
        return replace(self, text=f"({self.text}) {operator} bool {limit:g}")

    def only(self, operator: str, limit: float) -> Expression:
        """Those of which it is so."""
        return replace(self, text=f"({self.text} {operator} {limit:g})")

    def otherwise(self, other: Expression) -> Expression:
        """Itself, and ``other`` where it has no series of the same labels."""
        return replace(
            self, text=f"({self.text}) or ({other.text})", signals=_merged(self.signals, other.signals)
        )

    def times(self, factor: float) -> Expression:
        """Multiplied."""
        return replace(self, text=f"({self.text}) * {factor:g}")

    def weighed(self, weight: Expression) -> Expression:
        """Multiplied with what has the same labels."""
        return replace(
            self, text=f"({self.text}) * ({weight.text})", signals=_merged(self.signals, weight.signals)
        )

    def among(self, chosen: Expression) -> Expression:
        """Those of whom ``chosen`` has a series."""
        on = ", ".join((*self.clusters, *(label for label in chosen.labels if label in self.labels)))
        return replace(
            self,
            text=f"({self.text}) and on ({on}) ({chosen.text})",
            signals=_merged(self.signals, chosen.signals),
        )

    def _aggregated(self, operator: str, labels: tuple[str, ...], first: str = "") -> Expression:
        unknown = set(labels) - set(self.labels)
        if unknown:
            raise ValueError(f"no label {min(unknown)} in {self.text}: it has {', '.join(self.labels)}")
        by = ", ".join((*self.clusters, *labels))
        return replace(self, text=f"{operator} by ({by}) ({first}{self.text})", labels=labels)


@dataclass(frozen=True, slots=True)
class Look:
    """What a board's selectors follow. ``follows``: labels for which the board has a variable of the same name."""

    rendering: Rendering
    follows: tuple[str, ...] = ()

    def gauge(
        self,
        signal: Signal,
        *,
        where: Where = (),
        peak: bool = False,
        over: str = "max",
        window: str = WINDOW,
    ) -> Expression:
        """A gauge; ``over``: max, min or avg of a time, and of the copies of several scrapes. Raises ValueError.

        With ``peak`` its twin that holds the maximum of a minute; the gauge itself where there is none, as in what the
        flight recorder exports.
        """
        if signal.kind is not Kind.GAUGE:
            raise ValueError(f"{signal.full_name} is a counter: take its rate")
        if peak and not signal.peak:
            raise ValueError(f"{signal.full_name} has no {PEAK_SUFFIX} twin")
        plain = self._over(signal.full_name, signal, where, over, window)
        if not peak:
            return plain
        twin = self._over(signal.full_name + PEAK_SUFFIX, signal, where, over, window)
        return replace(plain, text=f"({twin.text} or {plain.text})")

    def recorded(
        self, recording: Recording, *signals: Signal, where: Where = (), over: str = "max"
    ) -> Expression:
        """What the pack's rules record of ``signals``: of a whole cluster, whatever else the board follows."""
        clusters = self.rendering.cluster_labels
        labels = tuple(label for label in recording.labels if label not in (MODEL, *dict(where)))
        parts = [f'{label}=~"${label}"' for label in clusters]
        parts += [f'{label}="{value}"' for label, value in where]
        # of models apart as well as together: what is summed is told apart by the model first
        kept = ", ".join((*clusters, *(label for label in recording.labels if label not in dict(where))))
        text = f"{over} by ({kept}) ({over}_over_time({recording.name}{{{','.join(parts)}}}[{WINDOW}]))"
        return Expression(text, signals, labels, clusters, self.rendering.lookback)

    def rate(self, signal: Signal, *, where: Where = (), window: str = WINDOW) -> Expression:
        """A counter's rise a second. Raises ValueError."""
        return self._risen("rate", signal, where, window)

    def increase(self, signal: Signal, *, where: Where = (), window: str = WINDOW) -> Expression:
        """A counter's rise. Raises ValueError."""
        return self._risen("increase", signal, where, window)

    def counted(self, signal: Signal, *, where: Where = (), window: str = WINDOW) -> Expression:
        """What a counter counted within a window, in whole numbers. Raises ValueError.

        For what is rare: ``increase`` spreads one event over more than there was, and misses the first of a label
        whose series begins with it.
        """
        _counts(signal)
        selector = self.selector(signal.full_name, signal, where)
        now, before = (
            self._single("max", f"last_over_time({selector}{window_and_offset})", signal, where)
            for window_and_offset in (f"[{window}]", f"[{REMEMBERED}] offset {window}")
        )
        # lower than before: it began anew, and has counted since
        return replace(now, text=f"(({now.text}) - ({before.text}) >= 0 or {now.text})")

    def of_engines(self, of_gpu: Expression) -> Expression:
        """What is known of GPUs, as of the engines that run on them: ``engine`` is a label more."""
        clusters = self.rendering.cluster_labels
        owned = self.gauge(ENGINE_GPU_INFO)
        on = ", ".join((*clusters, "uuid"))
        return Expression(
            f"({owned.text}) * on ({on}) group_left () ({of_gpu.text})",
            _merged(of_gpu.signals, owned.signals),
            owned.labels,
            clusters,
            self.rendering.lookback,
        )

    def _risen(self, function: str, signal: Signal, where: Where, window: str) -> Expression:
        _counts(signal)
        return self._single(
            "max", f"{function}({self.selector(signal.full_name, signal, where)}[{window}])", signal, where
        )

    def _over(self, name: str, signal: Signal, where: Where, over: str, window: str) -> Expression:
        return self._single(
            over, f"{over}_over_time({self.selector(name, signal, where)}[{window}])", signal, where
        )

    def _single(self, operator: str, text: str, signal: Signal, where: Where) -> Expression:
        said = dict(where)
        own = tuple(label for label in signal.label_names if label != MODEL and label not in said)
        told_apart = signal.scope is Scope.SOURCE or INSTANCE in self.follows
        labels = (*own, INSTANCE) if told_apart else own
        clusters = self.rendering.cluster_labels
        by = ", ".join((*clusters, *labels))
        return Expression(
            f"{operator} by ({by}) ({text})", (signal,), labels, clusters, self.rendering.lookback
        )

    def selector(self, name: str, signal: Signal, where: Where = ()) -> str:
        """The series of a signal that the board's variables pick."""
        parts = [self.rendering.selector] if self.rendering.selector else []
        parts += [f'{label}=~"${label}"' for label in self.rendering.cluster_labels]
        known = (*signal.label_names, INSTANCE)
        parts += [f'{label}=~"${label}"' for label in self.follows if label in known]
        parts += [f'{label}="{value}"' for label, value in where]
        return f"{name}{{{','.join(parts)}}}"


def variable(
    rendering: Rendering, signal: Signal, label: str, follows: tuple[str, ...] = (), *, before: bool = False
) -> str:
    """What fills a board's variable: the values of a label among what the variables before it leave.

    ``before``: it is itself one of the cluster's, of which each follows those before it.
    """
    clusters = rendering.cluster_labels
    known = clusters[: clusters.index(label)] if before else clusters
    look = Look(replace(rendering, cluster_labels=known), follows)
    return f"label_values({look.selector(signal.full_name, signal)}, {label})"


def interpolated(text: str, variables: Mapping[str, str], window: str) -> str:
    """As Grafana sends it: values for ``$variables`` and for the built-in intervals."""
    for name in ("$__rate_interval", "$__interval"):
        text = text.replace(name, window)
    for name in sorted(variables, key=len, reverse=True):
        text = text.replace(f"${name}", variables[name])
    return text


def _counts(signal: Signal) -> None:
    if signal.kind is not Kind.COUNTER:
        raise ValueError(f"{signal.full_name} is a gauge: it has no rate")


def _merged(one: tuple[Signal, ...], other: tuple[Signal, ...]) -> tuple[Signal, ...]:
    return tuple(dict.fromkeys((*one, *other)))
