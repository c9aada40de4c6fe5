"""All scenarios, by name. A new one is a file beside this and a line here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from drill.scenarios.benign_day import BENIGN_DAY
from drill.scenarios.collective_slow import COLLECTIVE_SLOW
from drill.scenarios.engine_deadlocked import ENGINE_DEADLOCKED
from drill.scenarios.engine_frozen import ENGINE_FROZEN
from drill.scenarios.engine_restarts import ENGINE_RESTARTS
from drill.scenarios.gateway_breaker import GATEWAY_BREAKER
from drill.scenarios.gateway_slow import GATEWAY_SLOW
from drill.scenarios.gateway_too_tight import GATEWAY_TOO_TIGHT
from drill.scenarios.gpu_lost import GPU_LOST
from drill.scenarios.incident import INCIDENT, INCIDENT_PAGES, INCIDENT_SWAP_FULL
from drill.scenarios.kv_leak import KV_LEAK
from drill.scenarios.long_prompts import LONG_PROMPTS
from drill.scenarios.metric_rename import METRIC_RENAME
from drill.scenarios.offload_thrash import OFFLOAD_THRASH
from drill.scenarios.orphans import ORPHANS
from drill.scenarios.overload import OVERLOAD
from drill.scenarios.pcie_downgraded import PCIE_DOWNGRADED
from drill.scenarios.pcie_other_tenant import PCIE_OTHER_TENANT
from drill.scenarios.peak import PEAK
from drill.scenarios.prefill_blocking import PREFILL_BLOCKING
from drill.scenarios.prefix_collapse import PREFIX_COLLAPSE
from drill.scenarios.rank_imbalance import RANK_IMBALANCE
from drill.scenarios.recompute_thrash import RECOMPUTE_THRASH, RECOMPUTE_UNRESERVED
from drill.scenarios.retry_storm import RETRY_STORM
from drill.scenarios.scenario import Scenario
from drill.scenarios.setting import SettingError
from drill.scenarios.sidecar_blind import SIDECAR_BLIND
from drill.scenarios.tail_waste import TAIL_WASTE

SCENARIOS: Mapping[str, Scenario] = {
    each.name: each
    for each in (
        BENIGN_DAY,
        COLLECTIVE_SLOW,
        ENGINE_DEADLOCKED,
        ENGINE_FROZEN,
        ENGINE_RESTARTS,
        GATEWAY_BREAKER,
        GATEWAY_SLOW,
        GATEWAY_TOO_TIGHT,
        GPU_LOST,
        INCIDENT,
        INCIDENT_PAGES,
        INCIDENT_SWAP_FULL,
        KV_LEAK,
        LONG_PROMPTS,
        METRIC_RENAME,
        OFFLOAD_THRASH,
        ORPHANS,
        OVERLOAD,
        PCIE_DOWNGRADED,
        PCIE_OTHER_TENANT,
        PEAK,
        PREFILL_BLOCKING,
        PREFIX_COLLAPSE,
        RANK_IMBALANCE,
        RECOMPUTE_THRASH,
        RECOMPUTE_UNRESERVED,
        RETRY_STORM,
        SIDECAR_BLIND,
        TAIL_WASTE,
    )
}


def scenario_by_name(name: str) -> Scenario:
    """Of that name. Raises SettingError."""
    found = SCENARIOS.get(name)
    if found is None:
        near = difflib.get_close_matches(name.lower(), SCENARIOS, 1)
        hint = f"did you mean {near[0]}?" if near else "`thrashold drill list` has them"
        raise SettingError(f"no scenario {name!r}: {hint}")
    return found
