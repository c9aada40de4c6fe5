"""The rule file as it is rendered, over a run, by a real Prometheus: when each alert was pending, fired and ended."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from alerts.pack_settings import PackSettings
from alerts.render import rule_file
from analysis.firing import Episode, episodes
from tests.evaluation.scrapes import SCRAPE_SECONDS, write_scrapes
from tests.support.prometheus import Labels, Prometheus, add_blocks, serving

EVALUATION_SECONDS = 15.0
_DURATION = re.compile(r"(\d+)s")
_AT_THE_INSTANT = f"--query.lookback-delta={EVALUATION_SECONDS - 1:.0f}s"
"""The pack reads what was scraped through windows, and what is recorded as it is at the instant."""


@dataclass(frozen=True, slots=True)
class Fired:
    """An episode of an alert that fired, with the labels that Alertmanager gets."""

    alert: str
    labels: Mapping[str, str]
    episode: Episode

    @property
    def at(self) -> float:
        """When it fired."""
        assert self.episode.fired_at is not None
        return self.episode.fired_at

    @property
    def subject(self) -> str:
        """What it is about: its labels but those that all have."""
        return " ".join(value for name, value in self.labels.items() if name not in _COMMON)


_COMMON = frozenset({"alertname", "cluster", "severity", "cause", "model_name", "rank", "instance", "job"})


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What fired in a run, in order, and from when till when was looked."""

    fired: Sequence[Fired]
    start: float
    end: float
    queries: Mapping[str, Mapping[Labels, Mapping[float, float]]] = field(default_factory=dict)


def evaluate(
    recording: Path, chance: int, *, settings: PackSettings | None = None, queries: Sequence[str] = ()
) -> Evaluated:
    """Evaluate the pack every 15 s over a recording. ``queries``: further expressions to give the values of.

    ``chance`` moves scrapes and evaluations against the clock and each other, as they are in real life: a Prometheus
    spreads both by hashes.
    """
    phase = (chance * 7.3) % SCRAPE_SECONDS
    offset = (chance * 4.1) % EVALUATION_SECONDS
    groups = yaml.safe_load(rule_file(settings or PackSettings()))["groups"]
    rules = [
        {**rule, "interval": group.get("interval", f"{EVALUATION_SECONDS:.0f}s")}
        for group in groups
        for rule in group["rules"]
    ]
    with tempfile.TemporaryDirectory(prefix="evaluation-") as folder:
        scraped = Path(folder) / "scraped.om"
        span = write_scrapes(recording, scraped, phase)
        return over(rules, [scraped], span, offset, queries=queries, arguments=[_AT_THE_INSTANT])


def over(  # noqa: PLR0913 -- what, over what, and how
    rules: Sequence[Mapping[str, Any]],
    dumps: Sequence[Path],
    span: tuple[float, float],
    offset: float,
    *,
    queries: Sequence[str] = (),
    arguments: Sequence[str] = (),
) -> Evaluated:
    """Evaluate rules, each with its ``interval``, over OpenMetrics dumps of scrapes from ``span[0]`` to ``span[1]``.

    ``offset``: seconds from the first scrape to the first evaluation. ``arguments``: further ones for Prometheus.
    """
    first, last = span
    start = first + offset
    end = start + (last - start) // EVALUATION_SECONDS * EVALUATION_SECONDS
    with tempfile.TemporaryDirectory(prefix="evaluation-") as name:
        folder = Path(name)
        for dump in dumps:
            add_blocks(dump, folder)
        for wave in _waves(rules):
            with serving(None, folder, *arguments) as prometheus:
                lines = [line for rule in wave for line in _recorded(prometheus, rule, start, end)]
            if any(not line.startswith("#") for line in lines):
                more = folder / "recorded.om"
                more.write_text("".join([*lines, "# EOF\n"]), encoding="utf-8")
                add_blocks(more, folder)
        with serving(None, folder, *arguments) as prometheus:
            fired = [
                one
                for rule in rules
                if "alert" in rule and rule["expr"] != "vector(1)"
                for one in _fired(prometheus, rule, start, end)
            ]
            asked = {each: prometheus.query_range(each, first, last, SCRAPE_SECONDS) for each in queries}
    return Evaluated(sorted(fired, key=lambda one: one.at), start, end, asked)


def _waves(rules: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Recording rules in the order in which they can be had: after those that they read."""
    left = {rule["record"]: rule for rule in rules if "record" in rule}
    waves = []
    while left:
        wave = [rule for rule in left.values() if not any(_reads(rule["expr"], name) for name in left)]
        assert wave, f"these recording rules read each other: {', '.join(left)}"
        waves.append(wave)
        for rule in wave:
            del left[rule["record"]]
    return waves


def _reads(expression: str, name: str) -> bool:
    return re.search(rf"(?<![\w:]){re.escape(name)}(?![\w:])", expression) is not None


def _recorded(prometheus: Prometheus, rule: Mapping[str, Any], start: float, end: float) -> Iterator[str]:
    """As OpenMetrics: what each evaluation of its group gives, at all instants until the next.

    A Prometheus forgets a series at the evaluation that doesn't give it any more. Blocks that are written afterwards
    can't say so: whoever reads them is to look back for less than is between two instants.
    """
    every = _seconds(rule["interval"])
    name = rule["record"]
    held = [EVALUATION_SECONDS * place for place in range(max(1, round(every / EVALUATION_SECONDS)))]
    yield f"# TYPE {name} gauge\n"
    for labels, row in prometheus.query_range(rule["expr"], start, end, every).items():
        told = ",".join(f'{label}="{value}"' for label, value in labels if label != "__name__")
        yield from (
            f"{name}{{{told}}} {value!r} {at + later:.3f}\n"
            for at, value in sorted(row.items())
            for later in held
        )


def _fired(prometheus: Prometheus, rule: Mapping[str, Any], start: float, end: float) -> list[Fired]:
    found = prometheus.query_range(rule["expr"], start, end, EVALUATION_SECONDS)
    count = round((end - start) / EVALUATION_SECONDS) + 1
    times = [start + EVALUATION_SECONDS * place for place in range(count)]
    fired = []
    for own, row in found.items():
        present = {round(at, 3) for at in row}
        history = episodes(
            times,
            [round(at, 3) in present for at in times],
            for_seconds=_seconds(rule.get("for", "0s")),
            keep_firing_seconds=_seconds(rule.get("keep_firing_for", "0s")),
        )
        labels = {name: value for name, value in own if name != "__name__"}
        labels |= {"alertname": rule["alert"], **rule["labels"]}
        fired += [Fired(rule["alert"], labels, each) for each in history if each.fired_at is not None]
    return fired


def _seconds(duration: str) -> float:
    found = _DURATION.fullmatch(duration)
    assert found is not None, f"the pack writes durations in seconds, and not {duration}"
    return float(found.group(1))
