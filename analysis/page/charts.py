"""Charts over time, one above the other on one axis, as a part of a page that works offline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from bokeh.document import Document
from markupsafe import Markup

from analysis.page.chart import Chart, Interval, Threshold
from analysis.page.document import Block, template
from analysis.page.drawing import BAND, HEIGHT, SHADES, THRESHOLD, Axis, drawn

MOST_POINTS = 24_000
"""Drawn in a block altogether: a point takes 16 characters, so half a megabyte at most with what stands around."""
_COLUMNS = (40, 600)
"""Columns that a series is thinned to: fewest, so that a shape is left, and most, a wide screen's chart."""
_POINTS_PER_COLUMN = 4


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the template needs of one chart."""

    chart: Chart
    place: str
    lines: tuple[tuple[str, str, tuple[str, ...]], ...]
    unseen: tuple[Threshold, ...]


def charts_html(
    charts: Sequence[Chart], *, shared_axis: bool = True, name: str = "charts", most_points: int = MOST_POINTS
) -> Block:
    """The charts in order, all on one time axis, or each on its own.

    ``name``: of the block, another one for each block of a page; letters, digits and dashes. ``most_points``: what all
    series are thinned to together. Raises ValueError: a name with anything else in it.
    """
    if not name.replace("-", "").isalnum() or not name.isascii():
        raise ValueError(f"{name!r} can't be the name of a block: letters, digits and dashes")
    spans = [chart.span() or _span_of_intervals(chart) for chart in charts]
    known = [span for span in spans if span is not None]
    whole = (min(each[0] for each in known), max(each[1] for each in known)) if known else (0.0, 1.0)
    common = Axis.of(*whole)
    columns = _columns(charts, most_points)
    made = [
        drawn(chart, common if shared_axis else Axis.of(*(span or whole)), columns)
        for chart, span in zip(charts, spans, strict=True)
    ]
    bokeh = Document()
    for each in made:
        bokeh.add_root(each.plot)
    renamed = _Names(name)
    document = renamed.all(bokeh.to_json(deferred=False))
    places = {renamed.of(each.plot.id): f"{name}-{place}" for place, each in enumerate(made)}
    shown = [
        _Shown(
            chart,
            place,
            tuple(
                (label, color, tuple(renamed.of(each) for each in ids)) for label, color, ids in each.lines
            ),
            each.unseen,
        )
        for chart, each, place in zip(charts, made, places.values(), strict=True)
    ]
    return Block(
        template(
            "charts.html.j2",
            name=name,
            shared=shared_axis and len(charts) > 1,
            thinned=any(each.thinned for each in made),
            charts=shown,
            height=HEIGHT,
            band_color=BAND,
            threshold_color=THRESHOLD,
            intervals=[(each, SHADES[each.kind]) for each in _intervals(charts)],
            data=_inside_a_script({"doc": document, "roots": places}),
        ),
        draws=True,
    )


def _columns(charts: Sequence[Chart], most_points: int) -> int:
    """As many as the points allow, short lines left as they are."""
    lengths = [len(each.times) for chart in charts for each in chart.series]
    lengths += [2 * len(each.times) for chart in charts for each in chart.bands]
    fewest, most = _COLUMNS
    long = [each for each in lengths if each > fewest * _POINTS_PER_COLUMN]
    left = most_points - (sum(lengths) - sum(long))
    return max(fewest, min(most, left // (_POINTS_PER_COLUMN * max(len(long), 1))))


def _span_of_intervals(chart: Chart) -> tuple[float, float] | None:
    ends = [end for each in chart.intervals for end in (each.start, each.end)]
    return (min(ends), max(ends)) if ends else None


def _intervals(charts: Sequence[Chart]) -> list[Interval]:
    """Each once, in order of time."""
    return sorted(
        {each for chart in charts for each in chart.intervals}, key=lambda each: (each.start, each.end)
    )


def _inside_a_script(value: object) -> Markup:
    """As JSON in which nothing ends the element that it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


class _Names:
    """Models by numbers of our own, so that the same charts give the same page, and two blocks don't meet."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[str, str] = {}
        self._numbers = count()

    def of(self, identity: str) -> str:
        if identity not in self._names:
            self._names[identity] = f"{self._prefix}-m{next(self._numbers)}"
        return self._names[identity]

    def all(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, dict):
            return {
                key: self.of(each) if key == "id" and isinstance(each, str) else self.all(each)
                for key, each in value.items()
            }
        return [self.all(each) for each in value] if isinstance(value, list) else value
