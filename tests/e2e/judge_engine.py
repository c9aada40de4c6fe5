"""What the first act is judged by: what the desk was told of a real engine's overload, and what the kills cost.

Times are those of the machine and told, not judged: what counts is whether it came, what was said, and what was lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from alerts.causes import Cause
from tests.e2e.engine_run import ALERT, ENGINE, FILE, PARTS
from tests.real_engine.judging import Figure

HELD = 0.5
"""A score from which a report holds a cause to be there."""
SWAPS = {Cause.SWAP_THRASH.value, Cause.OFFLOAD_THRASH.value}
OF_SWAP = ("swap", "offload", "pcie")


@dataclass(frozen=True, slots=True)
class Act:
    """What was seen, and what its clients saw."""

    told: Mapping[str, Any]
    requests: tuple[Mapping[str, Any], ...]

    @classmethod
    def load(cls, folder: Path) -> Act:
        """The run that ``folder`` holds."""
        lines = (folder / "clients.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        told = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return cls(told, tuple(json.loads(line) for line in lines if line.endswith("\n")))

    @property
    def causes(self) -> list[dict[str, Any]]:
        """Of the report, ranked; those that it holds to be there."""
        return [each for each in self.told["report"]["causes"] if each["score"] >= HELD]

    @property
    def incidents(self) -> list[dict[str, Any]]:
        """Of the engine's own cluster, after all kills."""
        found = self.told["at_the_end"]["incidents"]
        return [each for each in found if each["cluster"] == {"cluster": "stack"}]


def told(act: Act) -> Figure:
    alerts = [each for each in act.told["incident"]["alerts"] if each["labels"]["alertname"] == ALERT]
    of = {(each["labels"]["engine"], each["labels"]["severity"], each["labels"]["cause"]) for each in alerts}
    names = sorted({each["labels"]["alertname"] for each in act.told["incident"]["alerts"]})
    holds = of == {(ENGINE, "warning", Cause.OVERLOAD.value)} and act.told["page_names_it"]
    took = act.told["arrived"] - act.told["began"]
    return Figure(took, None, "it comes", holds, f"seconds of overload; with {', '.join(names)}")


def reported(act: Act) -> Figure:
    took = act.told["report_at"] - act.told["arrived"]
    return Figure(
        took, None, "it comes", bool(act.causes), "seconds from the alert to its report, both at the desk"
    )


def cause(act: Act) -> Figure:
    first = act.causes[0]
    holds = first["cause"] == Cause.OVERLOAD.value and first["affected"] == [ENGINE]
    note = f"{', '.join(each['cause'] for each in act.causes)}; {first['certainty']} certainty"
    return Figure(first["score"], None, Cause.OVERLOAD.value, holds, note)


def recompute(act: Act) -> Figure:
    """What the report says of preemption: that there was some, and what it cost."""
    said = [each for each in act.causes[0]["evidence"] if each["held"] and "preempt" in str(each["signal"])]
    words = "computed again" in act.told["report_words"]
    note = said[0]["words"] if said else "not among the evidence"
    return Figure(len(said), 1, "at least one link", bool(said) and words, note)


def no_swap(act: Act) -> Figure:
    named = [
        each["cause"]
        for each in act.told["report"]["causes"]
        if each["cause"] in SWAPS and each["score"] >= HELD
    ]
    held = [
        proof["signal"]
        for each in act.causes
        for proof in each["evidence"]
        if proof["held"]
        and proof["role"] != "against"
        and any(word in str(proof["signal"]) for word in OF_SWAP)
    ]
    fired = [name for name in _names(act.incidents) if any(word in name.lower() for word in OF_SWAP)]
    wrong = [*named, *held, *fired]
    return Figure(len(wrong), 0, "none", not wrong, ", ".join(wrong))


def killed(part: str, act: Act) -> Figure:
    """It came back by itself; what it knew before it still knows."""
    kill = act.told["kills"][part]
    before, after = kill["before"], kill["after"]
    lost = set() if before is None else set(before) - set(after)
    holds = not lost and bool(kill["said"]) and (before is None or bool(before))
    knew = "" if before is None else f"of {len(before)} things it knew; "
    served = f"clients served again {kill['answered'] - kill['at']:.0f} s after"
    return Figure(len(lost), 0, "none", holds, f"{knew}back in {kill['back'] - kill['at']:.1f} s; {served}")


def webhooks(act: Act) -> Figure:
    """Those that were answered with 200 around its kill, while others got no answer."""
    kill = act.told["kills"]["desk"]
    kept = set(kill["kept_webhooks"])
    lost = kept - _names(act.told["at_the_end"]["incidents"])
    holds = not lost and bool(kept) and kill["refused_webhooks"] > 0
    note = f"of {len(kept)} that the desk had answered; {kill['refused_webhooks']} it hadn't, being dead"
    return Figure(len(lost), 0, "none", holds, note)


def one_incident(act: Act) -> Figure:
    """Alertmanager forgets when it dies what it has told, and tells it anew; no kill makes a second incident."""
    alerts = [
        (json.dumps(alert["labels"], sort_keys=True), alert["starts"])
        for incident in act.incidents
        for alert in incident["alerts"]
    ]
    doubled = len(alerts) - len(set(alerts))
    holds = len(act.incidents) == 1 and not doubled
    return Figure(len(act.incidents), 1, "one", holds, f"{len(alerts)} alerts in it, {doubled} twice")


def answers(act: Act) -> Figure:
    """An answer that came to its end is whole, whoever was killed meanwhile."""
    ends = [each["end"] for each in act.requests]
    cut = [each for each in act.requests if each["end"] == "done" and each["tokens"] != each["max_tokens"]]
    note = f"of {ends.count('done')} that came to their end; {ends.count('error')} broke off and said so"
    return Figure(
        len(cut), 0, "none", not cut and "done" in ends, f"with other than all their tokens, {note}"
    )


def engine_again(act: Act) -> Figure:
    """Its counters begin at 0 again; the sidecar's totals, which no longer restart with it, only rise."""
    kill = act.told["engine_killed"]
    totals = [
        (float(sample.timestamp), sample.value)
        for family in text_string_to_metric_families(act.told["recorded"])
        for sample in family.samples
        if sample.name == "thrashold_generation_tokens_total" and sample.timestamp is not None
    ]
    # the sidecar's own kill was before
    rows = sorted(each for each in totals if each[0] > kill["at"] - 5.0)
    steps = [later - value for (_, value), (_, later) in pairwise(rows)]
    falls = sum(step < 0 for step in steps)
    risen = rows[-1][1] - rows[0][1]
    times = f"seen down after {kill['down'] - kill['at']:.0f} s, read again after {kill['read'] - kill['at']:.0f} s"
    return Figure(
        falls, 0, "none", falls == 0 and risen > 0, f"falls of its total of {rows[-1][1]:.0f} tokens; {times}"
    )


def ended(act: Act) -> Figure:
    code = act.told["stack_ended_with"]
    holds = code == 0 and not act.told["broke_off"]
    return Figure(
        code, 0, "0", holds, f"the stack's exit code; {act.told['broke_off'] or 'nothing broke off'}"
    )


def _names(incidents: list[dict[str, Any]]) -> set[str]:
    return {alert["labels"]["alertname"] for incident in incidents for alert in incident["alerts"]}


FIGURES: dict[str, Callable[[Act], Figure]] = {
    "overload: told": told,
    "overload: report": reported,
    "overload: cause": cause,
    "overload: preemption by recompute": recompute,
    "overload: swap named": no_swap,
    **{f"killed: {part}": partial(killed, part) for part in PARTS},
    "killed: engine": engine_again,
    "kept: webhooks": webhooks,
    "kept: one incident": one_incident,
    "kept: answers": answers,
    "stack ends": ended,
}
