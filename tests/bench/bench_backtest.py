"""What a backtest costs: 40 rules over 30 days of a worker, a sweep of 1,000 settings, and rules over a real server.

A worker is one engine on eight GPUs, looked at every 15 s; its signals wander, with failed scrapes and bursts, so that
conditions come and go thousands of times. Over a server the time is set beside that of the very same queries, asked
with the same connection and their answers thrown away.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from alerts.alert import Alert, Expression
from alerts.catalogue import ALERTS
from alerts.conditions import readings
from alerts.pack_settings import PackSettings
from alerts.thresholds import THRESHOLDS
from analysis.backtest import server
from analysis.backtest.asking import Server
from analysis.backtest.frames import backtest, rule_of, subjects_of
from analysis.backtest.outcome import Moment, notices
from analysis.backtest.rule_file import Asked, asked_of
from analysis.backtest.subjects import series_name
from analysis.backtest.sweep import FOR, axis, sweep
from analysis.frame import Frame, Key, Values, grid
from analysis.history.history import History
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.signal import Scope
from tests.bench import report
from tests.bench.report import Figure
from tests.support.prometheus import openmetrics, serving

RULES, DAYS, STEP, GPUS = 40, 30, 15.0, 8
SERVER_DAYS, ROUNDS = 2, 5
START = 1_790_000_010.0
FRAME_BAR, SWEEP_BAR, SERVER_BAR = 5.0, 10.0, 1.5
_TREES = [alert for alert in ALERTS.values() if not isinstance(alert.condition, Expression)]


def rules() -> list[Alert]:
    """Forty: those that are shipped, and some of them under other names."""
    every = itertools.cycle(enumerate(_TREES))
    found: list[Alert] = []
    while len(found) < RULES:
        _, alert = next(every)
        again = len(found) // len(_TREES)
        found.append(replace(alert, name=alert.name + "Again" * again) if again else alert)
    return found


def worker(days: float) -> History:
    """All that the rules look at, of one worker."""
    times = grid(START, START + days * 86_400, STEP)
    chance = np.random.default_rng(15)
    columns: dict[Key, Values] = {}
    for alert in _TREES:
        assert not isinstance(alert.condition, Expression)
        for reading in readings(alert.condition):
            for labels in _subjects(reading.signal.scope):
                key = Key.of(series_name(reading), {**labels, **dict(reading.where)})
                columns.setdefault(key, _wandering(len(times), chance))
    for gpu in range(GPUS):
        key = Key.of(ENGINE_GPU_INFO.full_name, {"engine": "engine-0", "uuid": f"GPU-{gpu}"})
        columns[key] = np.ones(len(times))
    values = np.column_stack(list(columns.values()))
    return History(Frame(times, STEP, tuple(columns), values), "made up")


def _subjects(scope: Scope) -> list[dict[str, str]]:
    if scope is Scope.GPU:
        return [{"uuid": f"GPU-{gpu}"} for gpu in range(GPUS)]
    known = {"engine": "engine-0", "rank": "0", "model_name": "m", "gateway": "gateway", "source": "engine-0"}
    return [{label: known[label] for label in scope.labels}]


def _wandering(count: int, chance: np.random.Generator) -> Values:
    """From 0 to 2, so that it crosses most lines: calm for hours, then bursts of minutes; a scrape in fifty fails."""
    hours = np.repeat(chance.uniform(0.0, 0.8, count // 240 + 1), 240)[:count]
    minutes = np.repeat(chance.uniform(0.5, 2.0, count // 12 + 1), 12)[:count]
    busy = np.repeat(chance.random(count // 240 + 1) < 0.2, 240)[:count]
    made = np.where(busy, minutes, hours)
    made[chance.random(count) < 0.02] = np.nan
    return made


def main() -> None:
    """All three."""
    settings = PackSettings()
    history = worker(DAYS)
    report.line(f"  {len(history.frame.keys)} series x {len(history.frame)} instants")
    began = time.process_time()
    tested = backtest(history, rules(), settings)
    told = notices(tested)
    spent = time.process_time() - began
    fired = sum(len(outcome.fired) for outcome in tested.outcomes)
    report.line(f"  {len(tested.outcomes)} rules fired {fired} times, {len(told)} notices")
    report.record(Figure(f"{RULES} rules over {DAYS} days of a worker on frames, CPU", spent, "s", FRAME_BAR))
    _sweep(history, settings)
    if shutil.which("prometheus") is None:
        report.loud("no prometheus here: nothing is asked of a server")
        return
    _server(settings)


def _sweep(history: History, settings: PackSettings) -> None:
    alert = ALERTS["KvCachePressure"]
    subjects = subjects_of(history, settings)
    axes = (axis("kv_usage_full_ratio", 0.5, 1.0, 40), axis(FOR, 0, 600, 25))
    easy = replace(
        settings, thresholds=replace(THRESHOLDS, waiting_sequences=0.1, preemptions_per_second=0.1)
    )
    began = time.process_time()
    swept = sweep(alert, axes, subjects, easy, moment=Moment(START + 15 * 86_400))
    spent = time.process_time() - began
    most = max(point.measures.notices for point in swept.points)
    report.line(
        f"  {len(swept.points)} settings, of which one makes {most} notices, {len(swept.best)} are best"
    )
    report.record(Figure("a sweep of 1,000 settings over 30 days, CPU", spent, "s", SWEEP_BAR))


def _server(settings: PackSettings) -> None:
    """Both ways in turn, and of each the quickest, since a busy machine slows now one and now the other."""
    history = worker(SERVER_DAYS)
    frame = history.frame
    data = {
        (key.name, key.labels): {
            int(at): float(value)
            for at, value in zip(frame.times, column, strict=True)
            if not np.isnan(value)
        }
        for key, column in frame.columns()
    }
    asked = [_asked(alert, settings) for alert in rules()]
    with tempfile.TemporaryDirectory() as name:
        dump = Path(name) / "worker.om"
        dump.write_text(openmetrics(data))
        with serving(dump, Path(name)) as prometheus, Server(prometheus.url) as there:
            bare, whole = [], []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                _bare(there, asked, frame)
                between = time.perf_counter()
                server.backtest(there, asked, frame.start, frame.end)
                whole.append(time.perf_counter() - between)
                bare.append(between - began)
    report.line(f"  {RULES} rules over {SERVER_DAYS} days of a server: {min(whole):.2f} s at the quickest")
    report.record(
        Figure(
            f"{RULES} rules over {SERVER_DAYS} days, over what the queries take",
            min(whole) / min(bare),
            "",
            SERVER_BAR,
        )
    )


def _asked(alert: Alert, settings: PackSettings) -> Asked:
    return asked_of(rule_of(alert, settings), alert.promql(replace(settings.rendering, recorded=False)), ())


def _bare(there: Server, asked: list[Asked], frame: Frame) -> None:
    for each in asked:
        for chunk in server.chunks(grid(frame.start, frame.end, STEP)):
            there.raw_range(each.expression, chunk[0], chunk[-1], STEP)


if __name__ == "__main__":
    report.standalone(main)
