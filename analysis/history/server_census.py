"""What a server has, before much is read of it: names, series a day, and how often they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from analysis.history.server_client import Client, Form, TooMuchError
from analysis.history.server_json import Answer, UnreadableError, read_matrix
from analysis.history.server_plan import DAY, Census, day_of

DAY_SECONDS = DAY // 1000
_MOST_DAYS = 5_000
"""In one request: servers give 11,000 instants at most."""
_MOST_REFUSED = 3
"""Single days that aren't counted: others aren't either then."""
_USUAL_SAMPLES = DAY_SECONDS / 15
"""A day of a series where it can't be counted."""


async def names_of(client: Client, matching: str | None, between: tuple[int, int] | None = None) -> list[str]:
    """Names of series that match (None: all), perhaps of some that don't: old servers don't look at what is asked."""
    return await _label_values(client, "__name__", matching, between)


async def instances_of(client: Client, matching: str, between: tuple[int, int]) -> list[str]:
    """The ``instance`` labels of series that match."""
    return await _label_values(client, "instance", matching, between)


async def census(
    client: Client, select: Callable[[Sequence[str]], str], names: Sequence[str], between: tuple[int, int]
) -> Census:
    """Series by name in each day of a range, counted by the server in one request where it takes that.

    ``select`` makes a selector of names.
    """
    span = day_of(between[0] + 1), day_of(between[1])
    counted = await _by_day(client, f"count by (__name__) (last_over_time({select(names)}[1d]))", *span)
    series = {day: {name: round(count) for name, count in counts.items()} for day, counts in counted.items()}
    totals = Counter[str]()
    for counts in series.values():
        totals.update(counts)
    if not totals:
        return Census(series, _USUAL_SAMPLES)
    # the function drops names, so that it can be asked of one only; that is enough for a guess
    ((most, _),) = totals.most_common(1)
    samples = await _by_day(client, f"max(count_over_time({select((most,))}[1d]))", *span)
    a_day = max((count for counts in samples.values() for count in counts.values()), default=_USUAL_SAMPLES)
    return Census(series, a_day)


async def _by_day(client: Client, expression: str, first: int, last: int) -> dict[int, dict[str, float]]:
    """An expression at the end of each day, by name; a day that the server can't count in time is missing."""
    found: dict[int, dict[str, float]] = {}
    spans, refused = [(first, last)], 0
    while spans and refused < _MOST_REFUSED:
        since, until = spans.pop()
        if (until - since) // DAY < _MOST_DAYS:
            try:
                answer = await _at_days(client, expression, since, until)
            except TooMuchError:
                if since == until:
                    refused += 1
                    continue
            else:
                found |= {day: {} for day in range(since, until + 1, DAY)}
                for each in answer.series:
                    for at, value in zip(each.times, each.values, strict=True):
                        found.setdefault(round(at * 1000), {})[each.key.name] = float(value)
                continue
        middle = since + (until - since) // (2 * DAY) * DAY
        spans += [(since, middle), (middle + DAY, until)]
    return found


async def _at_days(client: Client, expression: str, first: int, last: int) -> Answer:
    form: Form = (
        ("query", expression),
        ("start", str(first // 1000)),
        ("end", str(last // 1000)),
        ("step", str(DAY_SECONDS)),
        ("nocache", "1"),  # VictoriaMetrics moves the start elsewhere, to answer from its cache
    )
    body = await client.ask("/api/v1/query_range", form)
    try:
        return read_matrix(body)
    except UnreadableError as error:
        raise client.no_prometheus(body) from error


async def _label_values(
    client: Client, label: str, matching: str | None, between: tuple[int, int] | None
) -> list[str]:
    form = [] if matching is None else [("match[]", matching)]
    if between is not None:
        form += [("start", f"{between[0] / 1000:.3f}"), ("end", f"{between[1] / 1000:.3f}")]
    data = await client.get_json(f"/api/v1/label/{label}/values", form)
    try:
        return msgspec.convert(data, list[str])
    except msgspec.ValidationError as error:
        raise client.no_prometheus(repr(data).encode()) from error
