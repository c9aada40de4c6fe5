"""The verdict: of all that is found, what explains the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from alerts.alert import Severity
from alerts.catalogue import ALERTS
from alerts.pack.cache import KV_DEMAND_BEYOND_POOL, KV_EXHAUSTION_NEAR
from alerts.pack.gateway import ORPHANED_KV
from alerts.pack.latency import DECODE_STALLED
from alerts.thresholds import Thresholds
from alerts.triage.findings import Certainty, Finding, Subjects, by_conditions
from alerts.triage.look import Look
from alerts.triage.looked import looked
from alerts.triage.suspected import SPARE_SECONDS, suspected
from exporter.derive.blocks import KV_USAGE
from exporter.derive.gateway import INFLIGHT, UPSTREAM_INFLIGHT
from exporter.derive.preemption import PREEMPTION_RATE
from exporter.derive.stalls import FROZEN_AFTER_SECONDS, TOKEN_AGE
from exporter.derive.traffic import SEQUENCES

HEALTHY = "healthy"

EXPLAINING: tuple[str, ...] = (
    # it doesn't work at all
    "GpuLost",
    "EngineDown",
    "EngineRestarting",
    "KvSequencesSwapped",  # V0 stands still while it swaps: before what stands still
    "EngineFrozen",
    "EngineDeadlocked",
    # most of its work is thrown away
    "SwapPoolFilling",
    "KvOffloadThrash",
    "KvThrashing",
    # what makes the pool too small for what is asked, or the work too slow: who waits for it comes again
    "KvLeaking",
    "TailWaste",
    "PrefixHitsCollapsed",
    "CollectivesSlow",
    "PcieSaturatedBySwap",
    "HeadOfLineBlocking",
    # who asks
    "OrphanedKv",  # clients that left and whose requests go on ask again: before the storm
    "RetryStorm",
    "GatewayTooTight",
    "PcieSaturatedByOthers",
    "DecodeStalled",
    "KvPingPong",
    "LongPromptsOverQuota",
    "RanksOutOfBalance",
    # the queue
    "KvCachePressure",
    "KvDemandBeyondPool",
    "KvExhaustionNear",
    "GatewayRejecting",
    "GatewayBreakerOpen",
    "GatewayRejectsSlowly",
    "TokensCrawl",
    # nobody suffers of it yet
    "PcieLinkDowngraded",
    "SignalAbsent",
    "SidecarBlind",
    "SidecarDown",
)
"""Names of alerts, what explains others before what it explains. One that isn't here comes last."""
FORECASTS = frozenset({KV_DEMAND_BEYOND_POOL.name, KV_EXHAUSTION_NEAR.name})
"""Of what may come: no verdict while nobody waits and nobody is preempted, and told beside it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``finding``: what is wrong, None where nothing is; ``others``: what else holds, explained or a forecast."""

    finding: Finding | None
    others: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        """The cause, or that all is well."""
        return HEALTHY if self.finding is None else self.finding.alert.cause.value

    @property
    def exit_code(self) -> int:
        """0: nothing found."""
        return int(self.finding is not None)


def judged(look: Look, thresholds: Thresholds) -> Verdict:
    """Of a look at an engine that answers, or that a sidecar knows of."""
    subjects = look.subjects()
    found: dict[str, Finding] = {}
    sure = (*by_conditions(subjects, thresholds), *looked(look, thresholds))
    unsure = (each for known in subjects.ranks for each in suspected(look, known, thresholds))
    for finding in (*sure, *unsure):
        found.setdefault(finding.alert.name, finding)
    stalled = found.get(DECODE_STALLED.name)
    if stalled is not None and stalled.certainty is not Certainty.POSSIBLE:
        found[DECODE_STALLED.name] = _not_yet_frozen(stalled)
    if _passed_by(subjects):
        found.pop(ORPHANED_KV.name, None)
    told = [each for each in found.values() if each.alert.severity is not Severity.INFO]
    loud = [each for each in told if not _is_quiet(each, told)]
    ordered = sorted(loud, key=_place) + sorted((each for each in told if each not in loud), key=_place)
    early = () if _somebody_suffers(subjects, thresholds) else FORECASTS
    first = next((each for each in ordered if each.alert.name not in early), None)
    return Verdict(first, tuple(each for each in ordered if each is not first))


def _somebody_suffers(subjects: Subjects, thresholds: Thresholds) -> bool:
    """Whether anybody waits, is swapped, or has just been thrown out of a pool that still is full; or nobody tells."""
    for known in subjects.ranks:
        waiting, swapped = known.value(SEQUENCES, "waiting"), known.value(SEQUENCES, "swapped")
        full = (known.value(KV_USAGE) or 0.0) >= thresholds.kv_usage_full_ratio
        preempted = (known.value(PREEMPTION_RATE) or 0.0) > thresholds.preemptions_per_second
        if waiting is None or waiting or swapped or (full and preempted):
            return True
    return False


def _not_yet_frozen(stalled: Finding) -> Finding:
    """Nothing has come for some seconds: a long prefill, or the first half minute of an engine that hangs."""
    age = max((each.told.value for each in stalled.evidence if each.name == TOKEN_AGE.name), default=0.0)
    settles = math.ceil(max(0.0, FROZEN_AFTER_SECONDS - age)) + round(SPARE_SECONDS)
    says = "a hung engine looks the same in its first half minute"
    return replace(stalled, certainty=Certainty.POSSIBLE, says=says, settles_seconds=settles)


def _passed_by(subjects: Subjects) -> bool:
    """Whether nothing is in flight in the gateways: what the engine has came past them, orphans or not."""
    inflight = [
        known.value(signal) for known in subjects.gateways for signal in (UPSTREAM_INFLIGHT, INFLIGHT)
    ]
    told = [count for count in inflight if count is not None]
    return bool(told) and not any(told)


def _place(finding: Finding) -> tuple[int, int]:
    name = finding.alert.name
    place = EXPLAINING.index(name) if name in EXPLAINING else len(EXPLAINING)
    return place, list(ALERTS).index(name)


def _is_quiet(finding: Finding, others: Sequence[Finding]) -> bool:
    """Explained by one that is at least as sure: a suspicion silences nothing that is known."""
    loud = {
        each.alert.name
        for each in others
        if each.certainty is not Certainty.POSSIBLE or finding.certainty is Certainty.POSSIBLE
    }
    explaining = (*finding.alert.quiet_under, *finding.alert.consequence_of)
    return any(name in loud for name in explaining)
