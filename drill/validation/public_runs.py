"""Reads the public runs of real vLLM engines that LLMServingSim published (MIT), from their archive.

Each run is a folder with ``meta.json``, ``requests.jsonl`` (lengths, arrivals and timings of each request) and
``timeseries.csv`` (the last statistics of each second).
"""

from __future__ import annotations

import csv
import io
import json
import math
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from drill.serving.config import EngineConfig
from drill.serving.models import MODELS
from drill.serving.request import Request
from drill.validation.comparison import Observed, Reading, Run
from exporter.hardware import GPUS

_MODELS = {
    "meta-llama/Llama-3.1-8B": "llama-8b",
    "Qwen/Qwen3-32B": "qwen3-32b",
    "Qwen/Qwen3-30B-A3B-Instruct-2507": "qwen3-30b-a3b",
}
_GPUS = {"RTX4090": "rtx-4090", "RTXPRO6000": "rtx-pro-6000"}
_GRID_SECONDS, _GRID_REACH = 0.01, 200


class RunError(ValueError):
    """An archive that isn't what it should be: which file, and what is wrong."""


@dataclass(frozen=True, slots=True)
class PublicRun:
    """A run, and the engine that it was made with; ``replicas`` data-parallel ranks."""

    run: Run
    config: EngineConfig
    replicas: int


def read_runs(archive: Path) -> list[PublicRun]:
    """All runs of the archive (.tar.xz), by name. Raises RunError, OSError."""
    files: dict[tuple[str, str], dict[str, str]] = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                opened = tar.extractfile(member) if member.isfile() else None
                if opened is not None and len(path.parts) >= 3:  # noqa: PLR2004 -- folder, GPU and model
                    files.setdefault((path.parts[-3], path.parts[-2]), {})[path.name] = opened.read().decode()
    except (tarfile.TarError, EOFError, UnicodeDecodeError) as error:
        raise RunError(f"{archive}: not an archive of runs: {error}") from error
    found = [_read(archive, gpu, model, texts) for (gpu, model), texts in sorted(files.items())]
    if not found:
        raise RunError(f"{archive}: holds no run")
    return found


def _read(archive: Path, gpu: str, model: str, texts: Mapping[str, str]) -> PublicRun:
    name = f"{gpu}/{model}"
    try:
        meta = json.loads(texts["meta.json"])
        observed = _requests(texts["requests.jsonl"].splitlines())
        rows = [{key: float(value) for key, value in row.items()} for row in _table(texts["timeseries.csv"])]
        config = _config(gpu, meta)
    except (KeyError, ValueError) as error:
        raise RunError(f"{archive}: {name}: {type(error).__name__}: {error}") from error
    shift = _shift(observed, rows)
    recorded = any(row["kv_cache_pct"] for row in rows)
    readings = tuple(
        Reading(
            row["t"] - shift, row["running"], row["waiting"], row["kv_cache_pct"] / 100 if recorded else None
        )
        for row in rows
    )
    replicas = int(meta["engine_kwargs"].get("data_parallel_size", 1))
    return PublicRun(Run(name, observed, readings), config, replicas)


def _table(text: str) -> Iterable[dict[str, str]]:
    return csv.DictReader(io.StringIO(text))


def _config(gpu: str, meta: Mapping[str, Any]) -> EngineConfig:
    asked = meta["engine_kwargs"]
    cache = meta.get("kv_cache") or {}
    return EngineConfig(
        model=MODELS[_MODELS[meta["model"]]],
        gpu=GPUS[_GPUS[gpu]],
        tensor_parallel=asked["tensor_parallel_size"],
        expert_parallel=asked["data_parallel_size"] if asked["enable_expert_parallel"] else 1,
        gpu_blocks=cache.get("num_gpu_blocks"),
        max_batched_tokens=asked["max_num_batched_tokens"],
        max_sequences=asked["max_num_seqs"],
    )


def _requests(lines: Iterable[str]) -> tuple[Observed, ...]:
    """By arrival, on a clock that starts with the first one.

    Arrivals are on the clock of the day, the rest on one that only rises: they are a constant apart, which is the
    shortest time that any request took from its arrival to the queue, taken to be none.
    """
    rows = sorted((json.loads(line) for line in lines), key=lambda row: row["arrival_time"])
    start = rows[0]["arrival_time"]
    clock = min(row["queued_ts"] - row["arrival_time"] for row in rows)
    return tuple(
        Observed(
            Request(number, row["arrival_time"] - start, row["input_toks"], row["output_toks"]),
            row["first_token_ts"] - clock - start,
            row["last_token_ts"] - clock - start,
        )
        for number, row in enumerate(rows)
    )


def _shift(observed: Iterable[Observed], rows: list[dict[str, float]]) -> float:
    """The series' time at the first arrival, which nobody wrote down.

    That under which the series' prompt tokens, counted as first tokens come, agree with the requests'.
    """
    tokens = [
        (each.first_token_seconds, each.request.prompt_tokens)
        for each in observed
        if each.first_token_seconds is not None
    ]

    def apart(shift: float) -> float:
        counted: dict[int, int] = {}
        for at, count in tokens:
            second = math.floor(at + shift) + 1
            counted[second] = counted.get(second, 0) + count
        return sum(abs(counted.get(round(row["t"]), 0) - row["prompt_throughput"]) for row in rows)

    return min((step * _GRID_SECONDS for step in range(-_GRID_REACH, _GRID_REACH + 1)), key=apart)
