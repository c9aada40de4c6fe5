"""What was unusual, as text for a terminal and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click

from analysis.anomaly import COUNTLESS, Flag
from analysis.unusual import Look, Place, signal_name

NOTHING = "Nothing unusual."
NOT_JUDGED = (
    "Nothing could be judged: of no series enough instants are known. Take a longer range or a shorter step."
)
COLUMNS = ("since", "until", "signal", "value", "usual", "how far")


def text(look: Look) -> str:
    """Of one source; ``click.echo`` takes the styles off where there is no terminal."""
    return "\n".join(line.rstrip() for line in _lines(look))


def row(flag: Flag, *, days: bool) -> tuple[str, str, str, str, str, str]:
    """A flag's cells under ``COLUMNS``; with ``days`` its times have dates."""
    rate = " per second" if flag.is_rate else ""
    return (
        clock(flag.start, days=days),
        "goes on" if flag.end is None else clock(flag.end, days=days),
        signal_name(flag.key) + rate,
        f"{flag.value:.4g}",
        f"{flag.low:.3g} to {flag.high:.3g}",
        _far(flag),
    )


def _far(flag: Flag) -> str:
    side = "above" if flag.kind.upwards else "below"
    return (
        f"{flag.score:.0f} spreads {side}"
        if flag.score < COUNTLESS
        else f"over {COUNTLESS:,.0f} spreads {side}"
    )


def clock(at: float, *, days: bool) -> str:
    """An instant in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S" if days else "%H:%M:%S")


def has_days(look: Look) -> bool:
    """Whether a time of day alone would not say when."""
    ends = [datetime.fromtimestamp(float(look.times[place]), UTC).date() for place in (0, -1)]
    return ends[0] != ends[1]


def nothing(look: Look) -> str:
    """What is said where no place was unusual: that, or that none could have been found so."""
    return NOTHING if look.judged else NOT_JUDGED


def places_words(look: Look) -> str:
    """How many there are, and the first. Raises IndexError where there is none."""
    count, first = len(look.places), look.places[0]
    return (
        f"{count} {'place was' if count == 1 else 'places were'} unusual, first "
        f"{first.name} at {clock(first.since, days=has_days(look))}."
    )


def range_words(look: Look) -> str:
    """From when to when, and how much of it was judged."""
    start, end = float(look.times[0]), float(look.times[-1]) + look.step_seconds
    derived = f"; {look.derived} signals are derived, without a sidecar" if look.derived else ""
    return (
        f"{clock(start, days=True)} to {clock(end, days=has_days(look))} UTC, every {look.step_seconds:g} s; "
        f"{look.judged} of {look.series} series judged{derived}"
    )


def place_words(place: Place, *, days: bool) -> str:
    """Since when, and whether it is over."""
    over = "not over at the end" if place.until is None else f"usual again by {clock(place.until, days=days)}"
    return f"unusual since {clock(place.since, days=days)}, {over}; moved first: {', '.join(place.first)}"


def as_json(looks: Sequence[Look], problems: Sequence[tuple[str, str]] = ()) -> str:
    """One object. ``problems``: sources that couldn't be read, and why. What isn't a finite number is null."""
    found = {
        "sources": [_source(look) for look in looks],
        "failed": [{"source": source, "problem": problem} for source, problem in problems],
    }
    return json.dumps(found, indent=2, allow_nan=False)


def _lines(look: Look) -> Iterator[str]:
    yield click.style(look.source, bold=True)
    yield range_words(look)
    for note in look.notes:
        yield f"note: {note}"
    if not look.places:
        yield click.style(nothing(look), fg="green" if look.judged else "yellow")
        return
    days = has_days(look)
    yield places_words(look)
    for place in look.places:
        yield ""
        yield f"{click.style(place.name, bold=True, fg='yellow')}: {place_words(place, days=days)}"
        rows = [COLUMNS, *(row(flag, days=days) for flag in place.flags)]
        widths = [max(len(each[column]) for each in rows) for column in range(len(COLUMNS))]
        for each in rows:
            yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(each, widths, strict=True))


def _source(look: Look) -> dict[str, object]:
    return {
        "source": look.source,
        "start": float(look.times[0]),
        "end": float(look.times[-1]) + look.step_seconds,
        "step_seconds": look.step_seconds,
        "series": look.series,
        "judged": look.judged,
        "derived_signals": look.derived,
        "notes": list(look.notes),
        "places": [
            {
                "place": place.name,
                "since": place.since,
                "until": place.until,
                "moved_first": list(place.first),
                "flags": [_flag(flag) for flag in place.flags],
            }
            for place in look.places
        ],
    }


def _flag(flag: Flag) -> dict[str, object]:
    return {
        "signal": flag.key.name,
        "labels": dict(flag.key.labels),
        "kind": flag.kind.value,
        "start": flag.start,
        "last": flag.last,
        "end": flag.end,
        "worst_at": flag.worst_at,
        "value": _finite(flag.value),
        "low": _finite(flag.low),
        "high": _finite(flag.high),
        "score": _finite(flag.score),
        "baseline": flag.baseline.value,
        "per_second": flag.is_rate,
        "words": flag.words,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
