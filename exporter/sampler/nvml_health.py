"""How a GPU fares: warmth, power, and what went wrong. Each part by itself."""

from __future__ import annotations

from collections.abc import Mapping

from exporter.gpu_sample import GpuHealth
from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.nvml_fields import (
    PCIE_ERRORS,
    REMAPPED_ROWS,
    THROTTLE_NANOSECONDS,
    FieldAnswer,
    field_values,
    recovery_action_field,
)
from exporter.sampler.nvml_parts import Parts

_COLDEST, _HOTTEST = -40, 200
_MOST_MILLIWATTS = 10e6
_LARGEST_COUNT = 2.0**63
_LAST_RECOVERY_ACTION = 255
_ECC_KINDS = ("corrected", "uncorrected")
_SINCE_THE_DRIVER_LOADED = 0
_CORE = 0


def read_health(parts: Parts) -> GpuHealth:
    """All of it; parts that can't be had are left out. Raises ReadError where nothing can be had."""
    celsius = parts.number("temperature", "nvmlDeviceGetTemperature", _COLDEST, _HOTTEST, _CORE)
    milliwatts = parts.number("power", "nvmlDeviceGetPowerUsage", 0, _MOST_MILLIWATTS)
    persistence = parts.number("persistence_mode", "nvmlDeviceGetPersistenceMode", 0, 1)
    recovery = recovery_action_field(parts.library.driver)
    values = _fields(
        parts, [*PCIE_ERRORS, *REMAPPED_ROWS, *THROTTLE_NANOSECONDS, *([recovery] if recovery else [])]
    )
    health = GpuHealth(
        temperature_celsius=celsius,
        power_watts=None if milliwatts is None else milliwatts / 1000,
        pcie_errors_total=_named(PCIE_ERRORS, values),
        ecc_errors_total=_ecc(parts),
        remapped_rows=_named(REMAPPED_ROWS, values),
        throttle_seconds_total=tuple((why, ns / 1e9) for why, ns in _named(THROTTLE_NANOSECONDS, values)),
        recovery_action=_recovery_action(None if recovery is None else values.get(recovery)),
        persistence_mode=None if persistence is None else bool(persistence),
    )
    if health == GpuHealth():
        raise ReadError("no_data", Remedy.SKIP, "health: nothing of it can be had")
    return health


def _fields(parts: Parts, ids: list[int]) -> dict[int, float]:
    wanted = [number for number in ids if not parts.is_never(_part(number))]
    if not wanted:
        return {}

    def read() -> list[FieldAnswer]:
        return field_values(parts.library, parts.handle, wanted)

    values = {}
    for number, answer in zip(wanted, parts.known("fields", read) or (), strict=False):
        if answer.error is None:
            values[number] = answer.value
        else:
            parts.note(_part(number), answer.error)
    return values


def _part(number: int) -> str:
    return f"field_{number}"


def _named(names: Mapping[int, str], values: Mapping[int, float]) -> tuple[tuple[str, float], ...]:
    return tuple((name, float(values[number])) for number, name in names.items() if number in values)


def _ecc(parts: Parts) -> tuple[tuple[str, float], ...]:
    """Only while ECC is on."""
    totals = (
        (
            name,
            parts.number(
                f"ecc_{name}",
                "nvmlDeviceGetTotalEccErrors",
                0,
                _LARGEST_COUNT,
                kind,
                _SINCE_THE_DRIVER_LOADED,
            ),
        )
        for kind, name in enumerate(_ECC_KINDS)
    )
    return tuple((name, total) for name, total in totals if total is not None)


def _recovery_action(value: float | None) -> int | None:
    return int(value) if value is not None and value <= _LAST_RECOVERY_ACTION else None
