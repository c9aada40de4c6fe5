"""Incidents in one SQLite file: what was acknowledged is there after ``kill -9``, once and no more than once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from alerts.alertmanager import REPEAT_HOURS
from analysis.desk.incident import NAME, Incident, KeptAlert, Work
from analysis.desk.webhook import Alert

_VERSION = 3
_SCHEMA = """
CREATE TABLE incident (
    number INTEGER PRIMARY KEY AUTOINCREMENT, cluster TEXT NOT NULL, opened REAL NOT NULL, ended REAL, closed REAL,
    note TEXT NOT NULL DEFAULT '', work TEXT NOT NULL, reported REAL
);
CREATE INDEX incident_cluster ON incident (cluster, number);
CREATE TABLE alert (
    fingerprint TEXT NOT NULL, starts REAL NOT NULL, ends REAL, labels TEXT NOT NULL, annotations TEXT NOT NULL,
    heard REAL NOT NULL, lapsed INTEGER NOT NULL DEFAULT 0,
    incident INTEGER NOT NULL REFERENCES incident (number) ON DELETE CASCADE, PRIMARY KEY (fingerprint, starts)
) WITHOUT ROWID;
CREATE INDEX alert_incident ON alert (incident);
CREATE TABLE event (
    number INTEGER PRIMARY KEY AUTOINCREMENT, incident INTEGER NOT NULL REFERENCES incident (number) ON DELETE CASCADE,
    at REAL NOT NULL, text TEXT NOT NULL
);
CREATE INDEX event_incident ON event (incident, number);
"""
_SINCE = (
    _SCHEMA,
    """
    ALTER TABLE alert ADD COLUMN heard REAL NOT NULL DEFAULT 0;
    UPDATE alert SET heard = strftime('%s', 'now')
    """,
    # no resolution was heard in the very instant that it names; a lapse was put there
    """
    ALTER TABLE alert ADD COLUMN lapsed INTEGER NOT NULL DEFAULT 0;
    UPDATE alert SET lapsed = 1 WHERE ends = max(heard, starts)
    """,
)
"""What a file of each earlier version lacks. None of it holds a semicolon but between statements."""
LAPSE_HOURS = 2 * REPEAT_HOURS + 2
"""Twice as long as the example lets Alertmanager take to tell again what fires, and a while."""
MOST_ALERTS = 1000
"""Of one incident that are read at once: nobody reads more."""
_LISTED_ALERTS = 100
MOST_EVENTS = 10_000
"""Of one incident that are kept: an alert that comes and goes each minute tells of itself for a week."""


class StoreError(Exception):
    """A file that can't be used: one line of which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an incident, for people to read. ``number`` rises over all incidents."""

    number: int
    incident: int
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What a notification did: incidents that it opened, those of which the last alert is over, all that it changed.

    The first two wait for a report from then on.
    """

    opened: tuple[int, ...]
    ended: tuple[int, ...]
    changed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GoingOn:
    """An incident that nobody has closed and some alert of which fires; as ``Incident`` has it.

    ``waited_for``: its report is being made or is to be. ``joined``: since when each rule has fired that fired only
    later than the first, by its first alert.
    """

    number: int
    opened: float
    reported: float | None
    waited_for: bool
    joined: tuple[float, ...] = ()


class Store:
    """The file at ``path``, made where there is none. One desk uses it. Raises StoreError."""

    def __init__(self, path: Path, cluster_labels: Sequence[str], join_seconds: float) -> None:
        self._labels = tuple(cluster_labels)
        self._join = join_seconds
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            # held until the end: a second desk on the same folder would tell everything twice
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("BEGIN IMMEDIATE")
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version < _VERSION:
                for change in _SINCE[:1] if version == 0 else _SINCE[version:]:
                    for statement in change.strip().split(";\n"):
                        self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {_VERSION}")
            self._connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            locked = "locked" in str(error)
            what = "another desk uses it: end that, or give another folder" if locked else f"{error}"
            raise StoreError(f"{path}: {what}") from error
        if version > _VERSION:
            raise StoreError(f"{path}: written by a newer thrashold (version {version}): use that one")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def take(self, alerts: Iterable[Alert], now: float) -> Taken:
        """Keep what a notification says, at once or not at all. What was said before changes nothing."""
        opened: list[int] = []
        touched: set[int] = set()
        with self._transaction():
            for alert in alerts:
                number = self._keep(alert, now, opened)
                if number is not None:
                    touched.add(number)
            ended = [number for number in sorted(touched) if self._ended(number, now)]
            for number in (*opened, *ended):  # here, so that no kill comes between
                self._work(number, Work.WAITING)
        return Taken(tuple(opened), tuple(ended), tuple(sorted(touched)))

    def _keep(self, alert: Alert, now: float, opened: list[int]) -> int | None:
        """One alert; gives the incident that it changes."""
        row = self._connection.execute(
            "SELECT incident, ends, lapsed FROM alert WHERE fingerprint = ? AND starts = ?",
            (alert.fingerprint, alert.starts),
        ).fetchone()
        if row is not None:
            number, ends, lapsed = row
            if ends is not None and not lapsed:
                return None
            self._connection.execute(
                "UPDATE alert SET ends = ?, heard = ?, lapsed = 0 WHERE fingerprint = ? AND starts = ?",
                (alert.ends, now, alert.fingerprint, alert.starts),
            )
            if alert.ends is not None:
                self._tell(number, now, f"{_said(alert)} is over")
                return int(number)
            if not lapsed:
                return None
            self._connection.execute("UPDATE incident SET ended = NULL WHERE number = ?", (number,))
            self._tell(number, now, f"{_said(alert)} fires still")
            return int(number)
        if alert.ends is not None:
            return None  # of an alert that was never told: nothing to open an incident for
        number = self._incident_of(alert, now, opened)
        self._connection.execute(
            "INSERT INTO alert (fingerprint, starts, ends, labels, annotations, incident, heard)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                alert.fingerprint,
                alert.starts,
                None,
                json.dumps(alert.labels, sort_keys=True),
                json.dumps(alert.annotations, sort_keys=True),
                number,
                now,
            ),
        )
        self._connection.execute(
            "UPDATE incident SET ended = NULL, opened = min(opened, ?) WHERE number = ?",
            (min(alert.starts, now), number),
        )
        self._tell(number, now, f"{_said(alert)} fires")
        return number

    def _incident_of(self, alert: Alert, now: float, opened: list[int]) -> int:
        cluster = json.dumps({name: alert.labels.get(name, "") for name in self._labels}, sort_keys=True)
        row = self._connection.execute(
            "SELECT number FROM incident WHERE cluster = ? AND closed IS NULL AND (ended IS NULL OR ended > ?)"
            " ORDER BY number DESC LIMIT 1",
            (cluster, now - self._join),
        ).fetchone()
        if row is not None:
            return int(row[0])
        cursor = self._connection.execute(
            "INSERT INTO incident (cluster, opened, work) VALUES (?, ?, ?)",
            (cluster, min(alert.starts, now), Work.NONE.value),
        )
        number = int(cursor.lastrowid or 0)
        opened.append(number)
        return number

    def _ended(self, number: int, now: float) -> bool:
        """Whether the last of its alerts is over just now."""
        (firing, last) = self._connection.execute(
            "SELECT count(*) - count(ends), max(ends) FROM alert WHERE incident = ?", (number,)
        ).fetchone()
        if firing:
            return False
        self._connection.execute("UPDATE incident SET ended = ? WHERE number = ?", (last, number))
        self._tell(number, now, "all of its alerts are over")
        return True

    def set_work(self, number: int, work: Work, reported: float | None = None) -> None:
        """How far its report is; ``reported``: up to when the new one looks."""
        with self._transaction():
            self._work(number, work, reported)

    def _work(self, number: int, work: Work, reported: float | None = None) -> None:
        self._connection.execute(
            "UPDATE incident SET work = ?, reported = coalesce(?, reported) WHERE number = ?",
            (work.value, reported, number),
        )

    def tell(self, number: int, at: float, text: str) -> None:
        """Add an event."""
        with self._transaction():
            self._tell(number, at, text)

    def close_incident(self, number: int, at: float, note: str) -> bool:
        """By a person, with what they have to say; gives whether it was there and open."""
        with self._transaction():
            done = self._connection.execute(
                "UPDATE incident SET closed = ?, note = ? WHERE number = ? AND closed IS NULL",
                (at, note, number),
            ).rowcount
            if done:
                self._tell(number, at, "closed" + (f": {note}" if note else ""))
        return bool(done)

    def lapse(self, before: float, now: float) -> tuple[int, ...]:
        """Take alerts as over that were last told before then; gives the incidents of which it was the last one.

        Alertmanager repeats what fires. What it doesn't repeat is over without a word: it was restarted meanwhile, or
        its receiver is not told of ends. That is a guess, and what Alertmanager says later goes before it.
        """
        with self._transaction():
            silent = self._connection.execute(
                "UPDATE alert SET ends = max(heard, starts), lapsed = 1 WHERE ends IS NULL AND heard < ?"
                " RETURNING incident",
                (before,),
            ).fetchall()
            numbers = sorted({int(number) for (number,) in silent})
            for number in numbers:
                self._tell(number, now, "alerts that were not told again are taken as over")
            ended = [number for number in numbers if self._ended(number, now)]
            for number in ended:
                self._work(number, Work.WAITING)
        return tuple(ended)

    def forget(self, before: float) -> tuple[int, ...]:
        """Let go of incidents that were over, or closed, before then; gives their numbers.

        Others keep their newest events.
        """
        with self._transaction():
            gone = self._connection.execute(
                "DELETE FROM incident WHERE coalesce(ended, closed) IS NOT NULL"
                " AND max(coalesce(ended, 0), coalesce(closed, 0)) < ? RETURNING number",
                (before,),
            ).fetchall()
            full = self._connection.execute(
                "SELECT incident FROM event GROUP BY incident HAVING count(*) > ?", (MOST_EVENTS,)
            ).fetchall()
            for (number,) in full:
                self._connection.execute(
                    "DELETE FROM event WHERE incident = ? AND number <= (SELECT number FROM event WHERE incident = ?"
                    " ORDER BY number DESC LIMIT 1 OFFSET ?)",
                    (number, number, MOST_EVENTS),
                )
        return tuple(int(number) for (number,) in gone)

    def incidents(self, most: int = 200, before: int | None = None) -> tuple[Incident, ...]:
        """The newest first, each with its first hundred alerts; ``before``: only those with lower numbers."""
        rows = self._connection.execute(
            "SELECT number FROM incident WHERE number < ? ORDER BY number DESC LIMIT ?",
            (before or 2**62, most),
        ).fetchall()
        found = (self.incident(int(number), _LISTED_ALERTS) for (number,) in rows)
        return tuple(each for each in found if each is not None)

    def incident(self, number: int, most_alerts: int = MOST_ALERTS) -> Incident | None:
        """With the first of its alerts, and how many more there are; None: there is none of that number."""
        row = self._connection.execute(
            "SELECT number, cluster, opened, ended, closed, note, work, reported FROM incident WHERE number = ?",
            (number,),
        ).fetchone()
        if row is None:
            return None
        alerts = self._connection.execute(
            "SELECT fingerprint, starts, ends, labels, annotations FROM alert WHERE incident = ?"
            " ORDER BY starts, fingerprint LIMIT ?",
            (number, most_alerts),
        )
        kept = tuple(
            KeptAlert(fingerprint, starts, ends, json.loads(labels), json.loads(annotations))
            for fingerprint, starts, ends, labels, annotations in alerts
        )
        _, cluster, opened, ended, closed, note, work, reported = row
        (alerts_total,) = self._connection.execute(
            "SELECT count(*) FROM alert WHERE incident = ?", (number,)
        ).fetchone()
        return Incident(
            number,
            json.loads(cluster),
            opened,
            ended,
            closed,
            note,
            Work(work),
            reported,
            kept,
            alerts_total - len(kept),
        )

    def engines(self, number: int) -> tuple[str, ...]:
        """That the alerts of an incident name, all of them."""
        rows = self._connection.execute(
            "SELECT DISTINCT json_extract(labels, '$.engine') AS engine FROM alert WHERE incident = ? AND engine <> ''"
            " ORDER BY engine",
            (number,),
        )
        return tuple(str(engine) for (engine,) in rows)

    def unfinished(self) -> tuple[int, ...]:
        """Incidents whose report was asked for and isn't there: what a restart goes on with."""
        rows = self._connection.execute(
            "SELECT number FROM incident WHERE work IN (?, ?) ORDER BY number",
            (Work.WAITING.value, Work.RUNNING.value),
        )
        return tuple(int(number) for (number,) in rows)

    def going_on(self) -> tuple[GoingOn, ...]:
        """Incidents that go on and whose report was asked for."""
        rows = self._connection.execute(
            "SELECT number, opened, reported, work FROM incident WHERE ended IS NULL AND closed IS NULL AND work != ?"
            " ORDER BY number",
            (Work.NONE.value,),
        )
        return tuple(
            GoingOn(
                number, opened, reported, work in {Work.WAITING, Work.RUNNING}, self._joined(number, opened)
            )
            for number, opened, reported, work in rows
        )

    def _joined(self, number: int, opened: float) -> tuple[float, ...]:
        rows = self._connection.execute(
            "SELECT min(starts) AS since FROM alert WHERE incident = ? GROUP BY json_extract(labels, ?)"
            " HAVING since > ? ORDER BY since",
            (number, f"$.{NAME}", opened),
        )
        return tuple(float(since) for (since,) in rows)

    def events(self, incident: int, after: int = 0, most: int = 1000) -> tuple[Event, ...]:
        """Of one incident, those with higher numbers than ``after``, in order."""
        rows = self._connection.execute(
            "SELECT number, incident, at, text FROM event WHERE incident = ? AND number > ? ORDER BY number LIMIT ?",
            (incident, after, most),
        )
        return tuple(Event(*row) for row in rows)

    def latest(self, incident: int, most: int) -> tuple[Event, ...]:
        """The newest events of one incident, in order."""
        rows = self._connection.execute(
            "SELECT number, incident, at, text FROM event WHERE incident = ? ORDER BY number DESC LIMIT ?",
            (incident, most),
        )
        return tuple(Event(*row) for row in rows)[::-1]

    def _tell(self, number: int, at: float, text: str) -> None:
        self._connection.execute(
            "INSERT INTO event (incident, at, text) VALUES (?, ?, ?)", (number, at, text)
        )

    def _transaction(self) -> _Transaction:
        return _Transaction(self._connection)


class _Transaction:
    """All of it or nothing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                self._connection.execute("COMMIT")
            except sqlite3.Error:  # a full disk: without this nothing could be begun any more
                self._rollback()
                raise
        else:
            self._rollback()

    def _rollback(self) -> None:
        if self._connection.in_transaction:  # SQLite may have done so by itself
            self._connection.execute("ROLLBACK")


def _said(alert: Alert) -> str:
    subject = next(
        (alert.labels[name] for name in ("engine", "gateway", "uuid", "source") if alert.labels.get(name)), ""
    )
    return " ".join(each for each in (alert.labels.get("alertname", "an alert"), subject) if each)
