"""What the second act is judged by: the page, the report, and each number against the drill's truth.

The drill's clock is fast and everybody else's isn't. So what is compared are counts and levels, which are the same
whatever the clock does; rates would be as many times too high as the drill is fast.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.e2e.incident_run import ALERT, FILE, RECORDED, SPEED, TRUTH
from tests.real_engine.judging import Figure, within

LAG_SECONDS = 2.5
"""What a scrape shows was so up to a read, a cycle and a slow answer ago."""
READ_AGE_SECONDS = 0.5
"""On average, of what a cycle shows: engines are read once a second."""
LATE_SECONDS = 5.0
"""Of a link of the chain, beside the truth: the trailing peaks and means that it is read from."""
SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Act:
    """What was seen, and what is true."""

    told: Mapping[str, Any]
    truth: Mapping[str, Any]
    recorded: str

    @classmethod
    def load(cls, folder: Path) -> Act:
        """The run that ``folder`` holds."""
        told, truth = (json.loads((folder / name).read_text(encoding="utf-8")) for name in (FILE, TRUTH))
        return cls(told, truth, (folder / RECORDED).read_text(encoding="utf-8"))

    @property
    def seconds(self) -> Sequence[float]:
        """When each second of the drill was shown."""
        found: Sequence[float] = self.truth["seconds"]
        return found

    def value(self, column: Sequence[float | None], at: float) -> float:
        """What was shown at a time; before the drill, and of an engine that is gone, 0."""
        place = bisect_right(self.seconds, at) - 1
        return (column[place] or 0.0) if place >= 0 else 0.0

    def first(self, holds: Callable[[Mapping[str, Any], int], bool]) -> float:
        """The first second in which it is so of an engine. Raises ValueError where it never is."""
        engines = self.truth["engines"].values()
        return min(at for each in engines for place, at in enumerate(self.seconds) if holds(each, place))

    @property
    def causes(self) -> list[dict[str, Any]]:
        """Of the report, ranked; those that it holds to be there."""
        return [each for each in self.told["report"]["causes"] if each["score"] >= 0.5]


def page(act: Act) -> Figure:
    swapped = act.first(lambda engine, place: bool(engine["swapped"][place]))
    alerts = act.told["incident"]["alerts"]
    severities = {each["labels"]["severity"] for each in alerts if each["labels"]["alertname"] == ALERT}
    took = act.told["arrived"] - swapped
    late = (len(act.seconds) - 1) / SPEED - (act.seconds[-1] - act.seconds[0])
    note = f"seconds of the clock after the first swap-out; {SPEED:g} of the drill each, which was {-late:.0f} s late"
    return Figure(took, None, "after it, a page", took > 0 and severities == {"page"}, note)


def cause(act: Act) -> Figure:
    first = act.causes[0]
    holds = first["cause"] == act.truth["cause"] and set(first["affected"]) == set(act.truth["affected"])
    note = f"{first['cause']} on {', '.join(first['affected'])} ({first['certainty']} certainty)"
    return Figure(first["score"], None, act.truth["cause"], holds, note)


def explained(act: Act) -> Figure:
    """Each consequence stands behind all that explains it, and none of them began before the first cause did."""
    first, *consequences = act.causes
    seen, wrong = {first["cause"]}, []
    for each in consequences:
        by = set(each["explained_by"])
        if first["cause"] not in by or not by <= seen or each["onset"] < first["onset"]:
            wrong.append(each["cause"])
        seen.add(each["cause"])
    words = " > ".join(each["cause"] for each in act.causes)
    holds = not wrong and not first["explained_by"] and bool(consequences)
    return Figure(len(wrong), 0, "none", holds, f"out of order; {words}")


def chain(act: Act) -> Figure:
    """The links of the first cause whose truth is known, each at its own time: load, a full pool, swapping."""
    pool = act.first(lambda engine, place: (engine["kv_usage_ratio"][place] or 0.0) >= 0.9)
    swapped = act.first(lambda engine, place: bool(engine["swapped"][place]))
    proofs = {each["signal"]: each["since"] for each in act.causes[0]["evidence"] if each["held"]}
    by_name = {str(name).removeprefix("thrashold_"): since for name, since in proofs.items()}
    told = [act.causes[0]["onset"], by_name["kv_usage_ratio"], by_name["swapped_sequences"]]
    true = [act.truth["onset"], pool, swapped]
    in_order = all(a <= b for a, b in pairwise(told))
    off = [a - b for a, b in zip(told, true, strict=True)]
    note = "load, full pool, swapped out: " + ", ".join(f"{each:+.1f} s" for each in off)
    worst = max(map(abs, off))
    return Figure(worst, 0, f"in order, +-{LATE_SECONDS:g} s", in_order and worst <= LATE_SECONDS, note)


def counter(act: Act, series: Sequence[Mapping[str, Any]], true: Sequence[float], note: str) -> Figure:
    """What a counter that Prometheus scraped has risen by, against what happened between the same scrapes."""
    rises, least, most = 0.0, 0.0, 0.0
    for each in series:
        (begin, first), (end, last) = each["values"][0], each["values"][-1]
        rises += float(last) - float(first)
        least += act.value(true, end - LAG_SECONDS) - act.value(true, begin)
        most += act.value(true, end) - act.value(true, begin - LAG_SECONDS)
    off = max(0.0, least - rises, rises - most)
    holds = bool(series) and most > 0 and off <= SHARE * most
    return Figure(
        rises, (least + most) / 2, "+-5 %", holds, f"{note}; true between {least:.0f} and {most:.0f}"
    )


def preemptions(act: Act) -> Figure:
    figures = [
        counter(act, _of(act, "preemptions_total", engine=name), list(accumulate(each["preemptions"])), name)
        for name, each in act.truth["engines"].items()
    ]
    worst = next((each for each in figures if not each.holds), figures[0])
    return worst._replace(
        measured=sum(each.measured or 0.0 for each in figures),
        truth=sum(each.truth or 0.0 for each in figures),
        note="; ".join(each.note for each in figures),
    )


def answered(act: Act) -> Figure:
    series = _of(act, "gateway_requests_total", outcome="ok")
    return counter(act, series, act.truth["fleet"]["answered"], "whole answers through the gateway")


def left(act: Act) -> Figure:
    series = _of(act, "gateway_requests_total", outcome="client_left")
    return counter(act, series, act.truth["fleet"]["timed_out"], "clients that waited for 30 s in vain")


def level(signal: str, column: str, **labels: str) -> Callable[[Act], Figure]:
    """A gauge's mean over all recorded seconds and engines, against that of the truth at the same instants."""

    def figure(act: Act) -> Figure:
        said, true = [], []
        for family in text_string_to_metric_families(act.recorded):
            for each in family.samples:
                if each.name == f"thrashold_{signal}" and labels.items() <= each.labels.items():
                    assert each.timestamp is not None
                    engine = act.truth["engines"][each.labels["engine"]]
                    said.append(each.value)
                    true.append(act.value(engine[column], float(each.timestamp) - READ_AGE_SECONDS))
        measured, happened = fmean(said), fmean(true)
        found = within(measured, happened, SHARE * happened, "+-5 %", f"the mean of {len(said)} seconds")
        return found._replace(holds=found.holds and happened > 0)

    return figure


def _of(act: Act, name: str, **labels: str) -> list[Mapping[str, Any]]:
    return [each for each in act.told["scraped"][name] if labels.items() <= each["metric"].items()]


FIGURES: dict[str, Callable[[Act], Figure]] = {
    "incident: page at the desk": page,
    "incident: cause": cause,
    "incident: consequences": explained,
    "incident: chain": chain,
    "incident: preemptions": preemptions,
    "incident: answered": answered,
    "incident: clients that left": left,
    "incident: running": level("sequences", "running", state="running"),
    "incident: waiting": level("sequences", "waiting", state="waiting"),
    "incident: swapped": level("sequences", "swapped", state="swapped"),
    "incident: KV usage": level("kv_usage_ratio", "kv_usage_ratio"),
}
