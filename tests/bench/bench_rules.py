"""What the pack costs a Prometheus that watches 1,000 workers: alerts and recording rules, on one core.

Each worker is one engine on eight GPUs: pages that the sidecar made of a recording, under other names, scraped each
15 s. A hundredth of them is overloaded. Prometheus is told, by remote write, only of the series that the pack reads,
each for as long as the pack looks back, and of the recorded ones that it reads over hours and days. Rules are
evaluated three times as often as shipped, so that the bench is short. Not in it: scraping, storing, compacting, what
notifications cost, and gateways, of which a fleet has few.
"""

from __future__ import annotations

import itertools
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from alerts.pack_settings import PackSettings
from alerts.recording_presence import HISTORY, PRESENCE
from alerts.recording_slo import EVENTS, MISSED
from alerts.render import rule_file
from tests.bench import report
from tests.bench.report import Figure
from tests.bench.worker_pages import GPUS, Pages, labels_of, read_seconds
from tests.support.prometheus import Prometheus, started
from tests.support.remote_write import body, samples

WORKERS, CLUSTERS, OVERLOADED = 1000, 2, 10
BAR_SECONDS = 1.0
_EVERY_SECONDS, _HASTE, _ROUNDS = 15, 3, 4
"""Rules are evaluated so many times as often as shipped, and once in 20 s at least: a round of all groups."""
_AHEAD_SECONDS = 180
"""So long the newest samples are of the time to come: nobody scrapes."""
_SERIES_A_REQUEST = 4000
_FLAGS = (
    "--web.enable-remote-write-receiver",
    "--web.enable-lifecycle",
    # nothing is compacted, and samples may come in any order within half of it
    "--storage.tsdb.min-block-duration=168h",
    "--storage.tsdb.max-block-duration=168h",
)
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
        often = re.sub(
            r"interval: (\d+)s", lambda found: f"interval: {min(60, int(found[1])) // _HASTE}s", rules
        )
        pack.write_text(often, encoding="utf-8")
        settings.write_text("global: {}\n", encoding="utf-8")
        with started(settings, folder / "data", *_FLAGS, cores=1) as server:
            began = time.monotonic()
            newest = (int(time.time()) + _AHEAD_SECONDS) * 1000
            series = itertools.chain(_recorded(newest), _fleet(calm, busy, newest, back))
            written = sum(_write(server, part) for part in _parts(series))
            report.line(f"  {written / 1e6:.0f} MB of samples written in {time.monotonic() - began:.0f} s")
            settings.write_text(
                f"global: {{evaluation_interval: {_EVERY_SECONDS // _HASTE}s}}\nrule_files: [{pack.name}]\n",
                encoding="utf-8",
            )
            server.reload()
            _evaluate(server)


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
    for group, seconds in ((PRESENCE, 60), (HISTORY, 300)):
        times = minutes(6)[:: seconds // 60]
        there = samples(times, np.ones(len(times)))
        for number, recording in itertools.product(range(WORKERS), group.recordings):
            for gpu in range(GPUS) if "uuid" in recording.labels else range(1):
                labels = labels_of(number, CLUSTERS, recording.labels, gpu)
                yield {"__name__": recording.name, **labels}, there


def _fleet(calm: Pages, busy: Pages, newest: int, back: Mapping[str, int]) -> Iterator[Written]:
    """Of all workers."""
    longer = {name: each + _AHEAD_SECONDS for name, each in back.items()}
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


def _evaluate(server: Prometheus) -> None:
    """A few rounds; of each group the median."""
    time.sleep(60 // _HASTE)
    began = _spent(server)
    rounds = []
    for _ in range(_ROUNDS):
        time.sleep(_EVERY_SECONDS / _HASTE)
        rounds.append(server.groups())
    cpu, evaluations = (after - before for before, after in zip(began, _spent(server), strict=True))
    groups = {
        each[0]["name"]: median(float(group["evaluationTime"]) for group in each)
        for each in zip(*rounds, strict=True)
    }
    # a busy machine leaves evaluations out
    asked = sum(_ROUNDS * _EVERY_SECONDS / group["interval"] for group in rounds[-1]) / _HASTE
    spent = cpu / _ROUNDS * asked / evaluations
    rules = [rule for group in rounds[-1] for rule in group["rules"]]
    failed = [rule["name"] for rule in rules if rule["health"] != "ok"]
    if failed:
        report.loud(f"not evaluated: {', '.join(failed)}")
    firing = sum(alert["state"] == "firing" for rule in rules for alert in rule.get("alerts", ()))
    pending = sum(len(rule.get("alerts", ())) for rule in rules) - firing
    report.line(f"  {len(rules)} rules in {len(groups)} groups; {firing} alerts fire, {pending} are pending")
    for rule in sorted(rules, key=lambda rule: -float(rule["evaluationTime"]))[:8]:
        report.line(f"    {float(rule['evaluationTime']) * 1e3:6.1f} ms  {rule['name']}")
    name = f"the pack over {WORKERS} workers"
    report.record(
        Figure(f"{name}, median durations of its groups, summed", sum(groups.values()), "s", BAR_SECONDS)
    )
    report.record(Figure(f"{name}, CPU for 15 s of it", spent, "s", BAR_SECONDS))
    report.record(
        Figure(f"{name}, memory of that Prometheus", server.own("process_resident_memory_bytes") / 1e6, "MB")
    )


def _spent(server: Prometheus) -> tuple[float, float]:
    """CPU seconds so far, and evaluations of a group."""
    return server.own("process_cpu_seconds_total"), server.own("prometheus_rule_group_iterations_total")


if __name__ == "__main__":
    report.standalone(main)
