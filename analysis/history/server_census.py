"""What a server has, before much is read of it: names, series a day, and how often they come."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from analysis.history.server_client import Client, Form, TooMuchError
from analysis.history.server_json import Answer, UnreadableError, read_matrix
from analysis.history.server_plan import DAY, Census, day_of

DAY_SECONDS = DAY // 1000
_MOST_DAYS = 5_000
"""In one request: servers give 11,000 instants at most."""
_USUAL_SAMPLES = DAY_SECONDS / 15
"""A day of a series where it can't be counted."""


async def names_of(client: Client, matching: str, between: tuple[int, int] | None = None) -> list[str]:
    """Names of series that match, perhaps with some that don't: old servers don't look at what is asked for."""
    return await _label_values(client, "__name__", matching, between)


async def instances_of(client: Client, matching: str, between: tuple[int, int]) -> list[str]:
    """The ``instance`` labels of series that match."""
    return await _label_values(client, "instance", matching, between)


async def census(client: Client, selector: str, between: tuple[int, int]) -> Census:
    """Series by name in each day of a range, counted by the server in one request where it takes that."""
    first, last = day_of(between[0] + 1), day_of(between[1])
    counted = await _by_day(client, f"count by (__name__) (last_over_time({selector}[1d]))", first, last)
    series = {day: {name: round(count) for name, count in counts.items()} for day, counts in counted.items()}
    totals: dict[str, int] = {}
    for counts in series.values():
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
    if not totals:
        return Census(series, _USUAL_SAMPLES)
    # the function drops names, so that it can be asked of one only; that is enough for a guess
    most = max(totals, key=lambda name: totals[name])
    inside = selector.removeprefix("{").partition(",")
    one = f'{{__name__="{most}"' + (f",{inside[2]}" if inside[1] else "}")
    samples = await _by_day(client, f"max(count_over_time({one}[1d]))", first, last)
    return Census(
        series,
        max((count for counts in samples.values() for count in counts.values()), default=_USUAL_SAMPLES),
    )


async def _by_day(client: Client, expression: str, first: int, last: int) -> dict[int, dict[str, float]]:
    """An expression at the end of each day, by name; a day that the server can't count in time is missing."""
    form: Form = (
        ("query", expression),
        ("start", str(first // 1000)),
        ("end", str(last // 1000)),
        ("step", str(DAY_SECONDS)),
        ("nocache", "1"),  # VictoriaMetrics: what isn't from its cache needs no even start
    )
    if (last - first) // DAY < _MOST_DAYS:
        try:
            answer = await _matrix(client, "/api/v1/query_range", form)
        except TooMuchError:
            if first == last:
                return {}
        else:
            found: dict[int, dict[str, float]] = {day: {} for day in range(first, last + 1, DAY)}
            for each in answer.series:
                for at, value in zip(each.times, each.values, strict=True):
                    found.setdefault(round(at * 1000), {})[each.key.name] = float(value)
            return found
    middle = first + (last - first) // (2 * DAY) * DAY
    halves = await asyncio.gather(
        _by_day(client, expression, first, middle), _by_day(client, expression, middle + DAY, last)
    )
    return halves[0] | halves[1]


async def _matrix(client: Client, path: str, form: Form) -> Answer:
    body = await client.ask(path, form)
    try:
        return read_matrix(body)
    except UnreadableError as error:
        raise client.no_prometheus(body) from error


async def _label_values(
    client: Client, label: str, matching: str, between: tuple[int, int] | None
) -> list[str]:
    form = [("match[]", matching)]
    if between is not None:
        form += [("start", f"{between[0] / 1000:.3f}"), ("end", f"{between[1] / 1000:.3f}")]
    data = await client.get_json(f"/api/v1/label/{label}/values", form)
    if not isinstance(data, list) or not all(isinstance(each, str) for each in data):
        raise client.no_prometheus(repr(data).encode())
    return list(_texts(data))


def _texts(data: Iterable[object]) -> Iterable[str]:
    return (each for each in data if isinstance(each, str))
