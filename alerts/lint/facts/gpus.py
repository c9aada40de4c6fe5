"""DCGM's fields, as ``exporter/dialects/dcgm_names.py`` knows them, and what rules do to them."""

from __future__ import annotations

import re

from alerts.lint.facts.metric import Exporter, Kind, Metric, Scale
from exporter.dialects import dcgm_names
from exporter.dialects.dcgm_names import XID, Field, field_of

_PERCENT, _RATIO = 100.0, 1.0
_OTHER_PERCENTS = ("DEV_MEM_COPY_UTIL", "DEV_ENC_UTIL", "DEV_DEC_UTIL")
_SHARES = (dcgm_names.ENGINE_ACTIVE, dcgm_names.SM_ACTIVE, dcgm_names.DRAM_ACTIVE)
_WINDOWS = (dcgm_names.PCIE_OUT_WINDOW, dcgm_names.PCIE_IN_WINDOW)
_USE_OF_WINDOWS = (
    "DCGM_FI_PROF_PCIE_TX_BYTES and DCGM_FI_PROF_PCIE_RX_BYTES, which are bytes a second; it was a window of 20 ms"
    " in KB/s, and DCGM 4 answers it no more"
)
_RATES = (
    *(dcgm_names.PCIE_OUT_RATE, dcgm_names.PCIE_IN_RATE),
    *(dcgm_names.NVLINK_OUT_RATE, dcgm_names.NVLINK_IN_RATE),
    *(dcgm_names.NVLINK_OUT_DATA, dcgm_names.NVLINK_IN_DATA, dcgm_names.NVLINK_DATA),
)
_IS_A_RATE = "it is bytes a second already, whatever its TYPE says: take it as it is, or avg_over_time of it"
_IS_LAST_XID = (
    "it is the number of the last XID: `changes(DCGM_FI_DEV_XID_ERRORS[15m]) > 0` tells that there was one"
)


def known(series: str) -> Metric | None:
    """What a series of dcgm-exporter is; None for one that isn't known."""
    field = field_of(series)
    if field is not None:
        return _metric(series, field)
    if series.upper().removeprefix("DCGM_FI_") in _OTHER_PERCENTS:
        return Metric(series, Kind.GAUGE, Scale.PERCENT)
    return None


def is_xid(series: str) -> bool:
    """Whether a series is the gauge that holds the last XID."""
    return field_of(series) is XID


def _metric(series: str, field: Field) -> Metric:
    if field in _WINDOWS:
        return Metric(series, Kind.GAUGE, last=(3,), use=_USE_OF_WINDOWS, trap=_IS_A_RATE)
    if field in _RATES:
        return Metric(series, Kind.GAUGE, trap=_IS_A_RATE)
    if field is dcgm_names.GPU_UTIL:
        return Metric(series, Kind.GAUGE, Scale.PERCENT)
    if field in _SHARES:
        return Metric(series, Kind.GAUGE, Scale.RATIO)
    trap = _IS_LAST_XID if field is XID else ""
    return Metric(series, Kind.COUNTER if field.total else Kind.GAUGE, trap=trap)


DCGM = Exporter("dcgm", "DCGM", re.compile(r"^(?=DCGM_)", re.IGNORECASE), "", {}, {})
