"""ratio-scale: numbers beside gauges that can't reach them."""

from __future__ import annotations

import pytest

from alerts.command import RENDERED
from alerts.limits import limits
from alerts.pack_settings import PackSettings
from alerts.thresholds import Thresholds
from tests.alerts.lint.linting import finds, finds_in

KV = "vllm:kv_cache_usage_perc"


@pytest.mark.parametrize(
    ("expr", "fix"),
    [
        (f"{KV} > 85", "compare with 0.85"),
        (f"max by (pod) (last_over_time({KV}[5m])) >= 95", "compare with 0.95"),
        (f"85 < {KV}", "compare with 0.85"),
        (f"{KV} * 100 > 9000", "compare with a part of 100"),
        (f"{KV} * 100 > 0.9", "compare with 90"),
        (f"1 - {KV} > 10", "compare with 0.1"),
        ("thrashold_kv_usage_ratio_peak > 90", "compare with 0.9"),
        ("thrashold_pcie_saturation_ratio > 80", "compare with 0.8"),
        ("sglang:token_usage > 90", "compare with 0.9"),
        ("DCGM_FI_DEV_GPU_UTIL < 0.5", "compare with 50"),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE > 80", "compare with 0.8"),
        ("sum(rate(a_total{x='1'}[5m])) / sum(rate(a_total[5m])) > 5", "compare with 0.05"),
    ],
)
def test_what_cannot_be_reached_is_told_with_what_can(expr: str, fix: str) -> None:
    (found,) = finds_in("ratio-scale", expr)
    assert found.fix == fix


@pytest.mark.parametrize(
    "expr",
    [
        f"{KV} > 0.9",
        f"{KV} > 1",
        f"{KV} * 100 > 90",
        f"100 - {KV} * 100 < 10",
        f"sum({KV}) > 3",
        f"count({KV} > 0.9) > 2",
        f"{KV} * 20000 > 15000",
        "thrashold_kv_demand_ratio > 2",
        "thrashold_retry_amplification_ratio > 3",
        "thrashold_rank_imbalance_ratio > 1.8",
        "thrashold_tail_fragmentation_reserve_ratio > 2",
        "DCGM_FI_DEV_GPU_UTIL > 90",
        "some_ratio > 85",
        "sum(rate(a_total[5m])) / sum(rate(b_total[5m])) > 5",
    ],
)
def test_what_can_be_or_is_not_known_is_not(expr: str) -> None:
    assert not finds_in("ratio-scale", expr)


def test_whatever_a_threshold_may_be_its_signal_can_reach() -> None:
    highest = {
        name: float(meta.le) for name, metas in limits(Thresholds) for meta in metas if meta.le is not None
    }
    calm = Thresholds().kv_usage_calm_ratio  # has to be below the full one
    settings = PackSettings(thresholds=Thresholds(**{**highest, "kv_usage_calm_ratio": calm}))
    assert not finds("ratio-scale", RENDERED["thrashold.rules.yml"](settings))
