"""panel-unit: units and limits of panels."""

from __future__ import annotations

from typing import Any

import pytest

from tests.alerts.lint.linting import board, finds

KV = "max(vllm:kv_cache_usage_perc)"


def config(unit: str, *limits: float) -> dict[str, Any]:
    steps = [{"color": "red", "value": limit} for limit in limits]
    return {"defaults": {"unit": unit, "thresholds": {"mode": "absolute", "steps": steps}}}


@pytest.mark.parametrize(
    ("expr", "unit", "limits", "count"),
    [
        (KV, "percent", (), 1),
        (KV, "percentunit", (), 0),
        (f"{KV} * 100", "percentunit", (), 1),
        (f"{KV} * 100", "percent", (80.0, 90.0), 0),
        (KV, "percentunit", (0.8, 90.0), 1),
        (KV, "percent", (80.0, 90.0), 3),
        ("vllm:num_requests_waiting", "percent", (80.0,), 0),
        ("DCGM_FI_DEV_GPU_UTIL", "percent", (90.0,), 0),
        ("DCGM_FI_DEV_GPU_UTIL", "percentunit", (), 1),
        (f"{KV} > 0.5", "percent", (), 1),
    ],
)
def test_units_and_limits(expr: str, unit: str, limits: tuple[float, ...], count: int) -> None:
    assert len(finds("panel-unit", board(expr, kind="stat", fieldConfig=config(unit, *limits)))) == count


@pytest.mark.parametrize(
    ("kind", "more", "count"),
    [
        ("timeseries", {}, 0),
        (
            "timeseries",
            {"color": {"mode": "palette-classic"}, "custom": {"thresholdsStyle": {"mode": "off"}}},
            0,
        ),
        ("timeseries", {"custom": {"thresholdsStyle": {"mode": "line"}}}, 1),
        ("timeseries", {"color": {"mode": "thresholds"}}, 1),
        ("stat", {}, 1),
        ("stat", {"color": {"mode": "fixed"}}, 0),
        ("gauge", {"color": {"mode": "thresholds"}}, 1),
    ],
)
def test_a_limit_that_is_not_shown_is_nobodys_fault(kind: str, more: dict[str, Any], count: int) -> None:
    """Grafana writes 80 into each new panel."""
    made = config("percentunit", 80.0)
    made["defaults"] |= more
    assert len(finds("panel-unit", board(KV, kind=kind, fieldConfig=made))) == count


@pytest.mark.parametrize(("name", "count"), [("unit", 1), ("thresholds", 1), ("color", 2)])
def test_what_is_set_for_single_series_is_not_judged(name: str, count: int) -> None:
    """``percent`` and a limit of 80 are two faults; an override may take either away."""
    made = config("percent", 80.0)
    made["overrides"] = [
        {"matcher": {"id": "byName", "options": "A"}, "properties": [{"id": name, "value": "x"}]}
    ]
    assert len(finds("panel-unit", board(KV, kind="stat", fieldConfig=made))) == count


def test_values_that_are_calculated_are_not_judged() -> None:
    transformations = [{"id": "calculateField", "options": {}}]
    made = config("percent", 80.0)
    assert not finds("panel-unit", board(KV, kind="stat", fieldConfig=made, transformations=transformations))


def test_limits_in_per_cent_of_the_range_are_left_alone() -> None:
    made = config("percentunit", 80.0)
    made["defaults"]["thresholds"]["mode"] = "percentage"
    assert not finds("panel-unit", board(KV, kind="stat", fieldConfig=made))


def test_boards_of_before_grafana_7_have_their_unit_elsewhere() -> None:
    assert finds("panel-unit", board(KV, kind="graph", yaxes=[{"format": "percent"}, {"format": "short"}]))
    assert finds("panel-unit", board(KV, kind="singlestat", format="percent"))
    assert not finds(
        "panel-unit", board(KV, kind="graph", yaxes=[{"format": "percentunit"}, {"format": "percent"}])
    )


def test_two_queries_of_a_panel_make_one_problem() -> None:
    text = board(
        KV, targets=[{"expr": KV}, {"expr": "min(vllm:kv_cache_usage_perc)"}], fieldConfig=config("percent")
    )
    assert len(finds("panel-unit", text)) == 1
