"""Sequences come back from the tier below to be thrown out again."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.machine import PCIESATURATED_BY_SWAP
from alerts.pack.swap import KV_OFFLOAD_THRASH
from analysis.cascade.causes.common import (
    LOAD,
    LOAD_IN_ORDER,
    THRASH,
    pool_full,
    requests_waited,
    users_waited,
)
from analysis.cascade.looks import alerted, compared
from analysis.cascade.template import Link, Role, Template
from exporter.derive.attribution import SWAP_SHARE
from exporter.derive.swap import SWAP_BYTES_RATE

_IN = (("direction", "in"),)

OFFLOAD_THRASH = Template(
    Cause.OFFLOAD_THRASH,
    (
        pool_full(),
        Link(
            "sequences came back from the tier below and were thrown out after a few tokens",
            alerted(KV_OFFLOAD_THRASH),
            Role.NECESSARY,
        ),
        Link("KV blocks came back over PCIe", compared(SWAP_BYTES_RATE, ">", 0.0, _IN)),
        Link(
            "most of what went over PCIe were KV blocks",
            compared(SWAP_SHARE, ">", "pcie_swap_share_ratio", _IN),
        ),
        Link("a PCIe link was full of them", alerted(PCIESATURATED_BY_SWAP)),
        requests_waited(),
        users_waited(),
    ),
    explains=THRASH | {Cause.RECOMPUTE_THRASH},
    may_explain=frozenset({Cause.GATEWAY_TOO_TIGHT}),  # what is done about it
    starts=LOAD,
    in_order=LOAD_IN_ORDER,
    lead_seconds=420.0,
    early_seconds=300.0,  # queues build up before the pool thrashes
)
