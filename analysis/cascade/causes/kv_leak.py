"""Blocks are lost: held by no sequence and never free again."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.cache import KV_LEAKING
from analysis.cascade.causes.common import PAIN
from analysis.cascade.looks import alerted
from analysis.cascade.template import Link, Role, Template

KV_LEAK = Template(
    Cause.KV_LEAK,
    (Link("blocks were taken with nothing running or waiting", alerted(KV_LEAKING), Role.NECESSARY),),
    explains=PAIN | {Cause.RECOMPUTE_THRASH, Cause.OFFLOAD_THRASH, Cause.SWAP_THRASH},
    lead_seconds=900.0,
)
