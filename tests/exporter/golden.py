"""The signals of the recordings as they stand in ``tests/fixtures/signals``.

``python -m tests.exporter.golden`` writes them anew: read the difference before you commit it.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.gpu_replay import replayed_with_gpus
from tests.support.gpus import identity
from tests.support.replay import replayed

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "signals"
KV_BYTES_PER_TOKEN = 512.0
"""Of the recorded model: 2 layers x 2 KV heads x head size 32, K and V, 16 bits."""

CYCLES = {
    "vllm-0.32.0": (0, 60, 112, 136),
    "vllm-0.32.0-offload": (0, 60, 97, 118),
    "vllm-0.32.0-dp2-api2": (0, 25, 38),
    "vllm-0.32.0-oracle": (0, 44, 61),
    "vllm-0.8.5-v0-swap": (0, 60, 92, 110),
    "llamacpp-2026.10.11549": (0, 30, 60, 74),
}
"""Of each recording, by index: idle, in the midst of the overload, at its end, afterwards."""

GPU_RECORDING, GPU_FILE = "vllm-0.32.0-offload", "vllm-0.32.0-offload-8-gpus"
GPU_CYCLES = (0, 60, 97, 118)
_OF_GPUS = ("gpu_", "pcie_", "nvlink_", "collective_", "engine_gpu_")


def said(name: str) -> dict[str, dict[str, float]]:
    """Signal values of the chosen cycles by index; what speaks of the sidecar itself is left out."""
    cycles = replayed(name, KV_BYTES_PER_TOKEN)
    return {
        str(index): {
            name: value
            for name, value in cycles[index].named().items()
            if not name.startswith(("signal_info", "build_info", "source_"))
        }
        for index in CYCLES[name]
    }


def said_of_gpus() -> dict[str, dict[str, float]]:
    """What is said of the first of eight GPUs and of the engine that runs on them, at the chosen cycles."""
    cycles, first = replayed_with_gpus(GPU_RECORDING), identity().uuid
    return {
        str(index): {
            name: value
            for name, value in cycles[index].named().items()
            if name.startswith(_OF_GPUS) and ("uuid=" not in name or first in name)
        }
        for index in GPU_CYCLES
    }


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    files = {**{name: said(name) for name in CYCLES}, GPU_FILE: said_of_gpus()}
    for name, values in files.items():
        (FOLDER / f"{name}.json").write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
