"""Makes a GPU's sample of what dcgm-exporter tells of it, with what is not believed left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from exporter.dialects.dcgm_names import (
    DRAM_ACTIVE,
    ECC_ERRORS,
    ENGINE_ACTIVE,
    FB_FREE,
    FB_RESERVED,
    FB_TOTAL,
    FB_USED,
    GPU_UTIL,
    LINK_GENERATION,
    LINK_WIDTH,
    MAX_LINK_GENERATION,
    MAX_LINK_WIDTH,
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
    PCIE_IN_WINDOW,
    PCIE_OUT_RATE,
    PCIE_OUT_TOTAL,
    PCIE_OUT_WINDOW,
    PERSISTENCE,
    POWER,
    RECOVERY_ACTION,
    REMAPPED_ROWS,
    SM_ACTIVE,
    TEMPERATURE,
    THROTTLE,
    Field,
)
from exporter.gpu_sample import (
    GpuHealth,
    GpuIdentity,
    GpuMemory,
    GpuSample,
    GpuUtilisation,
    NvLink,
    PcieLink,
    PcieTraffic,
)


class Reading(NamedTuple):
    """One collection: ``values``, mean ``rates`` of totals since the one before, and what is ``doubted``.

    ``disagreements_total`` counts collections in which one field said nothing moved and another that
    something did.
    """

    values: Mapping[Field, float]
    rates: Mapping[Field, float]
    doubted: Collection[Field]
    disagreements_total: float

    def believed(self, field: Field) -> float | None:
        """The value of ``field`` where it is known and believed."""
        return None if field in self.doubted else self.values.get(field)

    def rate(self, total: Field) -> float | None:
        """The mean rate of a running total over the last collection."""
        return None if total in self.doubted else self.rates.get(total)


def sample_of(identity: GpuIdentity, reading: Reading, at: float, *, totals: bool) -> GpuSample:
    """The groups of one GPU; ``totals`` says whether running bytes may stand as such, or as mean rates."""
    return GpuSample(
        at,
        identity,
        memory=_memory(reading.values),
        utilisation=_utilisation(reading),
        pcie=_pcie(reading, totals=totals),
        link=_link(reading.values),
        nvlink=_nvlink(reading, totals=totals),
        health=_health(reading.values),
    )


def _memory(values: Mapping[Field, float]) -> GpuMemory | None:
    """Without a total, exporters before 3.0 leave ``reserved`` out of it too: half a GB of an H100 is missing."""
    total, used, reserved = values.get(FB_TOTAL), values.get(FB_USED), values.get(FB_RESERVED)
    if total is None and FB_FREE in values and used is not None:
        total = values[FB_FREE] + used + (reserved or 0.0)
    if total is None or used is None or used > total:
        return None
    return GpuMemory(total, used, reserved)


def _utilisation(reading: Reading) -> GpuUtilisation | None:
    """The graphics engine's activity stands in for the utilisation that MIG and some exporters lack."""
    busy = reading.believed(GPU_UTIL)
    if busy is None:
        busy = reading.believed(ENGINE_ACTIVE)
    found = GpuUtilisation(busy, reading.believed(SM_ACTIVE), reading.believed(DRAM_ACTIVE))
    return found if any(each is not None for each in found) else None


def _pcie(reading: Reading, *, totals: bool) -> PcieTraffic | None:
    """Totals, else rates; the window of 20 ms where there is nothing else."""
    known = (PCIE_OUT_TOTAL, PCIE_IN_TOTAL, PCIE_OUT_RATE, PCIE_IN_RATE)
    told = [field for field in known if field in reading.values]
    out, into = reading.believed(PCIE_OUT_TOTAL), reading.believed(PCIE_IN_TOTAL)
    if totals and (out is not None or into is not None):
        return PcieTraffic("dcgm", out, into, disagreements_total=reading.disagreements_total)
    source = "dcgm"
    out, into = reading.rate(PCIE_OUT_TOTAL), reading.rate(PCIE_IN_TOTAL)
    if out is None and into is None:
        out, into = reading.believed(PCIE_OUT_RATE), reading.believed(PCIE_IN_RATE)
    if out is None and into is None:
        out, into = reading.believed(PCIE_OUT_WINDOW), reading.believed(PCIE_IN_WINDOW)
        source = "dcgm" if out is None and into is None else "window"
    if not told and source == "dcgm":
        return None
    return PcieTraffic(source, None, None, out, into, disagreements_total=reading.disagreements_total)


def _nvlink(reading: Reading, *, totals: bool) -> NvLink | None:
    """Data where it is told by direction, else with protocol, else data of both directions together."""
    out, into = reading.believed(NVLINK_OUT_TOTAL), reading.believed(NVLINK_IN_TOTAL)
    if totals and (out is not None or into is not None):
        return NvLink(out, into, source="dcgm")
    out, into = reading.rate(NVLINK_OUT_TOTAL), reading.rate(NVLINK_IN_TOTAL)
    for pair in ((NVLINK_OUT_DATA, NVLINK_IN_DATA), (NVLINK_OUT_RATE, NVLINK_IN_RATE)):
        if out is None and into is None:
            out, into = (reading.believed(field) for field in pair)
    if out is not None or into is not None:
        return NvLink(out_bytes_per_second=out, in_bytes_per_second=into, source="dcgm")
    both = reading.believed(NVLINK_DATA)
    return None if both is None else NvLink(bytes_per_second=both, source="dcgm")


def _link(values: Mapping[Field, float]) -> PcieLink | None:
    """A generation or width of 0 is none: a link that sleeps, or a guest that can't see it."""
    found = PcieLink(
        *(
            int(values[field]) if values.get(field) else None
            for field in (LINK_GENERATION, LINK_WIDTH, MAX_LINK_GENERATION, MAX_LINK_WIDTH)
        )
    )
    return found if any(each is not None for each in found) else None


def _health(values: Mapping[Field, float]) -> GpuHealth | None:
    action, persistence = values.get(RECOVERY_ACTION), values.get(PERSISTENCE)
    found = GpuHealth(
        values.get(TEMPERATURE),
        values.get(POWER),
        _by_detail(PCIE_ERRORS, values),
        _by_detail(ECC_ERRORS, values),
        _by_detail(REMAPPED_ROWS, values),
        _by_detail(THROTTLE, values),
        None if action is None else int(action),
        None if persistence is None else bool(persistence),
    )
    return None if found == GpuHealth() else found


def _by_detail(fields: Sequence[Field], values: Mapping[Field, float]) -> tuple[tuple[str, float], ...]:
    return tuple((field.detail, values[field]) for field in fields if field in values)
