"""The rest of the mirror of ``control.h``: a GPU, and the block that holds them all."""

from __future__ import annotations

from ctypes import Array, Structure, c_char, c_double, c_uint32, c_uint64, sizeof

from drill.fake_nvml.block import (
    LINK_ERRORS,
    LOCATIONS,
    MAX_DEVICES,
    MAX_EVENTS,
    MAX_FIELDS,
    MAX_INSTANCES,
    MAX_LINKS,
    MAX_METRICS,
    MAX_PROCESSES,
    MAX_RULES,
    POLICIES,
    Event,
    Field,
    FlowRates,
    Instance,
    Metric,
    Process,
    Rule,
)


class Device(Structure):
    """A GPU. What has no method of ``Control`` is set here, while a program runs."""

    _fields_ = (
        ("name", c_char * 96),
        ("uuid", c_char * 96),
        ("serial", c_char * 32),
        ("bus_id", c_char * 32),
        ("features", c_uint32),
        ("presence", c_uint32),
        ("architecture", c_uint32),
        ("minor", c_uint32),
        ("virtualization", c_uint32),
        ("persistence", c_uint32),
        ("generation_max", c_uint32),
        ("generation_gpu_max", c_uint32),
        ("generation_idle", c_uint32),
        ("width_max", c_uint32),
        ("width_current", c_uint32),
        ("replays", c_uint32),
        ("gpu_util", c_uint32),
        ("memory_util", c_uint32),
        ("temperature", c_uint32),
        ("memory_temperature", c_uint32),
        ("power_mw", c_uint32),
        ("ecc_enabled", c_uint32),
        ("mig_enabled", c_uint32),
        ("recovery_action", c_uint32),
        ("nvlink_count", c_uint32),
        ("nvlink_version", c_uint32),
        ("nvlink_active", c_uint32),
        ("sm_clock", c_uint32),
        ("memory_clock", c_uint32),
        ("instance_count", c_uint32),
        ("field_count", c_uint32),
        ("metric_count", c_uint32),
        ("process_count", c_uint32),
        ("remapped", c_uint32 * 4),
        ("gpm_lag_us", c_uint32),
        ("memory_total", c_uint64),
        ("memory_used", c_uint64),
        ("memory_reserved", c_uint64),
        ("bar1_total", c_uint64),
        ("bar1_used", c_uint64),
        ("energy_mj", c_uint64),
        ("clock_reasons", c_uint64),
        ("event_types", c_uint64),
        ("violations_ns", c_uint64 * POLICIES),
        ("ecc", ((c_uint64 * LOCATIONS) * 2) * 2),
        ("link_errors", (c_uint64 * LINK_ERRORS) * MAX_LINKS),
        ("flows", FlowRates),
        ("instances", Instance * MAX_INSTANCES),
        ("fields", Field * MAX_FIELDS),
        ("metrics", Metric * MAX_METRICS),
        ("processes", Process * MAX_PROCESSES),
    )
    name: bytes
    uuid: bytes
    serial: bytes
    bus_id: bytes
    features: int
    presence: int
    architecture: int
    minor: int
    virtualization: int
    persistence: int
    generation_max: int
    generation_gpu_max: int
    generation_idle: int
    width_max: int
    width_current: int
    replays: int
    gpu_util: int
    memory_util: int
    temperature: int
    memory_temperature: int
    power_mw: int
    ecc_enabled: int
    mig_enabled: int
    recovery_action: int
    nvlink_count: int
    nvlink_version: int
    nvlink_active: int
    sm_clock: int
    memory_clock: int
    instance_count: int
    field_count: int
    metric_count: int
    process_count: int
    remapped: Array[c_uint32]
    gpm_lag_us: int
    memory_total: int
    memory_used: int
    memory_reserved: int
    bar1_total: int
    bar1_used: int
    energy_mj: int
    clock_reasons: int
    event_types: int
    violations_ns: Array[c_uint64]
    ecc: Array[Array[Array[c_uint64]]]
    link_errors: Array[Array[c_uint64]]
    flows: FlowRates
    instances: Array[Instance]
    fields: Array[Field]
    metrics: Array[Metric]
    processes: Array[Process]


class Board(Structure):
    """The whole block."""

    _fields_ = (
        ("magic", c_uint32),
        ("version", c_uint32),
        ("size", c_uint32),
        ("device_count", c_uint32),
        ("driver", c_char * 80),
        ("nvml", c_char * 80),
        ("cuda", c_uint32),
        ("window_us", c_uint32),
        ("clock_us", c_double),
        ("rule_count", c_uint32),
        ("event_count", c_uint32),
        ("calls", c_uint64),
        ("wide_processes", c_uint32),
        ("reserved_in_used", c_uint32),
        ("rules", Rule * MAX_RULES),
        ("events", Event * MAX_EVENTS),
        ("devices", Device * MAX_DEVICES),
    )
    magic: int
    version: int
    size: int
    device_count: int
    driver: bytes
    nvml: bytes
    cuda: int
    window_us: int
    clock_us: float
    rule_count: int
    event_count: int
    calls: int
    wide_processes: int
    reserved_in_used: int
    rules: Array[Rule]
    events: Array[Event]
    devices: Array[Device]


BOARD_BYTES = sizeof(Board)
