"""What a backtest found: when each rule would have fired, how early, and how often for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.firing import Episode

WEEK_SECONDS = 7 * 86_400.0
Labels = tuple[tuple[str, str], ...]
Span = tuple[float, float]
"""From, to before."""
OF_THE_RULE = frozenset({"alertname", "severity", "cause"})
"""Labels that say which alert it is, and not of what."""


@dataclass(frozen=True, slots=True)
class Rule:
    """An alert as it was asked for. ``quiet_under`` and ``consequence_of``: as ``alerts.alert.Alert`` has them.

    ``wakes``: whether somebody is told at once; ``silent``: nobody is told at all. ``signals``: names of
    the series that it looks at.
    """

    name: str
    severity: str
    wakes: bool
    silent: bool
    for_seconds: float
    keep_firing_seconds: float
    signals: tuple[str, ...] = ()
    quiet_under: tuple[str, ...] = ()
    consequence_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alert of one subject, from its first result to its end."""

    labels: Labels
    episode: Episode

    def label(self, name: str) -> str:
        """The text of a label, empty where it has none."""
        return next((text for label, text in self.labels if label == name), "")

    def labels_of(self, names: Sequence[str]) -> Labels:
        """Those of these names, in their order."""
        return tuple((name, self.label(name)) for name in names)

    def span(self, end: float) -> Span | None:
        """In which it fires; what goes on at the end of the history ends there. None: it never does."""
        if self.episode.fired_at is None:
            return None
        return self.episode.fired_at, end if self.episode.ended_at is None else self.episode.ended_at


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one rule. ``not_said``: why nothing is known of it, empty else. ``subjects``: of how many it was asked."""

    rule: Rule
    alarms: tuple[Alarm, ...] = ()
    subjects: int = 0
    not_said: str = ""

    @property
    def fired(self) -> tuple[Alarm, ...]:
        """In order of time."""
        found = [alarm for alarm in self.alarms if alarm.episode.fired_at is not None]
        return tuple(sorted(found, key=lambda alarm: (alarm.episode.fired_at or 0.0, alarm.labels)))

    @property
    def only_pending(self) -> int:
        """How many were over before they fired."""
        return sum(
            alarm.episode.fired_at is None and alarm.episode.ended_at is not None for alarm in self.alarms
        )


@dataclass(frozen=True, slots=True)
class Backtest:
    """Over a history from ``start`` to before ``end``, evaluated every ``step_seconds``."""

    source: str
    start: float
    end: float
    step_seconds: float
    outcomes: tuple[Outcome, ...]
    cluster_labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def weeks(self) -> float:
        """How long it is."""
        return (self.end - self.start) / WEEK_SECONDS


@dataclass(frozen=True, slots=True)
class Notice:
    """Of a rule and a cluster: fires from ``at`` to before ``until``, whatever how many subjects do meanwhile."""

    rule: Rule
    cluster: Labels
    at: float
    until: float


@dataclass(frozen=True, slots=True)
class Moment:
    """When something began that alerts had to tell of, and how far from it a notice still speaks of it.

    ``at`` None: nothing did, and every notice is noise.
    """

    at: float | None = None
    within_seconds: float = 3600.0

    def owns(self, notice: Notice) -> bool:
        """Whether a notice speaks of it."""
        if self.at is None:
            return False
        return notice.at <= self.at < notice.until or abs(notice.at - self.at) <= self.within_seconds


NO_MOMENT = Moment()


@dataclass(frozen=True, slots=True)
class Measures:
    """How good notices are for one moment. ``lead_seconds``: before it, below 0 after it, None: not at all.

    ``noise`` are notices that belong to no moment; ``noise_per_week`` is by the length of the history.
    """

    notices: int
    lead_seconds: float | None
    noise: int
    noise_per_week: float


def notices(tested: Backtest) -> tuple[Notice, ...]:
    """What people would have got, in order: one a rule and cluster while it fires, without what others explain.

    As Alertmanager has it with the configuration that is shipped: an alert that another one explains, about the same
    subject or anywhere in the cluster, waits until that one is over, and is not sent if it is over by then itself.
    """
    firing = _Firing(tested)
    found: list[Notice] = []
    for outcome in tested.outcomes:
        if outcome.rule.silent:
            continue
        told: dict[Labels, list[Span]] = {}
        for alarm in outcome.fired:
            span = alarm.span(tested.end)
            if span is not None:
                cluster = alarm.labels_of(tested.cluster_labels)
                told.setdefault(cluster, []).extend(without(span, firing.explaining(outcome.rule, alarm)))
        for cluster, spans in told.items():
            found += [Notice(outcome.rule, cluster, *span) for span in merged(spans)]
    return tuple(sorted(found, key=lambda notice: (notice.at, notice.rule.name, notice.cluster)))


def measured(told: Sequence[Notice], weeks: float, moment: Moment) -> Measures:
    """Of notices beside the moment at which they were wanted, if there was one.

    A notice belongs to it that is there at it, or begins no further from it than the moment says.
    """
    belongs = [each for each in told if moment.owns(each)]
    noise = len(told) - len(belongs)
    lead = None
    if moment.at is not None and belongs:
        lead = moment.at - min(each.at for each in belongs)
    return Measures(len(told), lead, noise, noise / weeks if weeks else 0.0)


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same without overlaps, in order; spans that touch are one."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def without(span: Span, others: Iterable[Span]) -> Iterator[Span]:
    """What of a span none of the others covers."""
    begin, end = span
    for other_begin, other_end in merged(others):
        if other_end <= begin or other_begin >= end:
            continue
        if other_begin > begin:
            yield begin, other_begin
        begin = other_end
    if begin < end:
        yield begin, end


class _Firing:
    """When each rule fires, by the labels that somebody else shares with it."""

    def __init__(self, tested: Backtest) -> None:
        self._tested = tested
        self._outcomes = {outcome.rule.name: outcome for outcome in tested.outcomes}
        self._spans: dict[tuple[str, tuple[str, ...]], Mapping[Labels, list[Span]]] = {}

    def explaining(self, rule: Rule, alarm: Alarm) -> Iterator[Span]:
        """In which the alarm isn't sent."""
        clusters = self._tested.cluster_labels
        own = tuple(name for name, _ in alarm.labels if name not in {*clusters, *OF_THE_RULE})
        for name in rule.quiet_under:
            other = self._outcomes.get(name)
            if other is not None and other.alarms:
                theirs = {label for label, _ in other.alarms[0].labels}
                shared = (*clusters, *(label for label in own if label in theirs))
                yield from self._of(other, shared).get(alarm.labels_of(shared), ())
        for name in rule.consequence_of:
            if name in self._outcomes:
                yield from self._of(self._outcomes[name], clusters).get(alarm.labels_of(clusters), ())

    def _of(self, outcome: Outcome, labels: tuple[str, ...]) -> Mapping[Labels, list[Span]]:
        known = self._spans.get((outcome.rule.name, labels))
        if known is None:
            found: dict[Labels, list[Span]] = {}
            for alarm in outcome.fired:
                span = alarm.span(self._tested.end)
                if span is not None:
                    found.setdefault(alarm.labels_of(labels), []).append(span)
            known = {texts: merged(spans) for texts, spans in found.items()}
            self._spans[outcome.rule.name, labels] = known
        return known
