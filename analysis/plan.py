"""``thrashold plan`` as one result: what was asked, what was assumed, what fits, and what comes back sooner."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analysis.break_even import Costs, Reached, Times, changes
from analysis.capacity import GIB, Fit, Serving, Tail, fitted, tail
from exporter.hardware import Gpu
from exporter.kv_geometry import GeometryError
from exporter.kv_layers import KvModel, kv_model
from exporter.model_weights import Weights, weights

BLOCK_SIZES = (16, 32, 64, 128, 256)
LENGTHS = (1024, 4096, 16_384, 65_536)
LONGEST = 1 << 20
_CONFIG = "config.json"
_INDEX, _WEIGHTS = "model.safetensors.index.json", "*.safetensors"


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a folder or a config.json. ``weight_bytes`` and where they are from, in words."""

    name: str
    kv: KvModel
    weights: Weights
    weight_bytes: float
    weights_from: str


@dataclass(frozen=True, slots=True)
class OnGpu:
    """``break_even``: lengths from which on the other way is faster, beginning with ``fastest_first``."""

    gpu: Gpu
    fit: Fit
    sequences: tuple[tuple[int, int], ...]
    times: tuple[Times, ...]
    break_even: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """All of it."""

    model: Model
    serving: Serving
    reached: Reached
    on: tuple[OnGpu, ...]
    tails: tuple[tuple[Tail, ...], ...]
    lengths: tuple[int, ...]


def read_model(path: Path, cache_dtype: str, weight_dtype: str, weight_bytes: float | None) -> Model:
    """A folder's or a file's. Raises GeometryError with the file in it: no JSON, a key that is missing."""
    file = path / _CONFIG if path.is_dir() else path
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise GeometryError(f"{file}: can't be read: {error.strerror}") from error
    except ValueError as error:
        raise GeometryError(f"{file}: is no JSON: {error}") from error
    if not isinstance(config, dict):
        raise GeometryError(f"{file}: is no table of settings")
    if cache_dtype == "auto" and not any(_dtypes(config)):
        raise GeometryError(
            f"{file}: the model's config.json has no torch_dtype: say --kv-dtype and --weight-dtype"
        )
    try:
        model, found = kv_model(config, cache_dtype), _found_bytes(file.parent, weight_bytes)
        counted = weights(config, weight_dtype, found[0] if found else None)
    except GeometryError as error:
        raise GeometryError(f"{file}: {error}") from error
    size, told = found or (
        counted.bytes,
        f"an estimate from the config: {counted.count / 1e9:.2f} billion weights (--weight-gib)",
    )
    own = file.resolve().parent.name if file.name == _CONFIG else file.stem
    name = str(config.get("_name_or_path") or own or file.name)
    return Model(name, model, counted, size, told)


def _dtypes(config: Mapping[str, Any]) -> Iterator[object]:
    """All that a config says of its type, also in the part that is its text model."""
    for part in (config, config.get("text_config")):
        if isinstance(part, Mapping):
            yield from (part.get("dtype"), part.get("torch_dtype"))


def plan(
    model: Model, gpus: Sequence[Gpu], serving: Serving, reached: Reached, lengths: Sequence[int] = LENGTHS
) -> Plan:
    """Of each kind of GPU. Raises CapacityError, with the GPU in it."""
    on = []
    for gpu in gpus:
        fit = fitted(model.kv, model.weight_bytes, gpu, serving)
        costs = Costs(model.kv, model.weights, gpu, serving, reached)
        on.append(
            OnGpu(
                gpu,
                fit,
                tuple((tokens, fit.sequences(tokens)) for tokens in lengths),
                tuple(costs.times(tokens) for tokens in lengths),
                tuple(changes(costs, LONGEST)),
            )
        )
    tails = tuple(tuple(tail(model.kv, size, tokens) for size in BLOCK_SIZES) for tokens in lengths)
    return Plan(model, serving, reached, tuple(on), tails, tuple(lengths))


def assumptions(made: Plan) -> Iterator[str]:
    """All that isn't read from the model or from a data sheet."""
    serving, reached = made.serving, made.reached
    yield f"weights: {made.model.weight_bytes / GIB:.2f} GiB, {made.model.weights_from}"
    if serving.kv_cache_bytes is None:
        yield (
            f"memory: {serving.utilization:g} of each GPU, of which {serving.reserve_bytes / GIB:g} GiB are kept for"
            " activations, CUDA graphs and NCCL (--reserve-gib; vLLM measures it as it starts)"
        )
    yield (
        f"reached of the data sheet: {reached.flops:g} of FLOPs (--flops-reached), {reached.link:g} of the link"
        f" (--link-reached), {reached.memory:g} of memory bandwidth (--memory-reached)"
    )
    yield (
        "a copy goes out and comes in"
        if reached.ways > 1
        else "a copy only comes in: the tier is written through"
    ) + "; nothing else uses the link or the GPU meanwhile"
    if made.model.kv.stateful_layers:
        yield (
            f"{made.model.kv.stateful_layers} layers keep a state of one size for each sequence, which isn't counted,"
            " and vLLM pads blocks to it: the blocks told here are more than it will have"
        )
    if serving.pipeline_parallel > 1:
        yield "stages of the pipeline: layers and weights are split evenly, the fullest stage decides"


def as_json(made: Plan) -> dict[str, Any]:
    """For programs; bytes and seconds."""
    kv = made.model.kv
    return {
        "model": made.model.name,
        "kv_bytes_per_token": kv.bytes_per_token,
        "layers": [_plain(kind) for kind in kv.kinds],
        "stateful_layers": kv.stateful_layers,
        "weights": {
            "count": made.model.weights.count,
            "active": made.model.weights.active,
            "bytes": made.model.weight_bytes,
            "from": made.model.weights_from,
        },
        "serving": _plain(made.serving),
        "reached": _plain(made.reached),
        "assumptions": list(assumptions(made)),
        "gpus": [
            {
                "gpu": each.gpu.name,
                "source": each.gpu.source,
                "kv_cache_bytes": each.fit.kv_bytes,
                "weight_bytes": each.fit.weight_bytes,
                "num_gpu_blocks": each.fit.blocks,
                "usable_blocks": each.fit.usable,
                "tokens": each.fit.tokens,
                "sequences": [{"tokens": tokens, "sequences": count} for tokens, count in each.sequences],
                "break_even_tokens": list(each.break_even),
                "swap_is_faster_first": each.times[0].swap_is_faster if not each.break_even else None,
                "times": [{**_plain(times), "swap_is_faster": times.swap_is_faster} for times in each.times],
            }
            for each in made.on
        ],
        "tails": [
            {"sequence_tokens": tokens, "blocks": [_plain(each) for each in tails]}
            for tokens, tails in zip(made.lengths, made.tails, strict=True)
        ],
    }


def _plain(made: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any dataclass
    return asdict(made)


def _found_bytes(folder: Path, given: float | None) -> tuple[float, str] | None:
    """What weights take, and where that is from: as it is given, else what lies beside the config."""
    if given is not None:
        return given, "as given"
    index = folder / _INDEX
    try:
        told = json.loads(index.read_text(encoding="utf-8"))["metadata"]["total_size"]
        return float(told), f"as {_INDEX} has it"
    except (OSError, ValueError, KeyError, TypeError):
        pass
    files = list(folder.glob(_WEIGHTS))
    if files:
        return float(sum(file.stat().st_size for file in files)), f"as {len(files)} files of safetensors are"
    return None
