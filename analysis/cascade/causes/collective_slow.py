"""The GPUs of an engine exchange their parts more slowly than before."""

from __future__ import annotations

import numpy as np

from alerts.causes import Cause
from alerts.pack.engine import ENGINE_FROZEN
from alerts.pack.machine import COLLECTIVES_SLOW
from analysis.cascade.causes.common import PAIN, RUNNING, requests_waited, tokens_late, users_waited
from analysis.cascade.looks import alerted, both, computed, either, trailing_share
from analysis.cascade.peers import beside_peers
from analysis.cascade.subject import Subject
from analysis.cascade.template import Breadth, Link, Role, Start, Template
from analysis.frame import Values
from exporter.derive.collectives import COLLECTIVE_DROP, COLLECTIVE_RATE
from exporter.derive.latency import TOKEN_INTERVAL
from exporter.derive.traffic import SEQUENCES

_PEER_SECONDS = 60.0
_BESIDE_PEERS = 0.5
"""Of what peers carry: below it is more than the chance of what is asked of whom."""


def _carried(subject: Subject) -> Values | None:
    """Collective bytes a second for each sequence that runs; shape (n,)."""
    carried, running = subject.total(COLLECTIVE_RATE), subject.total(SEQUENCES, RUNNING)
    return None if carried is None or running is None else trailing_share(carried, running)


def _less_than_peers(subject: Subject) -> Values | None:
    """How much less it carries than its peers do; shape (n,). A baseline of its own takes minutes of the same load."""
    beside = beside_peers(subject, _carried, _PEER_SECONDS)
    return None if beside is None else 1.0 - beside


def _pace(subject: Subject) -> Values | None:
    """The gap between tokens by its logarithm: one that stood still is magnitudes slower; shape (n,)."""
    gap = subject.total(TOKEN_INTERVAL)
    return None if gap is None else np.log(np.where(gap > 0, gap, np.nan))


def _slower_than_peers(subject: Subject) -> Values | None:
    """Its gap between tokens over that of its peers; shape (n,)."""
    return beside_peers(subject, lambda each: each.total(TOKEN_INTERVAL), _PEER_SECONDS)


COLLECTIVE_SLOW = Template(
    Cause.COLLECTIVE_SLOW,
    (
        Link(
            "collectives carried less than they had, or than those of its peers, with as many sequences",
            either(
                alerted(COLLECTIVES_SLOW),
                both(
                    computed(
                        COLLECTIVE_DROP, _less_than_peers, lambda less: less > _BESIDE_PEERS, _BESIDE_PEERS
                    ),
                    computed(TOKEN_INTERVAL, _slower_than_peers, lambda times: times > 1 / _BESIDE_PEERS),
                ),
            ),
            Role.NECESSARY,
            least_seconds=60.0,
        ),
        requests_waited(),
        tokens_late(),
        users_waited(),
        Link("the engine stood still altogether", alerted(ENGINE_FROZEN), Role.AGAINST, weight=0.6),
    ),
    explains=PAIN | {Cause.PREFILL_BLOCKING},
    breadth=Breadth.ENGINE,
    starts=(Start(_pace, TOKEN_INTERVAL, 1), Start(_carried, COLLECTIVE_RATE, -1)),
    lead_seconds=120.0,
)
