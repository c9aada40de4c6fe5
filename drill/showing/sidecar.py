"""How a sidecar is pointed at a stage: by flags, or by a settings file that says more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from drill.scenarios.scene import Scene
from drill.showing.stage import ALL_GPUS, GATEWAY, Stage

FILE = "sidecar.yaml"


def command(stage: Stage, scene: Scene) -> str:
    """A command line of ``thrashold exporter`` that reads all of it."""
    engines = " ".join(f"--engine {stage.engine_url(name)}" for name in scene.servers)
    return f"thrashold exporter {engines} --gateway {stage.url(GATEWAY)} --gpus never --dcgm {stage.url(ALL_GPUS)}"


def settings(stage: Stage, scene: Scene, uuids: Mapping[str, Sequence[str]], *, nvml: bool) -> str:
    """The file for ``thrashold exporter --config``, with what no metric of an engine tells.

    ``nvml``: GPUs are read with a library, not from dcgm-exporter.
    """
    told = {
        "engines": [
            {
                "name": name,
                "url": stage.engine_url(name),
                "kv_bytes_per_token": scene.engines[name].model.kv.bytes_per_token,
                "tensor_parallel": scene.engines[name].tensor_parallel,
                "gpus": [uuid for rank in ranks for uuid in uuids[rank]],
            }
            for name, ranks in scene.servers.items()
        ],
        "gateways": [{"name": GATEWAY, "url": stage.url(GATEWAY)}],
        "gpus": {"nvml": "always"} if nvml else {"nvml": "never", "dcgm": stage.url(ALL_GPUS)},
    }
    return yaml.safe_dump(told, sort_keys=False)
