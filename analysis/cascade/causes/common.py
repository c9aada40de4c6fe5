"""Signs that several causes share: the pool is full, requests wait, sequences are thrown out, users wait too long."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.pack.cache import WAITING
from alerts.pack.latency import FAST_BURN, TOKENS_CRAWL
from alerts.recording_ill import FULL, PREEMPTS
from alerts.thresholds import THRESHOLDS
from analysis.cascade.looks import alerted, computed, holding, level, trailing_share
from analysis.cascade.subject import Subject, Where
from analysis.cascade.template import Link, Start
from analysis.frame import Values
from exporter.derive.blocks import KV_USAGE
from exporter.derive.gateway import REQUESTS, UPSTREAM_REQUESTS
from exporter.derive.latency import SLO_EVENTS
from exporter.derive.traffic import PROMPT_RATE, SEQUENCES
from exporter.gateway_sample import Outcome

PAIN = frozenset({Cause.OVERLOAD, Cause.RETRY_STORM, Cause.SLO_MISSED})
"""What follows wherever capacity is lost or work is thrown away: queues, clients that come again, users who wait."""
THRASH = PAIN | {Cause.ORPHANS, Cause.PREFILL_BLOCKING, Cause.LONG_PROMPTS}
"""What an engine that works for what it throws away leaves behind; long prompts are what filled it."""
ELSEWHERE = frozenset(
    {
        Cause.RECOMPUTE_THRASH,
        Cause.OFFLOAD_THRASH,
        Cause.SWAP_THRASH,
        Cause.ORPHANS,
        Cause.PREFILL_BLOCKING,
        Cause.LONG_PROMPTS,
    }
)
"""What the rest of a fleet may come to when some of it is gone or does less, and what fills pools that are smaller."""
WINDOW_SECONDS = 120.0
"""Over which rates of gateways are taken, as the pack does."""
_SLO_SECONDS = (300.0, 3600.0)
_LONG = (-900.0, 900.0)

POOL_FULL, REQUESTS_WAIT, THROWN_OUT = holding(FULL), holding(WAITING), holding(PREEMPTS)
TOKENS_LATE = alerted(TOKENS_CRAWL)
FIRST_TOKENS: Where = (("slo", "ttft"),)
"""Events of that objective: each request that begins to be answered is one."""
RUNNING, WAITS = (("state", "running"),), (("state", "waiting"),)


def _came(subject: Subject) -> Values | None:
    """Requests that gateways sent on since the instant before; shape (n,)."""
    total = subject.total(UPSTREAM_REQUESTS)
    if total is None:
        return None
    came = np.diff(total, prepend=np.nan)
    return np.where(came >= 0, came, np.nan)


LOAD = (
    Start(_came, UPSTREAM_REQUESTS, 1, counted=True),
    level(SEQUENCES, 1, counted=True),
    level(KV_USAGE, 1, counted=True),
)
"""What bends where a load begins: what comes, and what engines have of it. Queues are no part: they come of full pools.
"""
LOAD_IN_ORDER = (level(SEQUENCES, where=RUNNING), level(KV_USAGE), level(SEQUENCES, where=WAITS))
PROMPTS = level(PROMPT_RATE, 1, counted=True)


def missed_share(subject: Subject) -> Values | None:
    """Of what was told within five minutes, and within an hour, the share that was late; shape (n,).

    The smaller of both, as the pack pages, and by the objective missed most: where an engine tells each gap between
    tokens, these are thousands for one first token.
    """
    found = []
    for slo in subject.frame.label_values("slo"):
        shares = [_missed(subject, slo, seconds) for seconds in _SLO_SECONDS]
        told = [share for share in shares if share is not None]
        if told:
            found.append(np.minimum.reduce(told))
    return np.fmax.reduce(found) if found else None


def _missed(subject: Subject, slo: str, seconds: float) -> Values | None:
    missed, met = (
        subject.risen(SLO_EVENTS, (("slo", slo), ("good", good)), seconds) for good in ("false", "true")
    )
    if met is None:
        return None
    missed = np.zeros(subject.n) if missed is None else missed
    return trailing_share(missed, missed + met)


MISSED_LIMIT = FAST_BURN * THRESHOLDS.slo_budget_ratio
OBJECTIVES_MISSED = computed(
    SLO_EVENTS, missed_share, lambda share: share > MISSED_LIMIT, MISSED_LIMIT, name="slo_missed_ratio"
)


def ended(subject: Subject, *outcomes: Outcome) -> Values | None:
    """Requests a second that ended so at the gateways, over two minutes; of every outcome where none is named."""
    wanted: tuple[Where, ...] = tuple((("outcome", each.value),) for each in outcomes) or ((),)
    found = [subject.risen(REQUESTS, where, WINDOW_SECONDS) for where in wanted]
    told = [each for each in found if each is not None]
    if not told:
        return np.zeros(subject.n) if outcomes and subject.fleet.places(REQUESTS.full_name) else None
    return np.asarray(sum(told) / WINDOW_SECONDS, dtype=np.float64)


def pool_full() -> Link:
    """The KV pool was full."""
    return Link("the KV pool was full", POOL_FULL, lag_seconds=_LONG)


def requests_waited() -> Link:
    """Requests waited for room."""
    return Link("requests waited for room", REQUESTS_WAIT, lag_seconds=_LONG)


def thrown_out() -> Link:
    """Running sequences were preempted."""
    return Link("running sequences were preempted", THROWN_OUT, lag_seconds=_LONG)


def tokens_late() -> Link:
    """Tokens came so slowly that clients give up."""
    return Link("tokens came so slowly that clients give up", TOKENS_LATE, lag_seconds=_LONG)


def users_waited() -> Link:
    """The end of most chains."""
    return Link("users waited longer than they were promised", OBJECTIVES_MISSED, lag_seconds=_LONG)
