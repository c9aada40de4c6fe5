"""History from a Prometheus-compatible server: Prometheus, Thanos, Mimir, VictoriaMetrics.

    read_server("http://127.0.0.1:9090", start, end)

Raw samples, as they were scraped, by instant queries with a range selector, which have no limit of 11,000 instants; by
``/api/v1/export`` where the server has it. First it is counted what there is, so that no request asks for more than a
server gives, and no frame is begun that doesn't fit into memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.history.history import History, HistoryError
from analysis.history.server_asked import Asked, Progress, day
from analysis.history.server_cache import Cache, default_folder
from analysis.history.server_census import census, instances_of, names_of
from analysis.history.server_client import Client, GoneError, TooMuchError
from analysis.history.server_columns import Columns
from analysis.history.server_frame import read_columns
from analysis.history.server_names import Wanted, checked_names, literal, matcher, selector, wanted
from analysis.history.server_notes import notes_of
from analysis.history.server_plan import DAY, Census, Piece, plan
from analysis.history.server_reader import Reader, Told
from analysis.history.server_settings import ServerSettings
from exporter.settings import RefusedError
from exporter.signal import PREFIX

MOST_SERIES = 50_000
MOST_VALUES = 500_000_000
"""Of a frame: 4 GB."""
DEADLINE_SECONDS = 1800.0
_FAR_SECONDS = 10 * 365 * 86_400.0
_HELD_DAYS = 400
_ENOUGH_NAMES = 20
_NOBODY = f"{PREFIX}no_such_series"


def read_server(  # noqa: PLR0913 - each is a question of its own
    server: str | ServerSettings,
    start: float,
    end: float,
    *,
    step_seconds: float | None = None,
    names: Collection[str] | None = None,
    matchers: Iterable[str] = (),
    progress: Progress | None = None,
    cache_folder: Path | None = None,
    use_cache: bool = True,
    deadline_seconds: float = DEADLINE_SECONDS,
    most_series: int = MOST_SERIES,
    most_values: int = MOST_VALUES,
    now: float | None = None,
) -> History:
    """Read from ``start`` to before ``end``, seconds since the epoch, on an even grid.

    ``step_seconds``: unless given, what mostly lies between two scrapes. ``names``: unless given, all our signals,
    and where the server has none, what the dialects know of engines, gateways and GPU exporters: the frame then holds
    raw series (``server_names.is_raw``). ``matchers``: labels that all series must have, as ``engine="a"``.
    ``cache_folder``: where pieces are kept that can't change any more, unless without ``use_cache``; by default in the
    user's cache. ``deadline_seconds``: for all of it; what was read until then is given. ``now``: by default the clock.

    Not from within an event loop: call it in a thread there. Raises HistoryError: no such server, nothing there,
    more than ``most_series`` series or ``most_values`` values in the frame.
    """
    settings = _settings(server)
    clock = time.time() if now is None else now
    if not (0 <= start <= clock + _FAR_SECONDS and 0 <= end <= clock + _FAR_SECONDS):
        raise HistoryError(
            f"a range from {start:g} to {end:g}: seconds since 1970 are wanted; are these milliseconds?"
        )
    if not start < end:
        raise HistoryError(f"an empty range, from {day(start)} to {day(end)}; it has to end after it begins")
    if step_seconds is not None and step_seconds <= 0:
        raise HistoryError(f"a step of {step_seconds:g} s; it has to be above 0")
    asked = Asked(
        server=settings,
        # a sample at the very start belongs to it, and pieces begin after theirs
        between=(round(start * 1000) - 1, round(end * 1000)),
        step_seconds=step_seconds,
        names=None if names is None else checked_names(names),
        matchers=tuple(matcher(each) for each in matchers),
        progress=progress,
        cache=Cache(cache_folder or default_folder(), settings) if use_cache else None,
        deadline_seconds=deadline_seconds,
        most_series=most_series,
        most_values=most_values,
        now=clock,
    )
    return asyncio.run(_read(asked))


def _settings(server: str | ServerSettings) -> ServerSettings:
    if isinstance(server, ServerSettings):
        return server
    try:
        return ServerSettings(server)
    except RefusedError as error:
        raise HistoryError(".".join((*map(str, error.key), "")).rstrip(".") + f" {error}") from error


async def _read(asked: Asked) -> History:
    client = Client(asked.server)
    deadline = asyncio.get_running_loop().time() + asked.deadline_seconds
    try:
        try:
            async with asyncio.timeout_at(deadline):
                which = await _which(client, asked)
                select = await _selecting(client, asked, which)
                counted = [await census(client, select, group, asked.between) for group in _groups(which)]
                exports = await _exports(client)
        except TimeoutError:
            raise HistoryError(
                f"{client.shown_url}: within {asked.deadline_seconds:g} s it didn't even say what it has;"
                " look whether it is overloaded, or give it more time"
            ) from None
        except TooMuchError as refused:
            raise HistoryError(
                f"{client.shown_url}: {refused}; narrow it with names or matchers"
            ) from refused
        except GoneError as gone:
            raise HistoryError(str(gone)) from gone
        pieces = await _planned(client, asked, which, counted)
        reader = Reader(client, asked, select, exports=exports)
        columns = await read_columns(reader, pieces, asked, counted, deadline)
    finally:
        await client.aclose()
        if asked.cache is not None:
            asked.cache.trim()
    return _history(client, asked, which, columns, reader.told)


def _groups(which: Wanted) -> list[tuple[str, ...]]:
    return [group for group in (which.names, which.shared) if group]


async def _which(client: Client, asked: Asked) -> Wanted:
    """The names to read. Raises HistoryError where there are none."""
    if asked.names is not None:
        matching = selector(asked.names, asked.matchers)
        found = Wanted(tuple(sorted(set(await names_of(client, matching, asked.between)) & set(asked.names))))
    else:
        ours = asked.of(f'__name__=~"{PREFIX}.+"')
        found = wanted(await names_of(client, ours, asked.between))
        if not found.names or found.raw:
            matching = asked.of('__name__!=""')
            found = wanted(await names_of(client, matching, asked.between))
    if found.names:
        return found
    raise await _nothing(client, asked)


async def _nothing(client: Client, asked: Asked) -> HistoryError:
    """Says what is there instead."""
    since, until = (asked.between[0] + 1) / 1000, asked.between[1] / 1000
    where = f"{client.shown_url}: nothing to read from {day(since)} to {day(until)}"
    try:
        there = await names_of(client, asked.of('__name__!=""'))
        names = (
            sorted(set(there) & set(asked.names)) if asked.names is not None else list(wanted(there).names)
        )
        if not names:
            what = (
                ", ".join(asked.names[:3])
                if asked.names is not None
                else "signals of thrashold or series of engines"
            )
            return HistoryError(
                f"{where}: it has no {what}, among {len(there)} other names; check names and matchers"
            )
        held = await census(
            client,
            _Select(asked.matchers),
            names[:_ENOUGH_NAMES],
            (round((asked.now - _HELD_DAYS * 86_400) * 1000), round(asked.now * 1000)),
        )
    except (TooMuchError, GoneError):
        return HistoryError(f"{where}; check the range, names and matchers")
    days = sorted(day for day, counts in held.series.items() if counts)
    if not days:
        return HistoryError(f"{where}; {names[0]} and others are there, at other times")
    return HistoryError(
        f"{where}; it holds them from {day((days[0] - DAY) / 1000)} to {day(min(days[-1] / 1000, asked.now))}"
    )


async def _selecting(client: Client, asked: Asked, which: Wanted) -> _Select:
    """How names become selectors: those that any process may have are asked of engines' instances only."""
    if not which.shared:
        return _Select(asked.matchers)
    instances = await instances_of(client, selector(which.names, asked.matchers), asked.between)
    escaped = "|".join(sorted(literal(each) for each in instances))
    return _Select(asked.matchers, frozenset(which.shared), (f'instance=~"{escaped}"',))


@dataclass(frozen=True, slots=True)
class _Select:
    """Makes the selector of some names, all of them shared or none."""

    matchers: tuple[str, ...]
    shared: frozenset[str] = frozenset()
    of_shared: tuple[str, ...] = ()

    def __call__(self, names: Sequence[str]) -> str:
        more = self.of_shared if names[0] in self.shared else ()
        return selector(names, (*self.matchers, *more))


async def _exports(client: Client) -> bool:
    """Whether the server has VictoriaMetrics's export: asked for nothing it sends nothing, others say what is wrong."""
    try:
        return not await client.ask(
            "/api/v1/export", (("match[]", selector((_NOBODY,))), ("start", "0"), ("end", "1"))
        )
    except (HistoryError, TooMuchError, GoneError):
        return False


async def _planned(client: Client, asked: Asked, which: Wanted, counted: Sequence[Census]) -> list[Piece]:
    """The pieces, the newest first. Raises HistoryError for none, and for too many series."""
    most = sum(each.most_series for each in counted)
    if most > asked.most_series:
        raise HistoryError(
            f"{client.shown_url}: {most} series, more than {asked.most_series} at a time;"
            ' narrow it with names or matchers, such as cluster="..."'
        )
    pieces = [
        piece
        for names, count in zip(_groups(which), counted, strict=True)
        for piece in plan(_there(names, count), *asked.between, count)
    ]
    if not pieces:
        raise await _nothing(client, asked)
    return sorted(pieces, key=lambda piece: -piece.end)


def _there(names: Sequence[str], count: Census) -> Sequence[str]:
    """Names of which there is something, all where nothing could be counted."""
    seen = {name for counts in count.series.values() for name in counts}
    return [name for name in names if name in seen] if seen else names


def _history(client: Client, asked: Asked, which: Wanted, columns: Columns, told: Told) -> History:
    frame = columns.frame()
    if frame is None:
        reason = told.stopped or told.refusal or "what it counted isn't there any more"
        said = reason.removeprefix(f"{client.shown_url}: ")
        raise HistoryError(f"{client.shown_url}: nothing could be read: {said}")
    return History(frame, client.shown_url, notes=notes_of(asked, which, told, columns.intervals, frame))
