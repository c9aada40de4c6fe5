"""Keeps pieces that were read from a server, so that a reading that was interrupted goes on where it was.

One Parquet file a piece. Only pieces that can't change any more are given to it; whoever shares a server's URL but not
its tenant, its user or its token doesn't share a piece. A file that can't be read is as none, and so is a folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from analysis.frame import Key
from analysis.history.samples import Samples
from analysis.history.server_json import Answer
from analysis.history.server_settings import ServerSettings

MOST_BYTES = 4 << 30
"""What the pieces of all servers may take together; the oldest go first."""
_ABOUT = b"thrashold"
_SUFFIX = ".parquet"
_REFUSED = ".refused"
_REFUSED_SECONDS = 86_400.0
"""A server's limits may be other ones tomorrow."""
_FORMAT = "1"
_DIGITS = 32
_OURS = "?" * _DIGITS + "/*.*"
"""Files of ours in the folder of a server: whoever names a folder may have others beside them."""


def default_folder() -> Path:
    """Where caches belong, as the XDG base directories have it."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if given.startswith("/") else Path.home() / ".cache"
    return base / "thrashold" / "history"


class Cache:
    """Pieces of one server in a folder. Losing any of it costs time only, so that no failure here is an error."""

    def __init__(self, folder: Path, server: ServerSettings) -> None:
        self._root = folder
        self._folder = folder / _digest(_FORMAT, server.url, *_who(server))
        self._broken = False

    def get(self, selector: str, start: int, end: int) -> Answer | None:
        """What was kept of that piece, None where nothing was."""
        path = self._path(selector, start, end)
        try:
            with path.open("rb") as file:
                table = pq.read_table(file, use_threads=False)
            return _answer(table)
        except (OSError, ValueError, KeyError, pa.ArrowException):
            return None

    def has(self, selector: str, start: int, end: int) -> bool:
        """Whether something was kept of it, readable or not."""
        return self._path(selector, start, end).is_file()

    def put(self, selector: str, start: int, end: int, answer: Answer) -> None:
        """Keep it."""
        self._write(self._path(selector, start, end), lambda file: _write(answer, file))

    def refusal(self, selector: str, start: int, end: int) -> str | None:
        """In which words the server refused that piece within the last day, None where it didn't."""
        path = self._path(selector, start, end, _REFUSED)
        try:
            recent = time.time() - path.stat().st_mtime < _REFUSED_SECONDS
            return path.read_text(encoding="utf-8") if recent else None
        except (OSError, UnicodeError):
            return None

    def put_refusal(self, selector: str, start: int, end: int, words: str) -> None:
        """Keep that the server refuses that piece, whenever it is asked."""
        self._write(self._path(selector, start, end, _REFUSED), lambda file: file.write(words.encode()))

    def _write(self, path: Path, write: Callable[[BinaryIO], object]) -> None:
        """A file under its name only once it is whole."""
        if self._broken:
            return
        try:
            for folder in (self._root, self._folder):  # nobody else needs to see whose they are
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    write(file)
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError:
            self._broken = True  # a full disk, a folder that isn't ours: read on without

    def trim(self, most_bytes: int = MOST_BYTES) -> None:
        """Take away the files of all servers that were written longest ago, until the others fit."""
        found = []
        with contextlib.suppress(OSError):
            for path in self._root.glob(_OURS):
                with contextlib.suppress(OSError):
                    status = path.stat()
                    found.append((status.st_mtime_ns, status.st_size, path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= most_bytes:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size

    def _path(self, selector: str, start: int, end: int, suffix: str = _SUFFIX) -> Path:
        return self._folder / (_digest(selector, str(start), str(end)) + suffix)


def _who(server: ServerSettings) -> Iterator[str]:
    """Who asks, as far as a server may answer by it. What a file holds may be renewed: its path is who it is."""
    yield "" if server.basic_auth is None else server.basic_auth.username
    yield server.bearer_token or ""
    yield from (str(path or "") for path in (server.bearer_token_file, server.tls.cert_file))
    yield from (f"{name}: {value}" for name, value in sorted(server.headers.items()))


def _write(answer: Answer, file: BinaryIO) -> None:
    series = answer.series
    which = np.repeat(np.arange(len(series), dtype=np.int32), [len(each.times) for each in series])
    times = np.concatenate([each.times for each in series]) if series else np.empty(0)
    values = np.concatenate([each.values for each in series]) if series else np.empty(0)
    about = {
        "series": [[each.key.name, each.key.labels] for each in series],
        "histograms": answer.histograms,
        "disordered": answer.disordered,
    }
    table = pa.table(
        {"series": which, "milliseconds": np.round(times * 1000).astype(np.int64), "value": values}
    ).replace_schema_metadata({_ABOUT: json.dumps(about).encode()})
    pq.write_table(
        table,
        file,
        compression="zstd",
        use_dictionary=["series"],
        column_encoding={"milliseconds": "DELTA_BINARY_PACKED"},
    )


def _answer(table: pa.Table) -> Answer:
    about = json.loads((table.schema.metadata or {})[_ABOUT])
    keys = [Key(name, tuple((label, text) for label, text in labels)) for name, labels in about["series"]]
    which = table["series"].to_numpy()
    times = table["milliseconds"].to_numpy() / 1000
    values = table["value"].to_numpy()
    bounds = np.searchsorted(which, np.arange(len(keys) + 1))
    series = tuple(
        Samples(key, times[low:high], values[low:high])
        for key, low, high in zip(keys, bounds[:-1], bounds[1:], strict=True)
    )
    return Answer(series, histograms=about["histograms"], disordered=about["disordered"])


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:_DIGITS]
