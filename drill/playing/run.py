"""A scenario from beginning to end, with all that is kept of it in one folder.

``recording.db`` (the flight recorder's form, each second), ``metrics.om`` (the same as OpenMetrics; of a full run
every 15 s, as a Prometheus scrapes, for it would be hundreds of megabytes), ``truth.json``, ``summary.json``, and,
where it is asked for, ``raw.om``. Of a run that is broken off there is the recording alone: the others come whole.
"""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drill.playing.counted import Counted, as_json, count
from drill.playing.files import whole, write_json
from drill.playing.key_metrics import Instant, KeyMetrics, Phases, at_instant, floors_of, of_phases, phases_of
from drill.playing.play import Moment, Play
from drill.playing.raw import RawLog, scrapes
from drill.playing.truth import TruthLog
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting
from exporter.recorder_export import export_openmetrics
from exporter.recorder_reader import Recording
from exporter.recorder_writer import RecordingWriter, Retention

RECORDING, METRICS, TRUTH, SUMMARY = "recording.db", "metrics.om", "truth.json", "summary.json"
RAW, _SPOOL = "raw.om", "raw.spool"
_SCRAPED = "scraped.db"
_SCRAPE_SECONDS = 15
_EVERYTHING = Retention(keep_seconds=float(2**31), max_bytes=2**40)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run came to. ``floors``: by phase, fields of ``metrics`` whose figure is a lower bound."""

    scene: Scene
    phases: Phases
    metrics: dict[str, KeyMetrics]
    floors: dict[str, frozenset[str]]
    counted: dict[str, Counted]
    truth: dict[str, Any]


def run(  # noqa: PLR0913 -- what, where to, and who is told
    scenario: Scenario,
    setting: Setting,
    out: Path,
    *,
    others: Sequence[Scenario] = (),
    told: Callable[[Moment], None] = lambda _: None,
    raw_every: int | None = None,
) -> Ran:
    """Run it and write everything into ``out``, which is made; what an earlier run left there is replaced.

    ``told`` is called with every moment. ``raw_every``: seconds between two scrapes of the pages themselves, which go
    into ``raw.om``; None: there is none. Raises SettingError, EngineConfigError and OSError.
    """
    scene = scenario.scene(setting, others)
    out.mkdir(parents=True, exist_ok=True)
    for name in (METRICS, TRUTH, SUMMARY, RAW):
        (out / name).unlink(missing_ok=True)
    play, truth = Play(scene, setting.seed), TruthLog(scene)
    history: list[Instant] = []
    every = setting.choose(1, _SCRAPE_SECONDS)
    exported = out / (RECORDING if every == 1 else _SCRAPED)
    with contextlib.ExitStack() as left:
        if every > 1:
            left.callback(_remove, exported)
        with contextlib.ExitStack() as stack:
            writer = stack.enter_context(_writing(out / RECORDING))
            scraped = writer if every == 1 else stack.enter_context(_writing(exported))
            raw = None if raw_every is None else stack.enter_context(RawLog(out / _SPOOL))
            for moment in play.moments():
                writer.write(moment.snapshot)
                if scraped is not writer and moment.second.seconds % every == 0:
                    scraped.write(moment.snapshot)
                truth.see(moment.second)
                history.append(
                    at_instant(moment.snapshot, moment.second.seconds, moment.second.clients.in_flight)
                )
                if raw is not None and raw_every is not None and moment.second.seconds % raw_every == 0:
                    raw.see(scene.epoch + moment.second.seconds, scrapes(play.watch, moment.second))
                told(moment)
            if raw is not None:
                with whole(out / RAW) as file:
                    raw.write(file)
        with Recording(exported) as recording, whole(out / METRICS) as file:
            export_openmetrics(recording, file)
    phases = phases_of(scene)
    true = truth.told(scenario.name, [each.name for each in others])
    ran = Ran(
        scene,
        phases,
        of_phases(history, phases),
        floors_of(history, phases),
        count(scene, true, phases),
        true,
    )
    write_json(out / TRUTH, ran.truth)
    write_json(out / SUMMARY, as_json(ran.metrics, ran.counted), indent=2)
    return ran


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[RecordingWriter]:
    _remove(path)
    try:
        with contextlib.closing(RecordingWriter(path, _EVERYTHING)) as writer:
            yield writer
    except sqlite3.Error as error:
        raise OSError(errno.EIO, str(error), str(path)) from error


def _remove(recording: Path) -> None:
    for suffix in ("", "-wal", "-shm", ".lock"):
        recording.with_name(recording.name + suffix).unlink(missing_ok=True)
