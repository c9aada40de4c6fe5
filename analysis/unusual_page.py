"""What was unusual, as a page in one file: tables, and each flagged series with what was expected of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

import numpy as np

from analysis.anomaly import Flag
from analysis.page.chart import Band, Chart, Interval, IntervalKind, Series
from analysis.page.charts import MOST_POINTS, charts_html
from analysis.page.document import Block, Tone, document, heading, note, paragraph, table
from analysis.unusual import Look, Place, Traced, signal_name
from analysis.unusual_words import (
    COLUMNS,
    NOT_JUDGED,
    NOTHING,
    has_days,
    nothing,
    place_words,
    places_words,
    range_words,
    row,
)
from exporter.signal import PREFIX

MOST_CHARTS = 40
"""On a page altogether, those that moved first of each place; tables have all flags."""
_UNITS = (("_ratio", "ratio"), ("_bytes_per_second", "bytes/s"), ("_bytes", "bytes"), ("_seconds", "seconds"))


def page(looks: Sequence[Look], problems: Sequence[tuple[str, str]] = ()) -> str:
    """HTML. ``problems``: sources that couldn't be read, and why."""
    blocks = list(_blocks(looks, problems))
    calm = all(not look.places and look.judged for look in looks)
    title = NOTHING.rstrip(".") if calm else "What was unusual"
    under = [f"{look.source}: {range_words(look)}" for look in looks]
    return document(title, blocks, under)


def _blocks(looks: Sequence[Look], problems: Sequence[tuple[str, str]]) -> Iterator[Block]:
    for source, problem in problems:
        yield note(f"Not read: {source}: {problem}", Tone.ALARM)
    places = sum(len(look.places) for look in looks)
    if looks and not places:
        judged = all(look.judged for look in looks)
        yield note(NOTHING if judged else NOT_JUDGED, Tone.FINE if judged else Tone.PLAIN)
    share = MOST_CHARTS // max(places, 1) or 1
    left = MOST_CHARTS
    for number, look in enumerate(looks):
        if len(looks) > 1:
            yield heading(look.source)
        for each in look.notes:
            yield note(each)
        if len(looks) > 1 and not look.places:
            yield paragraph(nothing(look))
        elif look.places:
            yield paragraph(places_words(look))
        for place_number, place in enumerate(look.places):
            drawn = min(share, left, len(place.series))
            left -= drawn
            yield from _place(look, place, f"p{number}-{place_number}", drawn)


def _place(look: Look, place: Place, name: str, drawn: int) -> Iterator[Block]:
    days = has_days(look)
    words = place_words(place, days=days)
    yield heading(place.name)
    yield paragraph(f"{words[0].upper()}{words[1:]}.")
    yield table(COLUMNS, (row(flag, days=days) for flag in place.flags), "Times are UTC.", numeric=(3,))
    if len(place.series) > drawn:
        yield paragraph(f"Of its {len(place.series)} unusual series the {drawn} that moved first are drawn.")
    charts = [_chart(look, place, series) for series in islice(place.series, drawn)]
    if charts:
        yield charts_html(charts, name=name, most_points=MOST_POINTS * drawn // MOST_CHARTS)


def _chart(look: Look, place: Place, series: Traced) -> Chart:
    own = [flag for flag in place.flags if flag.key == series.key]
    rate = " per second" if own[0].is_rate else ""
    return Chart(
        f"{signal_name(series.key)}{rate}",
        next((unit for ending, unit in _UNITS if series.key.name.endswith(ending)), ""),
        (Series(str(series.key).removeprefix(PREFIX), look.times, series.values),),
        bands=(_expected(look, own),),
        intervals=tuple(
            Interval(flag.start, look.times[-1] if flag.end is None else flag.end, "", IntervalKind.UNUSUAL)
            for flag in own
        ),
    )


def _expected(look: Look, own: Sequence[Flag]) -> Band:
    """What each flag was held against, from the flag before it on: corners alone."""
    last = float(look.times[-1])
    corners = [(float(look.times[0]), own[0])]
    for before, flag in pairwise(own):
        turn = max(corners[-1][0], before.last)
        corners += [(turn, before), (turn + look.step_seconds, flag)]
    corners.append((last, own[-1]))
    rising = [(at, flag) for (at, flag), (after, _) in pairwise(corners) if at < after] + corners[-1:]
    return Band(
        "was usual",
        np.array([at for at, _ in rising]),
        np.array([flag.low for _, flag in rising]),
        np.array([flag.high for _, flag in rising]),
    )
