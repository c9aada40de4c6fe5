"""All checks, in the order in which the index tells of them. A new file of ``alerts/lint/checks`` is a line here."""

from __future__ import annotations

from collections.abc import Mapping

from alerts.lint.check import Check
from alerts.lint.checks import (
    abort_reason,
    absent_across_clusters,
    averaged_average,
    counter_without_rate,
    dead_metric,
    dropped_label,
    gauge_under_rate,
    increase_of_newborn,
    join_without_cluster,
    le_equality,
    lifetime_average,
    lifetime_quantile,
    milliseconds,
    missing_runbook,
    off_as_low,
    panel_unit,
    peak_for,
    percent_of_ratio,
    promql_release,
    quantile_without_le,
    rate_window,
    ratio_scale,
    summed_ratio,
    threshold_above_buckets,
    unknown_metric,
    unmatched_ratio,
    xid_above_zero,
)

GROUPS: Mapping[str, tuple[Check, ...]] = {
    "Names": (dead_metric.CHECK, unknown_metric.CHECK, abort_reason.CHECK, promql_release.CHECK),
    "Scales and limits": (
        ratio_scale.CHECK,
        panel_unit.CHECK,
        percent_of_ratio.CHECK,
        milliseconds.CHECK,
        threshold_above_buckets.CHECK,
        off_as_low.CHECK,
        xid_above_zero.CHECK,
    ),
    "Counters and gauges": (
        counter_without_rate.CHECK,
        gauge_under_rate.CHECK,
        rate_window.CHECK,
        increase_of_newborn.CHECK,
        peak_for.CHECK,
    ),
    "Means and quantiles": (
        lifetime_average.CHECK,
        lifetime_quantile.CHECK,
        quantile_without_le.CHECK,
        averaged_average.CHECK,
        summed_ratio.CHECK,
        unmatched_ratio.CHECK,
        le_equality.CHECK,
    ),
    "Clusters and labels": (join_without_cluster.CHECK, absent_across_clusters.CHECK, dropped_label.CHECK),
    "People": (missing_runbook.CHECK,),
}
CHECKS: Mapping[str, Check] = {check.name: check for checks in GROUPS.values() for check in checks}
