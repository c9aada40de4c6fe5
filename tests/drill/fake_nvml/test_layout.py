"""The C side's layouts are those of the binding and of the control block's mirror."""

from __future__ import annotations

import ctypes
import importlib
import re
import subprocess
from enum import IntEnum
from pathlib import Path

import pytest

from drill.fake_nvml import DRIVER_470, DRIVER_590, H100, Driver, Feature, Flow, block, board, functions
from tests.drill.fake_nvml.conftest import Machine
from tests.support.fake_library import Without

HEADER = Path(block.__file__).with_name("control.h").read_text()

# the binding's name of each struct, and of those members that are called otherwise there
PUBLIC = {
    "utilization": ("c_nvmlUtilization_t", {}),
    "memory": ("c_nvmlMemory_t", {}),
    "memory_v2": ("c_nvmlMemory_v2_t", {}),
    "bar1_memory": ("c_nvmlBAR1Memory_t", {"free": "bar1Free", "used": "bar1Used"}),
    "pci_info": ("nvmlPciInfo_t", {"bus_id": "busId"}),
    "process_info": (
        "c_nvmlProcessInfo_v3_t",
        {"memory": "usedGpuMemory", "gpu_instance": "gpuInstanceId"},
    ),
    "process_utilization": (
        "c_nvmlProcessUtilizationSample_t",
        {"timestamp": "timeStamp", "decoder": "decUtil"},
    ),
    "event_data": (
        "c_nvmlEventData_t",
        {"type": "eventType", "data": "eventData", "gpu_instance": "gpuInstanceId"},
    ),
    "field_value": ("c_nvmlFieldValue_t", {"type": "valueType", "code": "nvmlReturn"}),
    "sample": ("c_nvmlSample_t", {"value": "sampleValue"}),
    "ecc_counts": ("c_nvmlEccErrorCounts_t", {"memory": "deviceMemory"}),
    "gpm_metric": ("c_nvmlGpmMetric_t", {}),
    "gpm_metrics": ("c_nvmlGpmMetricsGet_t", {"older": "sample1"}),
    "gpm_support": ("c_nvmlGpmSupport_t", {}),
    "violation_time": ("c_nvmlViolationTime_t", {"violation_ns": "violationTime"}),
}
OURS = {
    "rule": block.Rule,
    "flow_rates": block.FlowRates,
    "instance": block.Instance,
    "field": block.Field,
    "metric": block.Metric,
    "process": block.Process,
    "event": block.Event,
    "device": board.Device,
    "control": board.Board,
}


def struct_of(name: str) -> tuple[type[ctypes.Structure], dict[str, str]]:
    if name in OURS:
        return OURS[name], {}
    theirs, members = PUBLIC[name]
    return getattr(importlib.import_module("pynvml"), theirs), members


def test_every_struct_has_the_callers_size_and_offsets(machine: Machine) -> None:
    _, call = machine(H100)
    told = dict(line.split() for line in call("layout()"))
    assert {name for name in told if "." not in name} == {*PUBLIC, *OURS}
    for name, number in told.items():
        owner, _, member = name.partition(".")
        struct, names = struct_of(owner)
        if member:
            assert getattr(struct, names.get(member, member)).offset == int(number), name
        elif owner == "gpm_metrics":  # its array is as long as the caller's headers say
            assert struct.metrics.offset == int(number)
        else:
            assert ctypes.sizeof(struct) == int(number), name


@pytest.mark.parametrize("ours", [Feature, block.Presence, block.Hang, block.ProcessKind])
def test_enumerations_are_numbered_alike(ours: type[IntEnum | Feature]) -> None:
    prefix = {"ProcessKind": "PROCESS_", "Presence": ""}.get(ours.__name__, ours.__name__.upper() + "_")
    for member in ours:
        found = re.search(rf"\b{prefix}{member.name} = ([\d <]+)[,\s]", HEADER)
        assert found, member
        base, _, shift = found[1].partition("<<")
        assert int(base) << int(shift or 0) == member


def test_flows_come_in_one_order() -> None:
    assert f"enum flow {{ {', '.join(flow.name for flow in Flow)}, FLOWS }};" in HEADER


def test_limits_are_alike() -> None:
    limits = dict(re.findall(r"#define ((?:MAX_\w+|LOCATIONS|LINK_ERRORS|POLICIES)) (\d+)", HEADER))
    assert len(limits) == 11
    assert {name: getattr(block, name) for name in limits} == {k: int(v) for k, v in limits.items()}


@pytest.mark.parametrize("driver", [DRIVER_590, DRIVER_470])
def test_the_library_exports_what_its_sources_define_and_the_driver_has(
    driver: Driver, fake_library: Without
) -> None:
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(fake_library(*driver.hidden))],
        capture_output=True,
        text=True,
        check=True,
    )
    exported = set(re.findall(r"\bnvml\w+", listed.stdout))
    assert exported == functions() - set(driver.hidden)
