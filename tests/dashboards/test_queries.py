"""Expressions: what they refuse, and how they read."""

from __future__ import annotations

import pytest

from alerts.conditions import Rendering
from dashboards.queries import Look, interpolated
from exporter.derive.blocks import KV_USAGE
from exporter.derive.pcie import PCIE_SATURATION
from exporter.derive.preemption import PREEMPTIONS, THRASHING

LOOK = Look(Rendering(), ("engine",))


def test_a_gauge_follows_variables_and_comes_once_a_subject() -> None:
    assert LOOK.gauge(THRASHING).text == (
        "max by (cluster, engine, rank) "
        '(max_over_time(thrashold_thrashing{cluster=~"$cluster",engine=~"$engine"}[$__rate_interval]))'
    )


def test_a_twin_gives_way_to_the_gauge_where_there_is_none() -> None:
    text = LOOK.gauge(KV_USAGE, peak=True).text
    assert text.index("thrashold_kv_usage_ratio_peak{") < text.index(" or ") < text.index("kv_usage_ratio{")


def test_what_a_signal_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="counter"):
        LOOK.gauge(PREEMPTIONS)
    with pytest.raises(ValueError, match="gauge"):
        LOOK.rate(THRASHING)
    with pytest.raises(ValueError, match="no _peak twin"):
        LOOK.gauge(THRASHING, peak=True)
    with pytest.raises(ValueError, match="no label uuid"):
        LOOK.gauge(THRASHING).across("max", "uuid")


def test_gpus_are_told_of_the_engines_that_run_on_them() -> None:
    of_engines = LOOK.of_engines(LOOK.gauge(PCIE_SATURATION).across("max", "uuid"))
    assert of_engines.labels == ("engine", "uuid")
    assert " * on (cluster, uuid) group_left () " in of_engines.text


def test_longer_names_go_before_shorter_ones() -> None:
    told = interpolated("$engine $engine_kind [$__rate_interval]", {"engine": "a", "engine_kind": "b"}, "60s")
    assert told == "a b [60s]"
