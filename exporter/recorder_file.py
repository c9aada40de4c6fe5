"""The file of a recording: its schema, how it is opened, and what keeps it readable by others.

SQLite in WAL mode. ``tick`` holds the newest minute, a row a cycle; ``chunk`` the minutes before, a
row each; ``series`` numbers what their bytes speak of, and ``signal`` says what that is, so that a
recording explains itself. Times are milliseconds since the epoch. ``user_version`` is the version of
the schema.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

APPLICATION_ID = 0x74687268
"""``thrh``: tells a recording from any other SQLite file."""
WAL_PAGES = 256
PAGE_BYTES = 4096
WAL_BYTES = WAL_PAGES * PAGE_BYTES
"""What the file beside the recording (``-wal``) grows to before it is copied into it."""
BUSY_SECONDS = 1.0

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE signal (name TEXT PRIMARY KEY, kind TEXT NOT NULL, help TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE series (
            id INTEGER PRIMARY KEY, signal TEXT NOT NULL, labels TEXT NOT NULL, seen INTEGER NOT NULL,
            UNIQUE (signal, labels)
        )""",
        "CREATE TABLE tick (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, data BLOB NOT NULL)",
        """CREATE TABLE chunk (
            id INTEGER PRIMARY KEY, start INTEGER NOT NULL, last INTEGER NOT NULL, ticks INTEGER NOT NULL,
            data BLOB NOT NULL
        )""",
        "CREATE INDEX chunk_start ON chunk (start)",
    ),
)
"""The statements that lead from version n to n + 1, from an empty file on."""


class RecordingError(Exception):
    """A recording that can't be used, in one line that names the file."""


def open_for_writing(path: Path, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> sqlite3.Connection:
    """Open the recording at ``path``, made where there is none, brought to the newest schema.

    The connection commits each statement by itself; see ``transaction``. It may be used by a thread
    other than the one that opened it. Raises RecordingError for a file that is not ours or that a
    newer version wrote, OSError and sqlite3.Error where the file system can't or won't.
    """
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        if _is_empty(connection, path):
            # both only before the first table; pages that retention frees can go back to the file system
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        check_version(connection, path, newest=len(migrations))
        # WAL: readers never wait for us, nor we for them. NORMAL: a commit is in the kernel's hands at
        # once and survives our death; a power cut may cost what came after the last checkpoint.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        _migrate(connection, migrations)
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open the recording at ``path``, also while it is written. Raises RecordingError."""
    if not path.is_file():
        raise RecordingError(f"{path}: no such file")
    uri = path.absolute().as_uri()
    # First as one who might write: only such a reader clears away what it needed beside the file. In
    # a folder that can't be written, a file in WAL mode is readable only when told that nobody writes
    # it, which holds where nobody left anything beside it.
    ways = ["?mode=rw", "?mode=ro"]
    if not Path(f"{path}-wal").exists():
        ways.append("?mode=ro&immutable=1")
    for place, way in enumerate(ways):
        connection = sqlite3.connect(uri + way, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            connection.execute("PRAGMA query_only = ON")
            _check_readable(check_version(connection, path, newest=len(MIGRATIONS)), path)
        except sqlite3.Error as error:
            connection.close()
            if place + 1 == len(ways):
                raise RecordingError(f"{path}: can't be read: {error}") from error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise AssertionError("the last way returns or raises")


def _check_readable(version: int, path: Path) -> None:
    if version == 0:
        raise RecordingError(f"{path}: nothing was recorded yet")
    if version < len(MIGRATIONS):
        raise RecordingError(
            f"{path}: was written by an older version; the sidecar brings it up to date when it is given"
            " as its --recorder"
        )


def check_version(connection: sqlite3.Connection, path: Path, *, newest: int) -> int:
    """The version of the schema, 0 for an empty file.

    Raises RecordingError for what is no recording or newer than ``newest``.
    """
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        application = int(connection.execute("PRAGMA application_id").fetchone()[0])
        empty = _is_empty(connection, path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:  # SQLITE_NOTADB, SQLITE_CORRUPT
        raise RecordingError(f"{path}: is no recording: {error}") from error
    if application != APPLICATION_ID and not (version == 0 and empty):
        raise RecordingError(f"{path}: is no recording but some other SQLite file")
    if version > newest:
        raise RecordingError(
            f"{path}: was written by a newer version (schema {version}; this one knows up to {newest});"
            " use that version or another file"
        )
    return version


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing of what is done within."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # SQLite has rolled back by itself after a full disk
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def size_in_bytes(path: Path) -> int:
    """What the recording takes on disk, with what stands beside it while it is written."""
    total = 0
    for name in (str(path), f"{path}-wal"):
        with contextlib.suppress(FileNotFoundError):
            total += os.stat(name).st_size  # noqa: PTH116 -- each tick, and Path costs as much as the call
    return total


def _is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    try:
        return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise RecordingError(f"{path}: is no recording: {error}") from error


def _migrate(connection: sqlite3.Connection, migrations: Sequence[Sequence[str]]) -> None:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version == len(migrations):
        return
    with transaction(connection):
        for statements in migrations[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
