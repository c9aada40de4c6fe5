"""Engines work on for clients that have left."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.gateway import ORPHANED_KV
from analysis.cascade.causes.common import pool_full, requests_waited, users_waited
from analysis.cascade.looks import alerted, compared, rising
from analysis.cascade.template import Breadth, Link, Role, Template
from exporter.derive.gateway import REQUESTS
from exporter.derive.orphans import ORPHANS as ORPHAN_SEQUENCES
from exporter.gateway_sample import Outcome

ORPHANS = Template(
    Cause.ORPHANS,
    (
        Link(
            "engines held sequences that the gateway waited for no more", compared(ORPHAN_SEQUENCES, ">", 0.0)
        ),
        Link("these held a share of the KV blocks", alerted(ORPHANED_KV), Role.NECESSARY, least_seconds=30.0),
        pool_full(),
        requests_waited(),
        users_waited(),
    ),
    explains=frozenset({Cause.RETRY_STORM, Cause.OVERLOAD, Cause.SLO_MISSED}),
    breadth=Breadth.FLEET,
    first_sign=rising(REQUESTS, (("outcome", Outcome.CLIENT_LEFT.value),), seconds=60.0),
)
