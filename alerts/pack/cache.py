"""The KV pool: asked for more than it has, full, thrashing, leaking, wasted."""

from __future__ import annotations

from alerts.alert import Alert, Severity
from alerts.causes import Cause
from alerts.conditions import All, Compare, Either, Reading
from alerts.pack.explaining import FLEET_WIDE, KEPT_SECONDS, REDUCED, STANDSTILL, THRASH
from alerts.pack.wording import AN_ENGINE, DURATION, FINE_PERCENT, NUMBER, PERCENT, either
from alerts.recording_ill import FULL, PREEMPTS, THRASHES
from exporter.derive.blocks import KV_LEAK, KV_USAGE
from exporter.derive.fragmentation import RESERVE_RATIO, USED_RATIO
from exporter.derive.headroom import DEMAND, EXHAUSTION
from exporter.derive.pingpong import PINGPONG
from exporter.derive.traffic import SEQUENCES

WAITING = Compare(Reading(SEQUENCES, (("state", "waiting"),)), ">", "waiting_sequences")
_HERE = (*THRASH, *STANDSTILL, "EngineDown", "EngineRestarting")
_ELSEWHERE = (*FLEET_WIDE, "RetryStorm", "OrphanedKv", "PrefixHitsCollapsed")
"""What fills pools that are large enough otherwise: of this engine, and of the cluster."""

KV_DEMAND_BEYOND_POOL = Alert(
    "KvDemandBeyondPool",
    Severity.WARNING,
    Cause.OVERLOAD,
    Compare(Reading(DEMAND), ">", "kv_demand_ratio"),
    "{{ $labels.engine }} is asked for "
    + either("lt $value 1.1", f"{FINE_PERCENT} of", f"{NUMBER} times")
    + " its KV pool",
    "More KV blocks are asked for than the engine has: some requests have to wait, before usage shows it.",
    quiet_under=_HERE,
    consequence_of=_ELSEWHERE,
)
KV_EXHAUSTION_NEAR = Alert(
    "KvExhaustionNear",
    Severity.WARNING,
    Cause.OVERLOAD,
    All(
        Compare(Reading(EXHAUSTION), "<", "kv_exhaustion_seconds"),
        Compare(Reading(KV_USAGE), ">", "kv_usage_calm_ratio"),
    ),
    "{{ $labels.engine }} "
    + either("lt $value 1.0", "has filled its KV pool", f"fills its KV pool within {DURATION}"),
    "Usage is high, and at the rate at which it has been rising the pool is full soon. A burst fills it faster than"
    " this can tell.",
    quiet_under=("KvDemandBeyondPool", "KvCachePressure", *_HERE),
    consequence_of=_ELSEWHERE,
)
KV_CACHE_PRESSURE = Alert(
    "KvCachePressure",
    Severity.WARNING,
    Cause.OVERLOAD,
    All(FULL, WAITING, PREEMPTS),
    f"{AN_ENGINE}: KV pool {PERCENT} full, requests wait, sequences are preempted",
    "The pool is full, requests wait for blocks and running sequences lose theirs. Usage alone would be no reason.",
    quiet_under=_HERE,
    consequence_of=_ELSEWHERE,
)
KV_THRASHING = Alert(
    "KvThrashing",
    Severity.PAGE,
    Cause.RECOMPUTE_THRASH,
    THRASHES,
    "{{ $labels.engine }} thrashes: sequences are thrown out after a few tokens",
    "So few tokens come between preemptions that the engine works mostly for what it throws away.",
    for_seconds=15,
    keep_firing_seconds=KEPT_SECONDS,
    quiet_under=("KvSequencesSwapped", "KvOffloadThrash"),
)
KV_PING_PONG = Alert(
    "KvPingPong",
    Severity.WARNING,
    Cause.RECOMPUTE_THRASH,
    All(Compare(Reading(PINGPONG), ">", "repeat_preemption_ratio"), PREEMPTS),
    f"{AN_ENGINE}: {PERCENT} of preemptions hit a sequence again",
    "The same sequences are preempted over and over instead of each of them now and then.",
    for_seconds=120,
    quiet_under=(*THRASH, "EngineDown", "EngineRestarting"),
    consequence_of=(REDUCED,),
)
KV_LEAKING = Alert(
    "KvLeaking",
    Severity.WARNING,
    Cause.KV_LEAK,
    Compare(Reading(KV_LEAK), ">=", 1.0),
    "{{ $labels.engine }} holds KV blocks with nothing running or waiting",
    "For two minutes blocks have been in use that no sequence can be using: only a restart frees them.",
    quiet_under=("EngineDown",),
)
TAIL_WASTE = Alert(
    "TailWaste",
    Severity.WARNING,
    Cause.TAIL_WASTE,
    All(
        Compare(Reading(USED_RATIO), ">", "tail_used_ratio"),
        Either(FULL, Compare(Reading(RESERVE_RATIO), ">", "tail_reserve_ratio")),
    ),
    f"{AN_ENGINE}: {PERCENT} of used KV memory is empty tails of blocks",
    "Blocks are so large beside the sequences that much of what is used holds no token, and little is free.",
    for_seconds=300,
    quiet_under=("EngineDown",),
)
CACHE = (
    KV_DEMAND_BEYOND_POOL,
    KV_EXHAUSTION_NEAR,
    KV_CACHE_PRESSURE,
    KV_THRASHING,
    KV_PING_PONG,
    KV_LEAKING,
    TAIL_WASTE,
)
