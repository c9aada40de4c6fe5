"""One chart as a figure of bokeh's: what is drawn, and how it looks in a light and in a dark page.

Colours of frames and words come from the page (``page.css`` sets bokeh's own variables, which follow the reader's
scheme); those of lines are readable on both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from bokeh.models import (
    BasicTicker,
    ColumnDataSource,
    CrosshairTool,
    DatetimeTickFormatter,
    HoverTool,
    NumeralTickFormatter,
    Range1d,
)
from bokeh.models.annotations import BoxAnnotation, Label, Span
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from analysis.frame import Values
from analysis.page.chart import Band, Chart, IntervalKind, Series, Threshold
from analysis.page.number_format import number_format
from analysis.page.thinning import kept

LINES = (
    "#2f7fc1",
    "#d9730d",
    "#2a9461",
    "#a55fc4",
    "#cf4455",
    "#8a7a1f",
    "#1597a5",
    "#a0694b",
    "#7b8794",
    "#e0589f",
)
"""Of series, in order; from the eleventh on they begin again."""
SHADES = {
    IntervalKind.INCIDENT: "#d1383d",
    IntervalKind.PENDING: "#d9a20d",
    IntervalKind.FIRING: "#e0620d",
    IntervalKind.UNUSUAL: "#a24fd0",
    IntervalKind.USUAL: "#2a9461",
    IntervalKind.MISSING: "#808890",
}
BAND = "#2a9461"
THRESHOLD = "#cf4455"
MARKER = "#7b8794"
HEIGHT = 210
_LEFT = 72
_MILLISECONDS = 1000.0
_FAR = 2.0
"""A threshold further away than so many times the height of what is drawn is told of instead of drawn."""
_LONGEST_LABEL = 34
_FEW = 3
"""Series whose values at one instant are told together."""


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """The time axis that charts have in common, and what points at an instant of all of them."""

    start: float
    end: float
    range: Range1d
    pointer: Span

    @classmethod
    def of(cls, start: float, end: float) -> Axis:
        """From ``start`` to ``end``, seconds since the epoch; an instant alone gets a second."""
        end = max(end, start + 1.0)
        low, high = start * _MILLISECONDS, end * _MILLISECONDS
        bounds = Range1d(start=low, end=high, bounds=(low, high))
        return cls(start, end, bounds, Span(dimension="height", line_dash="dotted", line_color=MARKER))


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A figure, the models of each line by its label, whether points were left out, and thresholds out of sight."""

    plot: figure
    lines: tuple[tuple[str, str, tuple[str, ...]], ...]
    thinned: bool
    unseen: tuple[Threshold, ...]


def drawn(chart: Chart, axis: Axis, columns: int) -> Drawn:
    """A chart on an axis, with at most some four points a series in each of so many columns."""
    low, high = _heights(chart)
    seen = tuple(each for each in chart.thresholds if _near(each.value, low, high))
    low, high = min((low, *(each.value for each in seen))), max((high, *(each.value for each in seen)))
    room = (high - low or abs(high) or 1.0) * 0.08
    bottom = 0.0 if low == 0 else low - room
    numbers = number_format(chart.unit, max(abs(bottom), abs(high)))
    plot = figure(
        height=HEIGHT,
        sizing_mode="stretch_width",
        x_axis_type="datetime",
        x_range=axis.range,
        y_range=Range1d(start=bottom, end=high + room),
        tools="xbox_zoom,xpan,reset",
        active_drag="xbox_zoom",
        toolbar_location="above",
        min_border_left=_LEFT,
        min_border_right=12,
        output_backend="canvas",
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.xaxis.formatter = _instants()
    plot.yaxis.formatter = NumeralTickFormatter(format=numbers)
    plot.xgrid.visible = False
    plot.yaxis.ticker = BasicTicker(desired_num_ticks=4)
    _shade(plot, chart)
    thinned = [_band(plot, band, axis, columns) for band in chart.bands]
    # what is said of many at once covers itself
    few = len(chart.series) <= _FEW
    lines: list[tuple[str, str, tuple[str, ...]]] = []
    for place, series in enumerate(chart.series):
        renderers, less = _line(plot, series, LINES[place % len(LINES)], axis, columns)
        thinned.append(less)
        _hover(plot, renderers[0], series.label, numbers, "vline" if few else "mouse")
        lines.append((series.label, LINES[place % len(LINES)], tuple(each.id for each in renderers)))
    _levels(plot, seen, axis)
    _mark(plot, chart, bottom, numbers)
    plot.add_tools(CrosshairTool(overlay=axis.pointer))
    unseen = tuple(each for each in chart.thresholds if each not in seen)
    return Drawn(plot, tuple(lines), any(thinned), unseen)


def _heights(chart: Chart) -> tuple[float, float]:
    """What the values of all series and bands lie between; from 0 on where that is not far."""
    parts = [each.values for each in chart.series] + [
        part for each in chart.bands for part in (each.low, each.high)
    ]
    parts += [np.array([each.value for each in chart.markers if each.value is not None])]
    everything = np.concatenate(parts)
    known = everything[np.isfinite(everything)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    if 0 <= low < high / 2:
        low = 0.0
    return (
        (low, high) if low < high else (min(0.0, low), max(high, low + 1.0) if low == 0 else max(0.0, high))
    )


def _near(value: float, low: float, high: float) -> bool:
    return low - _FAR * (high - low) <= value <= high + _FAR * (high - low)


def _finite(values: Values) -> Values:
    return np.where(np.isfinite(values), values, np.nan)


def _line(
    plot: figure, series: Series, color: str, axis: Axis, columns: int
) -> tuple[list[GlyphRenderer[Any]], bool]:
    values = _finite(series.values)
    places = kept(series.times, values, columns, axis.start, axis.end)
    drawn_values = values[places]
    source = ColumnDataSource(
        {"time": series.times[places] * _MILLISECONDS, "value": drawn_values.astype(np.float32)}
    )
    renderers: list[GlyphRenderer[Any]] = [
        plot.line("time", "value", source=source, line_color=color, line_width=1.6)
    ]
    alone = _alone(drawn_values)
    if alone.any():
        # a line of one point is invisible, and a sparse series is made of such
        points = ColumnDataSource(
            {str(name): np.asarray(column)[alone] for name, column in source.data.items()}
        )
        renderers.append(
            plot.scatter("time", "value", source=points, size=4, fill_color=color, line_color=None)
        )
    return renderers, len(places) < len(series.times)


def _alone(values: Values) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    known = np.concatenate(([False], ~np.isnan(values), [False]))
    return np.asarray(known[1:-1] & ~known[:-2] & ~known[2:], dtype=bool)


def _band(plot: figure, band: Band, axis: Axis, columns: int) -> bool:
    low, high = _finite(band.low), _finite(band.high)
    places = np.union1d(
        kept(band.times, low, columns, axis.start, axis.end),
        kept(band.times, high, columns, axis.start, axis.end),
    )
    source = ColumnDataSource(
        {
            "time": band.times[places] * _MILLISECONDS,
            "low": low[places].astype(np.float32),
            "high": high[places].astype(np.float32),
        }
    )
    plot.varea("time", "low", "high", source=source, fill_color=BAND, fill_alpha=0.18)
    return len(places) < len(band.times)


def _shade(plot: figure, chart: Chart) -> None:
    for each in chart.intervals:
        left, right = each.start * _MILLISECONDS, each.end * _MILLISECONDS
        plot.add_layout(
            BoxAnnotation(
                left=left,
                right=right,
                fill_color=SHADES[each.kind],
                fill_alpha=0.13,
                line_color=None,
                level="underlay",
            )
        )


def _levels(plot: figure, thresholds: tuple[Threshold, ...], axis: Axis) -> None:
    for each in thresholds:
        plot.add_layout(
            Span(
                location=each.value,
                dimension="width",
                line_color=THRESHOLD,
                line_dash="dashed",
                line_width=1.2,
            )
        )
        plot.add_layout(_words(axis.start * _MILLISECONDS, each.value, each.label))


def _mark(plot: figure, chart: Chart, bottom: float, numbers: str) -> None:
    for each in chart.markers:
        at = each.time * _MILLISECONDS
        if each.value is None:
            plot.add_layout(Span(location=at, dimension="height", line_color=MARKER, line_width=1.5))
            plot.add_layout(_words(at, bottom, each.label))
            continue
        source = ColumnDataSource({"time": [at], "value": [each.value]})
        point = plot.scatter(
            "time", "value", source=source, size=9, marker="diamond", fill_color=MARKER, line_color="white"
        )
        _hover(plot, point, each.label, numbers, "mouse")


def _words(x: float, y: float, text: str) -> Label:
    short = text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"
    return Label(
        x=x, y=y, x_offset=4, y_offset=2, text=short, text_font_size="11px", background_fill_alpha=0.6
    )


def _hover(
    plot: figure, renderer: GlyphRenderer[Any], label: str, numbers: str, mode: Literal["mouse", "vline"]
) -> None:
    plot.add_tools(
        HoverTool(
            renderers=[renderer],
            mode=mode,
            # an @ in the second column would be a place for a value; a label stands in the first, where nothing is
            tooltips=[(label, f"@value{{{numbers}}}"), ("UTC", "@time{%F %H:%M:%S}")],
            formatters={"@time": "datetime"},
            visible=False,
            line_policy="nearest",
        )
    )


def _instants() -> DatetimeTickFormatter:
    """Times of day, with the day where it changes."""
    return DatetimeTickFormatter(
        milliseconds="%H:%M:%S",
        seconds="%H:%M:%S",
        minsec="%H:%M:%S",
        minutes="%H:%M",
        hourmin="%H:%M",
        hours="%H:%M",
        days="%d %b",
        months="%b %Y",
        context="%d %b %Y",
        context_which="start",
        hide_repeats=True,
    )
