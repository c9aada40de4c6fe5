"""A desk with an incident of the drill's, as if it were happening now; and its pictures.

``python -m tests.support.desk_incident docs/img`` draws the desk's list and an incident there, and the report of the
drill's own recording, as `thrashold analyze` writes it.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from analysis.analyze import PAGE, analyze, write
from tests.evaluation.playing import Case, play
from tests.exporter.running import running
from tests.support.chromium import browser
from tests.support.desk import RunningDesk, alert, message, running_desk

ALERT = "KvSequencesSwapped"
_WIDTH = 1280
_MOST_SECONDS = 400.0


def moved(recording: Path, to: Path, end: float) -> None:
    """A copy of a recording in which the last tick was at ``end``, to the minute before."""
    shutil.copy(recording, to)
    with contextlib.closing(sqlite3.connect(to)) as connection, connection:
        (last,) = connection.execute(
            "SELECT max(coalesce((SELECT max(last) FROM chunk), 0), coalesce((SELECT max(at) FROM tick), 0))"
        ).fetchone()
        by = int(end * 1000 - last) // 60_000 * 60_000
        connection.execute("UPDATE chunk SET start = start + ?1, last = last + ?1", (by,))
        connection.execute("UPDATE tick SET at = at + ?", (by,))
        connection.execute("UPDATE series SET seen = seen + ?", (by,))


@contextlib.contextmanager
def desk_of_the_incident(folder: Path) -> Iterator[RunningDesk]:
    """One whose worker has recorded it; nobody has told it of anything yet."""
    moved(play(Case("incident")).recording, folder / "flight.db", time.time())
    # the sidecar goes on, of an engine that is gone
    with running("--engine", "http://127.0.0.1:1", "--recorder", str(folder / "flight.db")) as sidecar:
        config = folder / "desk.yaml"
        config.write_text(f"workers: ['{sidecar.url.rstrip('/')}']\n", encoding="utf-8")
        with running_desk(folder / "data", ("--config", str(config))) as desk:
            yield desk


def tell(
    desk: RunningDesk, starts: float, *engines: str, ends: float | None = None, cluster: str = "prod"
) -> None:
    """What Alertmanager sends of these engines."""
    alerts = [
        alert(ALERT, f"{zlib.crc32((cluster + name).encode()):x}", starts, ends, cluster=cluster, engine=name)
        for name in engines
    ]
    with desk.client() as client:
        client.post("/alerts", content=message(*alerts)).raise_for_status()


def report_is_there(desk: RunningDesk, number: int = 1) -> None:
    """Wait for it. Raises RuntimeError: it isn't made."""
    until = time.monotonic() + _MOST_SECONDS
    with desk.client() as client:
        while (told := client.get(f"/api/v1/incidents/{number}").json())["report"] != "done":
            if told["report"] == "failed" or time.monotonic() > until:
                raise RuntimeError(f"there is no report: {told['events']}")
            time.sleep(0.2)


def _drawn_report(where: Path) -> None:
    with tempfile.TemporaryDirectory() as name, browser() as shown:
        shutil.copy(play(Case("incident")).recording, Path(name) / "flight.db")
        with contextlib.chdir(name):  # a report names its source as it was called
            write(Path(), *analyze("flight.db"))
        shown.visit((Path(name) / PAGE).as_uri(), _WIDTH, 1100)
        shown.shot(where / "report.png")


def main() -> None:
    """Draws."""
    where = Path(sys.argv[1])
    _drawn_report(where)
    with tempfile.TemporaryDirectory() as name, desk_of_the_incident(Path(name)) as desk:
        now = time.time()
        tell(desk, now - 1800, "engine-7", cluster="lab")
        tell(desk, now - 1800, "engine-7", ends=now - 900, cluster="lab")
        with desk.client() as client:
            client.post("/api/v1/incidents/1/close", params={"note": "the load test"}).raise_for_status()
        tell(desk, now - 600, "engine-0", "engine-1")
        report_is_there(desk, 2)
        with browser() as shown:
            for picture, path, height in (("desk-list", "/", 260), ("desk-incident", "/incidents/2", 1100)):
                shown.visit(desk.url + path, _WIDTH, height)
                time.sleep(2.0)  # the report is a page of its own in a frame, which draws when it likes
                shown.shot(where / f"{picture}.png")


if __name__ == "__main__":
    main()
