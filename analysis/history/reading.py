"""The one way to history: whatever a source is, it is found out by what it holds and read as that."""

from __future__ import annotations

import importlib
import re
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from analysis.frame import Key
from analysis.history import parquet
from analysis.history.derived import derive
from analysis.history.history import History, HistoryError
from analysis.history.openmetrics import read_openmetrics
from analysis.history.recorded import recorded
from analysis.history.samples import MOST_SERIES, Gathered, Progress
from analysis.history.targets import is_raw, tells_a_target
from exporter.recorder_times import instant, shown
from exporter.signal import PREFIX
from exporter.window import HORIZON_SECONDS

_SERVER = "analysis.history.server"
"""Loaded where a server is read: nothing else here needs what it does."""
_SQLITE, _PARQUET = b"SQLite format 3\0", b"PAR1"
RECORDING, DUMP = "recording.db", "metrics.om"
"""What a drill's run leaves in its folder."""
_MOST_NAMED = 5
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_SERVERS = ("http://", "https://")
_BACK = re.compile(r"-\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def read(  # noqa: PLR0913 - what, when, how, and a limit
    source: str,
    start: float | None = None,
    end: float | None = None,
    *,
    step_seconds: float | None = None,
    names: Collection[str] | None = None,
    matchers: Collection[str] = (),
    max_series: int = MOST_SERIES,
    progress: Progress | None = None,
) -> History:
    """Read what ``source`` holds from ``start`` to before ``end`` (seconds since the epoch; None: all there is).

    ``source``: the URL of a Prometheus-compatible server, a recorder's file, a dump with timestamps, Parquet, or the
    folder of a drill's run. ``step_seconds``: of the grid, else that of the source. ``names``: series as they are
    scraped, ``thrashold_kv_usage_ratio`` for one; None: all. ``matchers``: labels that all series of a server must
    have, ``cluster="east"`` for one. Where a sidecar's signals are held, others are read by their names alone; where
    none are but series of engines, gateways or dcgm-exporter, signals are derived from those, and ``progress`` begins
    anew once all is read. A server needs a ``start``. Raises HistoryError.
    """
    if start is not None and end is not None and start >= end:
        raise HistoryError(f"an empty range, {shown(start)} to {shown(end)}: it has to end after it begins")
    if step_seconds is not None and not step_seconds > 0:
        raise HistoryError(f"a step of {step_seconds:g} s: it has to be above 0")
    if _URL.match(source):
        return _from_server(source, start, end, step_seconds, names, matchers, max_series, progress)
    if matchers:
        raise HistoryError(f"{source}: matchers are for servers; of a file all is read")
    path = _file_of(Path(source))
    begins = _beginning(path)
    if begins.startswith(_SQLITE) or (not begins and path.suffix == ".db"):
        return _recorded(path, start, end, step_seconds, names)
    if begins.startswith(_PARQUET) and parquet.is_stored(path):
        return _on_step(parquet.load(path, start, end, names=names), start, end, step_seconds)
    whole = parquet.read_long if begins.startswith(_PARQUET) else read_openmetrics
    return _from_samples(whole, path, start, end, step_seconds, names, max_series, progress)


def is_server(source: str) -> bool:
    """Whether a source is the URL of a server, and no file."""
    return source.lower().startswith(_SERVERS)


def source_shown(source: str) -> str:
    """A source as anybody may read it: a URL without user, password and query."""
    if not _URL.match(source):
        return source
    from exporter.sources.endpoint import shown as url_shown  # noqa: PLC0415 - files need no HTTP client

    return url_shown(source)


def parse_time(text: str, end: float | None = None) -> float:
    """An instant: ISO 8601 (UTC where it names no zone), seconds since the epoch, or ``-2h`` before ``end``.

    Raises ValueError with one line: none of these, or no ``end`` to count from.
    """
    back = _BACK.fullmatch(text.strip())
    if back is not None:
        if end is None:
            raise ValueError(
                f"{text!r} counts back from the end, and none is given: name the end, or an instant"
            )
        return end - float(back[1]) * _UNITS[back[2]]
    try:
        return instant(text.strip())
    except ValueError as error:
        raise ValueError(f"{error}; a time before the end is written -2h") from None


def parse_range(start: str | None, end: str | None, *, ends_now: bool) -> tuple[float | None, float | None]:
    """Both ends as ``parse_time`` has them; None: as far as the source goes.

    ``ends_now``: whether what has no end goes on until now, as a server does; a file's own end isn't known before it
    is read. Raises ValueError with one line: no times, or nothing between them.
    """
    now = time.time()
    until = None if end is None else parse_time(end, now)
    since = None if start is None else parse_time(start, now if until is None and ends_now else until)
    if since is not None and until is not None and since >= until:
        raise ValueError("--start isn't before --end: nothing lies between them")
    return since, until


def _from_server(  # noqa: PLR0913, PLR0917 - all that can be asked for
    url: str,
    start: float | None,
    end: float | None,
    step_seconds: float | None,
    names: Collection[str] | None,
    matchers: Collection[str],
    max_series: int,
    progress: Progress | None,
) -> History:
    """From a server: what is asked for as it is there, or derived from what is there."""
    where = source_shown(url)
    if not is_server(url):
        raise HistoryError(f"{where}: only http and https are read; files are named by their path")
    try:
        server = importlib.import_module(_SERVER)
    except ImportError as error:
        raise HistoryError(f"{where}: servers can't be read by this installation ({error})") from error
    if start is None:
        raise HistoryError(f"{where}: a server is read in a range: name its start (--start -2h)")
    until = time.time() if end is None else end
    asked = frozenset(names or ())

    def ask(begin: float, step: float | None, wanted: Collection[str] | None) -> History:
        told = None if progress is None else lambda share, _: progress(share)
        found: History = server.read_server(
            url,
            begin,
            until,
            step_seconds=step,
            names=wanted,
            matchers=matchers,
            progress=told,
            most_series=max_series,
        )
        return found

    try:
        found = ask(start, step_seconds, asked or None)
    except HistoryError:
        if not _are_signals(asked):
            raise
        # nothing of that name: perhaps there is no sidecar, but what it would have read
        found = ask(start, step_seconds, None)
        if not _is_raw(found.frame.keys):
            raise
    if not _is_raw(found.frame.keys) or (asked and not _are_signals(asked)):
        return found
    # on the step of its scrapes, and from before the start, so that windows are filled there
    raw = ask(max(0.0, start - HORIZON_SECONDS), None, None)
    return _only(derive(Gathered.of(raw), start, end, step_seconds, progress=progress), asked)


def _are_signals(names: frozenset[str]) -> bool:
    return bool(names) and all(name.startswith(PREFIX) for name in names)


def _is_raw(keys: Sequence[Key]) -> bool:
    """Whether no sidecar told any of these, but engines, gateways or dcgm-exporter did."""
    return not any(key.name.startswith(PREFIX) for key in keys) and tells_a_target(keys)


def _file_of(path: Path) -> Path:
    """The file to read; in the folder of a drill's run its recording, else its dump."""
    if not path.exists():
        raise HistoryError(f"{path}: no such file or folder; a server is given by its URL, http://...")
    if not path.is_dir():
        return path
    for name in (RECORDING, DUMP):
        if (path / name).is_file():
            return path / name
    raise HistoryError(f"{path}: is a folder without {RECORDING} or {DUMP}; name a file, or a drill's folder")


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE))
    except OSError as error:
        raise HistoryError(f"{path}: can't be read: {error.strerror}") from error


def _recorded(
    path: Path,
    start: float | None,
    end: float | None,
    step_seconds: float | None,
    names: Collection[str] | None,
) -> History:
    try:
        return recorded(path, start, end, step_seconds=step_seconds or 1.0, names=names)
    except sqlite3.Error as error:
        raise HistoryError(f"{path}: is damaged: {error}") from error


def _from_samples(  # noqa: PLR0913, PLR0917 - how, and all that can be asked for
    reader: Callable[..., Gathered],
    path: Path,
    start: float | None,
    end: float | None,
    step_seconds: float | None,
    names: Collection[str] | None,
    max_series: int,
    progress: Progress | None,
) -> History:
    """From a file of samples: what is asked for as it is there, or derived from what is there."""
    asked = frozenset(names or ())
    signals = _are_signals(asked)
    gathered = reader(
        path,
        None if start is None else start - HORIZON_SECONDS,
        end,
        wanted=lambda key: not asked or key.name in asked or (signals and is_raw(key.name)),
        max_series=max_series,
        progress=progress,
    )
    if _is_raw(gathered.keys) and (signals or not asked):
        return _only(derive(gathered, start, end, step_seconds, progress=progress), asked)
    if signals:
        gathered = gathered.only(lambda key: key.name in asked)
    elif not asked and any(key.name.startswith(PREFIX) for key in gathered.keys):
        gathered = gathered.only(lambda key: key.name.startswith(PREFIX))
    if not len(gathered):
        raise HistoryError(f"{path}: holds none of {_named(asked)}")
    return gathered.framed(start, end, step_seconds)


def _only(history: History, names: frozenset[str]) -> History:
    """Of a derived history the series of these names, all where none is named."""
    if not names:
        return history
    frame = history.frame
    places = [place for place, key in enumerate(frame.keys) if key.name in names]
    if not places:
        raise HistoryError(
            f"{history.source}: none of {_named(names)} can be derived from the series it holds"
        )
    return History(frame.take(places), history.source, history.derived & names, history.notes)


def _named(names: frozenset[str]) -> str:
    """Some of them, where there are more than a line takes."""
    shown_names = sorted(names)[:_MOST_NAMED]
    left = len(names) - len(shown_names)
    return ", ".join(shown_names) + (f" and {left} others" if left else "")


def _on_step(history: History, start: float | None, end: float | None, step_seconds: float | None) -> History:
    """A stored history on another step."""
    frame = history.frame
    if step_seconds is None or abs(step_seconds - frame.step_seconds) < 1e-9:  # noqa: PLR2004 - the same
        return history
    resampled = Gathered.of(history).framed(start, end, step_seconds)
    return History(resampled.frame, history.source, history.derived, resampled.notes)
