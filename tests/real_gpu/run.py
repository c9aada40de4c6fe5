"""The conformance run: asks a GPU, prints a table, writes a scenario that the fake library can play.

``python -m tests.real_gpu.run [--gpu INDEX] [--seconds S] [--out FOLDER]``; ``make real-gpu`` does it with checks.
"""

# ruff: noqa: ANN401 - what ctypes gives is of no type
from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from drill.fake_nvml import Feature, functions
from drill.fake_nvml.recorded import FORMAT
from exporter.sampler.backend import ReadError
from exporter.sampler.nvml import NvmlBackend
from exporter.sampler.nvml_device import NvmlDevice
from tests.real_gpu.calls import (
    FEATURES,
    FIELD_FEATURES,
    FIELDS,
    NOT_FOUND,
    answered,
    field_answers,
)
from tests.real_gpu.copying import Copier, CopyError, CudaCopier
from tests.real_gpu.questions import Answer, Gpu, asked

HOME = Path(__file__).resolve().parents[2] / ".real_gpu"
MIB = 1 << 20
SECONDS = 2.0


class NoGpuError(Exception):
    """There is no GPU to ask: why, and what to do."""


def opened(backend: NvmlBackend, index: int = 0) -> NvmlDevice:
    """The GPU of this index. Raises NoGpuError."""
    try:
        backend.open()
    except ReadError as error:
        raise NoGpuError(str(error)) from error
    for device in backend.devices():
        if isinstance(device, NvmlDevice) and device.identity.device_index == index:
            return device
    because = "; ".join(str(error) for _, error in backend.unopened())
    raise NoGpuError(f"no GPU {index} of {backend.expected}{': ' + because if because else ''}")


def copier_for(device: NvmlDevice, closing: ExitStack) -> tuple[Copier | None, str]:
    """What copies on this GPU, or None and why."""
    try:
        return closing.enter_context(CudaCopier(device.identity.pci_bus_id)), ""
    except (CopyError, AttributeError) as error:
        return None, str(error)


def recording(pynvml: Any, device: NvmlDevice, answers: list[Answer]) -> dict[str, Any]:
    """Everything the GPU said. Nothing in it names the machine or the card."""
    calls = answered(pynvml, device.handle)
    fields = field_answers(pynvml, device.handle, FIELDS)
    return {
        "format": FORMAT,
        "driver": {
            "version": pynvml.nvmlSystemGetDriverVersion(),
            "nvml": pynvml.nvmlSystemGetNVMLVersion(),
            "cuda": pynvml.nvmlSystemGetCudaDriverVersion(),
            "hidden": sorted(name for name in functions() if not hasattr(pynvml.nvmlLib, name)),
        },
        "profile": _profile(calls, fields),
        "fields": [
            {name: field[name] for name in ("id", "scope", "code", "type", "value")} for field in fields
        ],
        "calls": calls,
        "answers": [vars(answer) for answer in answers],
    }


def table(device: NvmlDevice, version: str, answers: list[Answer], calls: dict[str, Any]) -> list[str]:
    """What was found, for people."""
    lines = [f"{device.identity.name}, {version}"]
    lines += [f"{answer.number}. {answer.question}\n     {answer.found}" for answer in answers]
    lines.append("what a call costs in microseconds, or its code where there is no answer:")
    lines += [
        f"     {name:20} {told['microseconds']:10.1f}"
        if not told["code"]
        else f"     {name:20} code {told['code']}"
        for name, told in calls.items()
        if not name.startswith("nvlink_") or name == "nvlink_0"
    ]
    return lines


def write(told: dict[str, Any], folder: Path) -> Path:
    """Write a recording; gives its file."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "-", told["profile"]["name"].lower()).strip("-")
    file = folder / f"{name}-{told['driver']['version']}.json"
    file.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return file


def conformance(backend: NvmlBackend, index: int, seconds: float, folder: Path) -> tuple[list[str], Path]:
    """The whole run on an opened backend's GPU: the table and the scenario's file. Raises NoGpuError."""
    with ExitStack() as closing:
        device = opened(backend, index)
        closing.callback(backend.close)
        copier, why_not = copier_for(device, closing)
        pynvml = importlib.import_module("pynvml")
        answers = asked(Gpu(pynvml, device, copier, seconds))
        told = recording(pynvml, device, answers)
        lines = table(device, backend.version, answers, told["calls"])
        if why_not:
            lines.append(f"nothing was copied: {why_not}")
        file = write(told, folder)
        return [*lines, f"written to {file}"], file


def _profile(calls: dict[str, Any], fields: list[dict[str, Any]]) -> dict[str, Any]:
    def value(name: str, otherwise: Any = 0) -> Any:
        return calls[name].get("value", otherwise)

    memory = value("memory_v2") or value("memory") or {"total": 0, "used": 0}
    links = [name for name in calls if re.fullmatch(r"nvlink_\d+", name) and calls[name]["code"] == 0]
    lacks = [
        feature
        for feature, names in FEATURES.items()
        if all(calls[name]["code"] not in {0, NOT_FOUND} for name in names)
    ]
    codes = {field["id"]: field["code"] for field in fields}
    lacks += [feature for feature, field in FIELD_FEATURES.items() if codes[field]]
    if not (value("gpm_support") or {}).get("isSupportedDevice"):
        lacks.append(Feature.GPM)
    idle, most = value("generation", None), value("max_generation", 0)
    return {
        "name": value("name", ""),
        "architecture": value("architecture"),
        "memory_mib": memory["total"] // MIB,
        "reserved_mib": memory.get("reserved", 0) // MIB,
        "used_mib": memory["used"] // MIB,
        "generation": most,
        "width": value("max_width", 16),
        "idle_generation": idle if idle and idle < most else None,
        "idle_transmit": 1000.0 * value("throughput_out"),
        "idle_receive": 1000.0 * value("throughput_in"),
        "power_mw": value("power"),
        "temperature": value("temperature"),
        "nvlinks": len(links),
        "nvlink_version": value("nvlink_version"),
        "ecc": bool((value("ecc_mode") or [0])[0]),
        "serial": False,
        "virtualization": value("virtualization"),
        "lacks": [feature.name for feature in lacks],
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real_gpu.run", description=__doc__)
    parser.add_argument("--gpu", type=int, default=0, help="its index in PCI order")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long each measurement takes")
    parser.add_argument("--out", type=Path, default=HOME, help="where the scenario goes")
    chosen = parser.parse_args(arguments)
    try:
        lines, _ = conformance(NvmlBackend(), chosen.gpu, chosen.seconds, chosen.out)
    except NoGpuError as error:
        sys.stderr.write(f"no GPU to ask: {error}\n")
        return 1
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
