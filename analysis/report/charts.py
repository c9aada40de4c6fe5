"""The chain as charts on one time axis: what was asked for, what became full, who waited, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from alerts.thresholds import THRESHOLDS, Thresholds
from analysis.frame import Frame
from analysis.incident import measures
from analysis.incident.evidence import seen
from analysis.incident.measures import Measure
from analysis.incident.phases import holes
from analysis.incident.subject import Subject, engines, fleet
from analysis.incident.timeline import Kind
from analysis.incident.unit import Unit
from analysis.page.chart import Chart, Interval, IntervalKind, Marker, Series, Threshold
from analysis.report.report import Episode

AROUND_SECONDS = 600.0
"""What is shown before and after an incident."""
_MOST_ENGINES = 6
"""Lines on a chart; of a larger fleet its worst or its sum alone."""
_MOST_CHARTS = 9
_UNITS = {
    Unit.RATIO: "ratio",
    Unit.SECONDS: "seconds",
    Unit.BYTES_PER_SECOND: "bytes per second",
    Unit.BYTES: "bytes",
    Unit.PER_SECOND: "per second",
    Unit.TIMES: "times",
    Unit.COUNT: "count",
    Unit.FLAG: "yes (1) or no (0)",
}
_CHAIN: tuple[Measure, ...] = (
    *(measures.SESSIONS, measures.KV_DEMAND, measures.USAGE, measures.SWAPPED_SEQUENCES),
    *(measures.THRASH, measures.PCIE_FULL, measures.WAITING, measures.INTERVAL, measures.PACE_P99),
    *(measures.FIRST_P99, measures.BLOCKED, measures.COLLECTIVES, measures.PREFIX, measures.TAILS),
    *(measures.FREEZE, measures.DEADLOCK, measures.UNEVEN, measures.UNREAD, measures.GPU_GONE),
    *(measures.DOWNGRADED, measures.LEAK, measures.LONG, measures.BREAKER, measures.SLOW_REFUSALS),
    *(measures.REFUSED, measures.ORPHANED, measures.RETRIES, measures.TOKENS),
)
"""In the order in which one thing leads to the next."""
_ALWAYS = frozenset(
    {measures.SESSIONS.title, measures.USAGE.title, measures.PACE_P99.title, measures.TOKENS.title}
)


def charts(frame: Frame, episode: Episode, thresholds: Thresholds = THRESHOLDS) -> tuple[Chart, ...]:
    """Of what was beyond a line in an incident, and of load, memory, pace and work in any case."""
    end = frame.end if episode.end is None else episode.end
    part = frame.between(episode.begin - AROUND_SECONDS, end + AROUND_SECONDS)
    everybody = fleet(part)
    beyond = {
        each.measure.title
        for each in seen(everybody, thresholds)
        if any(
            part.times[span.begin] <= end and part.times[min(span.end, len(part) - 1)] >= episode.begin
            for span in each.beyond
        )
    }
    wanted = [each for each in _CHAIN if each.title in beyond | _ALWAYS]
    # where there is too much to see, what only goes with it stays away
    while len(wanted) > _MOST_CHARTS:
        wanted.pop(
            next(place for place in range(len(wanted) - 2, -1, -1) if wanted[place].title not in _ALWAYS)
        )
    made = [
        each for measure in wanted if (each := _chart(everybody, measure, episode, thresholds)) is not None
    ]
    return tuple(made)


def _chart(everybody: Subject, measure: Measure, episode: Episode, thresholds: Thresholds) -> Chart | None:
    frame = everybody.frame
    subjects = engines(everybody)
    lines = list(_lines(measure, subjects)) if len(subjects) <= _MOST_ENGINES else []
    if not lines:
        values = measure.read(everybody)
        if np.isnan(values).all():
            return None
        lines = [Series("the fleet", frame.times, values)]
    line = measure.limit(thresholds)
    drawn = (Threshold(line, "line"),) if line is not None and measure.unit is not Unit.FLAG else ()
    note = f"{measure.signal.full_name}: {measure.signal.confidence.value.replace('_', ' ')}"
    if measure.window_seconds:
        note += f", over {measure.window_seconds:g} s"
    return Chart(
        measure.title,
        _UNITS[measure.unit],
        tuple(lines),
        thresholds=drawn,
        intervals=tuple(_shaded(frame, episode)),
        markers=tuple(_marked(frame, episode)),
        note=f"{note}.",
    )


def _lines(measure: Measure, subjects: Sequence[Subject]) -> Iterator[Series]:
    """A line an engine, where engines tell it: what gateways tell is of the fleet."""
    if measure is measures.SESSIONS:
        return
    for each in subjects:
        values = measure.read(each)
        if not np.isnan(values).all():
            yield Series(each.engine, each.frame.times, values)


def _shaded(frame: Frame, episode: Episode) -> Iterator[Interval]:
    end = float(frame.times[-1]) if episode.end is None else episode.end
    yield Interval(episode.begin, end, "the incident", IntervalKind.INCIDENT)
    for since, until in holes(frame):
        yield Interval(since, until, "nothing was recorded", IntervalKind.MISSING)


def _marked(frame: Frame, episode: Episode) -> Iterator[Marker]:
    """The first things that were done; their names would cover each other, and stand in the timeline."""
    done = [
        each for each in episode.timeline if each.kind is Kind.ACTION and frame.start <= each.at < frame.end
    ]
    at: float | None = None
    told = False
    for each in done[:6]:
        if at is None or each.at - at > 1:
            at = each.at
            yield Marker(each.at, "" if told else f"done: {each.where}".strip())
            told = True
