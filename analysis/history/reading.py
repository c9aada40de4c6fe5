"""The one way to history: whatever a source is, it is found out by what it holds and read as that."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection
from pathlib import Path

from analysis.history import parquet
from analysis.history.derived import derive
from analysis.history.history import History, HistoryError
from analysis.history.openmetrics import read_openmetrics
from analysis.history.recorded import recorded
from analysis.history.samples import MOST_SERIES, Gathered, Progress
from analysis.history.targets import is_raw, tells_a_target
from exporter.recorder_times import instant
from exporter.signal import PREFIX
from exporter.window import HORIZON_SECONDS

_SQLITE, _PARQUET = b"SQLite format 3\0", b"PAR1"
RECORDING, DUMP = "recording.db", "metrics.om"
"""What a drill's run leaves in its folder."""
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_BACK = re.compile(r"-\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def read(  # noqa: PLR0913 - what, when, how, and a limit
    source: str,
    start: float | None = None,
    end: float | None = None,
    *,
    step_seconds: float | None = None,
    names: Collection[str] | None = None,
    max_series: int = MOST_SERIES,
    progress: Progress | None = None,
) -> History:
    """Read what ``source`` holds from ``start`` to before ``end`` (seconds since the epoch; None: all there is).

    ``source``: the URL of a Prometheus-compatible server, a recorder's file, a dump with timestamps, Parquet, or the
    folder of a drill's run. ``step_seconds``: of the grid, else that of the source. ``names``: series as they are
    scraped, ``thrashold_kv_usage_ratio`` for one; None: all. Where series of engines, gateways and dcgm-exporter are
    held and no sidecar's, signals are derived from them; raw series are then read by their names alone. Raises
    HistoryError.
    """
    if _URL.match(source):
        return _from_server(source, start, end, step_seconds, names, max_series, progress)
    path = _file_of(Path(source))
    begins = _beginning(path)
    if begins.startswith(_SQLITE) or (not begins and path.suffix == ".db"):
        return _recorded(path, start, end, step_seconds, names)
    if begins.startswith(_PARQUET) and parquet.is_stored(path):
        return _on_step(parquet.load(path, start, end, names=names), start, end, step_seconds)
    whole = parquet.read_long if begins.startswith(_PARQUET) else read_openmetrics
    return _from_samples(whole, path, start, end, step_seconds, names, max_series, progress)


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
        raise ValueError(f"{error}, nor a time before the end such as -2h") from None


def _from_server(  # noqa: PLR0913, PLR0917 - all that can be asked for
    url: str,
    start: float | None,
    end: float | None,
    step_seconds: float | None,
    names: Collection[str] | None,
    max_series: int,
    progress: Progress | None,
) -> History:
    if not url.lower().startswith(("http://", "https://")):
        raise HistoryError(f"{url}: only http and https are read; files are named by their path")
    try:
        from analysis.history import server  # type: ignore[attr-defined,unused-ignore] # noqa: PLC0415 - HTTP only here
    except ImportError as error:
        raise HistoryError(f"{url}: servers can't be read by this installation ({error})") from error
    found: History = server.read_server(
        url, start, end, step_seconds=step_seconds, names=names, max_series=max_series, progress=progress
    )
    return found


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
    signals = bool(asked) and all(name.startswith(PREFIX) for name in asked)
    gathered = reader(
        path,
        None if start is None else start - HORIZON_SECONDS,
        end,
        wanted=lambda key: not asked or key.name in asked or (signals and is_raw(key.name)),
        max_series=max_series,
        progress=progress,
    )
    ours = any(key.name.startswith(PREFIX) for key in gathered.keys)
    if not ours and (signals or not asked) and tells_a_target(gathered.keys):
        return _only(derive(gathered, start, end, step_seconds), asked)
    if signals:
        gathered = gathered.only(lambda key: key.name in asked)
    if not len(gathered):
        raise HistoryError(f"{path}: holds none of {', '.join(sorted(asked))}")
    return gathered.framed(start, end, step_seconds)


def _only(history: History, names: frozenset[str]) -> History:
    """Of a derived history the series of these names, all where none is named."""
    if not names:
        return history
    frame = history.frame
    places = [place for place, key in enumerate(frame.keys) if key.name in names]
    if not places:
        raise HistoryError(
            f"{history.source}: none of {', '.join(sorted(names))} can be derived from the series it holds"
        )
    return History(frame.take(places), history.source, history.derived & names, history.notes)


def _on_step(history: History, start: float | None, end: float | None, step_seconds: float | None) -> History:
    """A stored history on another step."""
    frame = history.frame
    if step_seconds is None or abs(step_seconds - frame.step_seconds) < 1e-9:  # noqa: PLR2004 - the same
        return history
    gathered = Gathered(history.source, max(1, len(frame.keys)))
    for key, values in frame.columns():
        known = values == values  # noqa: PLR0124 - not NaN
        gathered.add_series(key, frame.times[known], values[known])
    resampled = gathered.framed(start, end, step_seconds)
    return History(resampled.frame, history.source, history.derived, (*history.notes, *resampled.notes))
