"""What the pack costs a Prometheus that watches 1,000 workers: alerts and recording rules, on one core.

Each worker is one engine on eight GPUs: pages that the sidecar made of a recording, under other names, scraped each
15 s. A hundredth of them is overloaded. Prometheus is told, by remote write, only of the series that the pack reads,
each for as long as the pack looks back and half a chunk at least, and of the recorded ones that it reads over hours and
days. Every group is given the same short interval, so that a round is one evaluation of the whole pack: what the
process spends in rounds, less what it spends when nothing is asked of it, is what the pack costs. Not in it: scraping,
storing, compacting, what notifications cost, and gateways, of which a fleet has few.
"""

from __future__ import annotations

import itertools
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from alerts.catalogue import RECORDINGS
from alerts.pack_settings import PackSettings
from alerts.recording_presence import ENGINE_THERE, PREFIX_HITS_THEN, SIDECAR_THERE, USAGE_THERE
from alerts.recording_slo import EVENTS, MISSED
from alerts.render import rule_file
from tests.bench import report
from tests.bench.report import Figure
from tests.bench.worker_pages import GPUS, SCRAPE_SECONDS, Pages, labels_of, read_seconds
from tests.support.prometheus import Prometheus, started
from tests.support.remote_write import body, samples

WORKERS, CLUSTERS, OVERLOADED = 1000, 2, 10
BAR_SECONDS = 1.0
_EVERY_SECONDS = 15
"""How often rules are evaluated as shipped, unless their group says otherwise."""
_ROUND_SECONDS, _ROUNDS, _IDLE_SECONDS = 6, 8, 6
_AHEAD_SECONDS = 180
"""So long the newest samples are of the time to come: nobody scrapes."""
_HALF_CHUNK_SECONDS = 60 * SCRAPE_SECONDS
"""Prometheus reads a series from the beginning of its chunk of 120 samples: half a chunk more often than not."""
_READ_OVER_HOURS = (ENGINE_THERE, USAGE_THERE, SIDECAR_THERE, PREFIX_HITS_THEN)
_SERIES_A_REQUEST = 4000
_SHOWN_RULES = 12
_INTERVAL = re.compile(r"^  interval: \d+s$", re.MULTILINE)
_FLAGS = (
    "--web.enable-remote-write-receiver",
    "--web.enable-lifecycle",
    # nothing is compacted, and samples may come in any order within half of it
    "--storage.tsdb.min-block-duration=168h",
    "--storage.tsdb.max-block-duration=168h",
)
_CPU, _ITERATIONS = "process_cpu_seconds_total", "prometheus_rule_group_iterations_total"
Written = tuple[Mapping[str, str], bytes]


def main() -> None:
    """Fills one and lets it evaluate."""
    rules = rule_file(PackSettings())
    back = read_seconds(rules)
    calm, busy = Pages.of("load"), Pages.of("overload")
    read = sum(name in back for name, _ in busy.series)
    report.record(Figure(f"series of a worker with {GPUS} GPUs", len(busy.series), ""))
    report.record(Figure("of them read by the pack", read, ""))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings, pack = folder / "prometheus.yml", folder / "pack.yml"
        pack.write_text(_INTERVAL.sub("", rules), encoding="utf-8")
        settings.write_text("global: {}\n", encoding="utf-8")
        with started(settings, folder / "data", *_FLAGS, cores=1) as server:
            fill(server, calm, busy, back)
            idle = _idle(server)
            settings.write_text(
                f"global: {{evaluation_interval: {_ROUND_SECONDS}s}}\nrule_files: [{pack.name}]\n",
                encoding="utf-8",
            )
            server.reload()
            _evaluate(server, idle)


def fill(server: Prometheus, calm: Pages, busy: Pages, back: Mapping[str, int]) -> None:
    """All that the pack reads of the fleet; ``back`` says how far each name is read."""
    began = time.monotonic()
    newest = (int(time.time()) + _AHEAD_SECONDS) * 1000
    series = itertools.chain(_recorded(newest), _targets(newest), _fleet(calm, busy, newest, back))
    written = sum(_write(server, part) for part in _parts(series))
    report.line(f"  {written / 1e6:.0f} MB of samples written in {time.monotonic() - began:.0f} s")


def _recorded(newest: int) -> Iterator[Written]:
    """What would have been recorded: three days of the objectives, six hours of who was there."""

    def minutes(hours: int) -> npt.NDArray[np.int64]:
        return newest - _AHEAD_SECONDS * 1000 - 60_000 * np.arange(hours * 60, 0, -1, dtype=np.int64)

    days = minutes(72)
    for (recording, rate), cluster, slo in itertools.product(
        ((EVENTS, 500.0), (MISSED, 2.0)), range(CLUSTERS), ("ttft", "tpot")
    ):
        labels = {"__name__": recording.name, "cluster": f"cluster-{cluster}", "slo": slo}
        yield labels, samples(days, np.asarray(rate + np.arange(len(days)) % 7, np.float64))
    there = samples(minutes(6), np.ones(6 * 60))
    for number, recording in itertools.product(range(WORKERS), _READ_OVER_HOURS):
        yield {"__name__": recording.name, **labels_of(number, CLUSTERS, recording.labels)}, there


def _targets(newest: int) -> Iterator[Written]:
    """What Prometheus says of its own scrapes."""
    times = newest - SCRAPE_SECONDS * 1000 * np.arange(
        _HALF_CHUNK_SECONDS // SCRAPE_SECONDS, 0, -1, dtype=np.int64
    )
    up = samples(times, np.ones(len(times)))
    for number in range(WORKERS):
        yield {"__name__": "up", "job": "thrashold", **labels_of(number, CLUSTERS, ("instance",))}, up


def _fleet(calm: Pages, busy: Pages, newest: int, back: Mapping[str, int]) -> Iterator[Written]:
    """Of all workers."""
    longer = {name: max(each, _HALF_CHUNK_SECONDS) + _AHEAD_SECONDS for name, each in back.items()}
    healthy, ill = calm.histories(newest, longer), busy.histories(newest, longer)
    for number in range(WORKERS):
        yield from (ill if number < OVERLOADED else healthy).worker(number, CLUSTERS)


def _parts(series: Iterable[Written]) -> Iterator[list[Written]]:
    """A request's worth each."""
    left = iter(series)
    while part := list(itertools.islice(left, _SERIES_A_REQUEST)):
        yield part


def _write(server: Prometheus, part: Sequence[Written]) -> int:
    """Gives the bytes of the samples."""
    server.write(body(part))
    return sum(len(made) for _, made in part)


def _idle(server: Prometheus) -> float:
    """CPU seconds a second that it spends on itself, once what was written is put away."""
    time.sleep(_IDLE_SECONDS)
    began, before = time.monotonic(), server.own(_CPU)
    time.sleep(_IDLE_SECONDS)
    return (server.own(_CPU) - before) / (time.monotonic() - began)


def _evaluate(server: Prometheus, idle: float) -> None:
    """A few rounds, of which the first ones fill what later ones read."""
    time.sleep(3 * _ROUND_SECONDS)
    began, cpu, evaluated = time.monotonic(), server.own(_CPU), server.own(_ITERATIONS)
    rounds = []
    for _ in range(_ROUNDS):
        time.sleep(_ROUND_SECONDS)
        rounds.append(server.groups())
    spent = server.own(_CPU) - cpu - idle * (time.monotonic() - began)
    groups = len(rounds[-1])
    # a busy machine leaves evaluations out
    whole = spent * groups / (server.own(_ITERATIONS) - evaluated)
    _tell(rounds, whole)
    name = f"the pack over {WORKERS} workers"
    report.record(Figure(f"{name}, CPU of one evaluation of all of it", whole, "s", BAR_SECONDS))
    report.record(Figure(f"{name}, CPU for 15 s as shipped", whole * _as_shipped(rounds), "s", BAR_SECONDS))
    report.record(
        Figure(f"{name}, memory of that Prometheus", server.own("process_resident_memory_bytes") / 1e6, "MB")
    )


def _as_shipped(rounds: Sequence[Sequence[Mapping[str, Any]]]) -> float:
    """How much of a whole evaluation falls due in 15 s, by how long groups take and how often they are evaluated."""
    seconds = {
        f"thrashold-record-{name}": group.every_seconds
        for name, group in RECORDINGS.items()
        if group.every_seconds is not None
    }
    took = {
        each[0]["name"]: median(float(group["evaluationTime"]) for group in each)
        for each in zip(*rounds, strict=True)
    }
    due = sum(each * _EVERY_SECONDS / seconds.get(name, _EVERY_SECONDS) for name, each in took.items())
    return due / sum(took.values())


def _tell(rounds: Sequence[Sequence[Mapping[str, Any]]], whole: float) -> None:
    """What was evaluated, and which rules are dearest: shares of the CPU by how long they took."""
    rules = [rule for group in rounds[-1] for rule in group["rules"]]
    failed = [rule["name"] for rule in rules if rule["health"] != "ok"]
    if failed:
        report.loud(f"not evaluated: {', '.join(failed)}")
    firing = sum(alert["state"] == "firing" for rule in rules for alert in rule.get("alerts", ()))
    pending = sum(len(rule.get("alerts", ())) for rule in rules) - firing
    report.line(
        f"  {len(rules)} rules in {len(rounds[-1])} groups; {firing} alerts fire, {pending} are pending"
    )
    each = zip(*([rule for group in one for rule in group["rules"]] for one in rounds), strict=True)
    took = {row[0]["name"]: median(float(rule["evaluationTime"]) for rule in row) for row in each}
    every = sum(took.values())
    for name in sorted(took, key=lambda name: -took[name])[:_SHOWN_RULES]:
        report.line(f"    {took[name] / every * whole * 1e3:6.1f} ms of CPU  {name}")


if __name__ == "__main__":
    report.standalone(main)
