"""Which of a collection's values not to believe: DCGM's profiling says 0 both for nothing and for not known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from exporter.dialects.dcgm_names import (
    DRAM_ACTIVE,
    ENGINE_ACTIVE,
    GPU_UTIL,
    NVLINK_DATA,
    NVLINK_IN_DATA,
    NVLINK_IN_RATE,
    NVLINK_IN_TOTAL,
    NVLINK_OUT_DATA,
    NVLINK_OUT_RATE,
    NVLINK_OUT_TOTAL,
    PCIE_ERRORS,
    PCIE_IN_RATE,
    PCIE_IN_TOTAL,
    PCIE_OUT_RATE,
    PCIE_OUT_TOTAL,
    SM_ACTIVE,
    Field,
)

_BUSY_RATIO = 0.1
"""A GPU whose kernels ran for this share of the time moved bytes over its link: launching takes some."""

_ACTIVITY = (ENGINE_ACTIVE, SM_ACTIVE, DRAM_ACTIVE)
_PCIE_RATES = (PCIE_OUT_RATE, PCIE_IN_RATE)
_PCIE_TOTALS = (PCIE_OUT_TOTAL, PCIE_IN_TOTAL)
_NVLINK_RATES = (NVLINK_OUT_RATE, NVLINK_IN_RATE, NVLINK_OUT_DATA, NVLINK_IN_DATA, NVLINK_DATA)
_NVLINK_TOTALS = (NVLINK_OUT_TOTAL, NVLINK_IN_TOTAL)


class Doubt(NamedTuple):
    """Fields not to be believed, and whether one source said nothing moved and another that something did."""

    fields: frozenset[Field]
    disagreement: bool


def doubted(
    values: Mapping[Field, float],
    rises: Mapping[Field, float],
    stood: Collection[Field],
    moved: Collection[Field],
) -> Doubt:
    """What not to believe of one collection.

    ``rises`` are what totals rose by since the collection before, ``stood`` the totals that had not risen
    then either, ``moved`` the fields that were ever above 0. Each collection is judged anew, so that one
    bad one costs no more than itself. Rates that are 0 and were never anything else are not believed
    either: that is how a counter looks which nobody drives.
    """
    busy = values.get(GPU_UTIL, 0.0) >= _BUSY_RATIO
    fields: set[Field] = set()
    activity = [field for field in _ACTIVITY if field in values]
    stuck = bool(activity) and busy and not _any(values, activity)  # DCGM#303: after XID 31, for good
    if stuck:
        fields.update(activity)
    nvlink_moves = _any(values, _NVLINK_RATES) or _any(rises, _NVLINK_TOTALS)
    rates = [field for field in _PCIE_RATES if field in values]
    silent = bool(rates) and not _any(values, rates)
    contradicted = silent and (  # dcgm-exporter#721
        busy or nvlink_moves or _any(rises, _PCIE_TOTALS) or _any(rises, PCIE_ERRORS)
    )
    if contradicted or (silent and _moved_never(rates, moved)):
        fields.update(rates)
    totals = [field for field in _PCIE_TOTALS if field in rises]
    # twice in a row: a page may be read while the totals are still to be collected
    frozen = (
        bool(totals)
        and _any(values, rates)
        and not _any(rises, totals)
        and all(field in stood for field in totals)
    )
    if frozen:
        fields.update(totals)
    for pair in ((NVLINK_OUT_RATE, NVLINK_IN_RATE), (NVLINK_OUT_DATA, NVLINK_IN_DATA), (NVLINK_DATA,)):
        if not _any(values, pair) and (nvlink_moves or _moved_never(pair, moved)):
            fields.update(pair)
    return Doubt(frozenset(fields), stuck or contradicted or frozen)


def _moved_never(fields: Collection[Field], moved: Collection[Field]) -> bool:
    """Whether none of ``fields`` was ever above 0."""
    return not any(field in moved for field in fields)


def _any(values: Mapping[Field, float], fields: Collection[Field]) -> bool:
    return any(values.get(field, 0.0) > 0 for field in fields)
