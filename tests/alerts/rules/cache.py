"""Trials of ``alerts/pack/cache.py``."""

from __future__ import annotations

from exporter.derive.blocks import KV_LEAK, KV_USAGE
from exporter.derive.fragmentation import RESERVE_RATIO, USED_RATIO
from exporter.derive.headroom import DEMAND, EXHAUSTION
from exporter.derive.pingpong import PINGPONG
from exporter.derive.preemption import PREEMPTION_RATE, THRASHING
from exporter.derive.traffic import SEQUENCES
from tests.alerts.rules.trials import ILL, Fires, Quiet, Told

_FULL = Told(KV_USAGE, 0.5, 0.97)
_WAITING = Told(SEQUENCES, 0, 12, (("state", "waiting"),))
_PREEMPTING = Told(PREEMPTION_RATE, 0, 0.8)
_HISTOGRAM = (("method", "histogram"),)
_OTHER_RANK = {**ILL, "rank": "0"}

TRIALS = (
    Fires(
        "KvDemandBeyondPool",
        "more blocks are asked for than there are",
        (Told(DEMAND, 0.6, 2.4),),
        "a is asked for 2.4 times its KV pool",
    ),
    Quiet("KvDemandBeyondPool", "all that there is, is asked for", (Told(DEMAND, 0.6, 1.0),)),
    Fires(
        "KvExhaustionNear",
        "a ramp ends within a minute",
        (Told(EXHAUSTION, 3600, 45), Told(KV_USAGE, 0.5, 0.86)),
        "a fills its KV pool within 45s",
    ),
    Quiet(
        "KvExhaustionNear",
        "a steep ramp in an empty pool",
        (Told(EXHAUSTION, 3600, 45), Told(KV_USAGE, 0.5, 0.6)),
    ),
    Quiet(
        "KvExhaustionNear", "high, and nobody can tell for how long", (Told(EXHAUSTION, 3600, None), _FULL)
    ),
    Fires(
        "KvCachePressure",
        "a full pool, a queue and preemptions",
        (_FULL, _WAITING, _PREEMPTING),
        "a: KV pool 97% full, requests wait, sequences are preempted",
    ),
    Quiet("KvCachePressure", "usage alone", (_FULL, Told(SEQUENCES, 0, 0, (("state", "waiting"),)))),
    Quiet("KvCachePressure", "no preemptions", (_FULL, _WAITING, Told(PREEMPTION_RATE, 0, 0))),
    Quiet(
        "KvCachePressure",
        "the other rank's queue",
        (_FULL, Told(SEQUENCES, 0, 12, (("state", "waiting"),), at=_OTHER_RANK), _PREEMPTING),
    ),
    Fires(
        "KvThrashing",
        "the sidecar calls it thrashing",
        (Told(THRASHING, 0, 1),),
        "a thrashes: sequences are thrown out after a few tokens",
    ),
    Quiet("KvThrashing", "plain contention", (Told(THRASHING, 0, 0), _FULL, Told(PREEMPTION_RATE, 0, 8.0))),
    Quiet("KvThrashing", "nobody knows", (Told(THRASHING, 0, None), _FULL)),
    Fires(
        "KvPingPong",
        "the same sequences over and over",
        (Told(PINGPONG, 0.1, 0.8, _HISTOGRAM), _PREEMPTING),
        "a: 80% of preemptions hit a sequence again",
    ),
    Quiet("KvPingPong", "plain contention", (Told(PINGPONG, 0.1, 0.31, _HISTOGRAM), _PREEMPTING)),
    Quiet(
        "KvPingPong",
        "a share of what hardly happens",
        (Told(PINGPONG, 0.1, 1.0, _HISTOGRAM), Told(PREEMPTION_RATE, 0, 0.05)),
    ),
    Fires(
        "KvLeaking",
        "blocks without sequences",
        (Told(KV_LEAK, 0, 1),),
        "a holds KV blocks with nothing running or waiting",
    ),
    Quiet("KvLeaking", "not known", (Told(KV_LEAK, 0, None), _FULL)),
    Fires(
        "TailWaste",
        "empty tails in a full pool",
        (Told(USED_RATIO, 0.01, 0.4), _FULL),
        "a: 40% of used KV memory is empty tails of blocks",
    ),
    Fires(
        "TailWaste",
        "empty tails worth the reserve",
        (Told(USED_RATIO, 0.01, 0.4), Told(KV_USAGE, 0.5, 0.6), Told(RESERVE_RATIO, 0.01, 0.9)),
        "a: 40% of used KV memory is empty tails of blocks",
    ),
    Quiet("TailWaste", "empty tails, and room", (Told(USED_RATIO, 0.01, 0.4), Told(KV_USAGE, 0.5, 0.6))),
)
