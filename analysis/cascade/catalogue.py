"""All templates. A new cause is a file in ``causes/`` and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from alerts.causes import Cause
from analysis.cascade.causes.collective_slow import COLLECTIVE_SLOW
from analysis.cascade.causes.engine_deadlocked import ENGINE_DEADLOCKED
from analysis.cascade.causes.engine_down import ENGINE_DOWN
from analysis.cascade.causes.engine_frozen import ENGINE_FROZEN
from analysis.cascade.causes.engine_restarts import ENGINE_RESTARTS
from analysis.cascade.causes.gateway_breaker import GATEWAY_BREAKER
from analysis.cascade.causes.gateway_slow import GATEWAY_SLOW
from analysis.cascade.causes.gateway_too_tight import GATEWAY_TOO_TIGHT
from analysis.cascade.causes.gpu_lost import GPU_LOST
from analysis.cascade.causes.kv_leak import KV_LEAK
from analysis.cascade.causes.long_prompts import LONG_PROMPTS
from analysis.cascade.causes.metric_rename import METRIC_RENAME
from analysis.cascade.causes.offload_thrash import OFFLOAD_THRASH
from analysis.cascade.causes.orphans import ORPHANS
from analysis.cascade.causes.overload import OVERLOAD
from analysis.cascade.causes.pcie_downgraded import PCIE_DOWNGRADED
from analysis.cascade.causes.pcie_other_tenant import PCIE_OTHER_TENANT
from analysis.cascade.causes.prefill_blocking import PREFILL_BLOCKING
from analysis.cascade.causes.prefix_collapse import PREFIX_COLLAPSE
from analysis.cascade.causes.rank_imbalance import RANK_IMBALANCE
from analysis.cascade.causes.recompute_thrash import RECOMPUTE_THRASH
from analysis.cascade.causes.retry_storm import RETRY_STORM
from analysis.cascade.causes.sidecar_blind import SIDECAR_BLIND
from analysis.cascade.causes.slo_missed import SLO_MISSED
from analysis.cascade.causes.swap_thrash import SWAP_THRASH
from analysis.cascade.causes.tail_waste import TAIL_WASTE
from analysis.cascade.template import Template

TEMPLATES: Mapping[Cause, Template] = {
    template.cause: template
    for template in (
        # it doesn't work at all
        GPU_LOST,
        ENGINE_RESTARTS,
        METRIC_RENAME,
        ENGINE_DOWN,
        SWAP_THRASH,
        ENGINE_FROZEN,
        ENGINE_DEADLOCKED,
        # most of its work is thrown away
        OFFLOAD_THRASH,
        RECOMPUTE_THRASH,
        # what makes the pool too small for what is asked, or the work too slow
        KV_LEAK,
        TAIL_WASTE,
        PREFIX_COLLAPSE,
        COLLECTIVE_SLOW,
        PREFILL_BLOCKING,
        RANK_IMBALANCE,
        # who asks, and who lets them in
        ORPHANS,
        GATEWAY_BREAKER,
        GATEWAY_TOO_TIGHT,
        GATEWAY_SLOW,
        RETRY_STORM,
        LONG_PROMPTS,
        OVERLOAD,
        # nobody suffers of it yet
        PCIE_OTHER_TENANT,
        PCIE_DOWNGRADED,
        SIDECAR_BLIND,
        SLO_MISSED,
    )
}
"""By cause; of two that are found as surely the one that stands first is told first."""
NO_TEMPLATE: Mapping[Cause, str] = {
    Cause.NOT_WATCHED: "its evidence is that there is none: a hole in history is told as a caveat of what was found",
}
"""Causes without one, and why."""
