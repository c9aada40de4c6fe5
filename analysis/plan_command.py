"""``thrashold plan``: what of a model fits on a GPU, and whether swapping or computing anew is sooner."""

from __future__ import annotations

import json
from pathlib import Path

import click

from analysis.break_even import Reached
from analysis.capacity import GIB, CapacityError, Serving
from analysis.plan import LENGTHS, as_json, plan, read_model
from analysis.plan_text import plan_lines
from exporter.hardware import GPUS, UnknownGpuError, gpu_by_name
from exporter.kv_geometry import GeometryError
from exporter.usage import FiniteRange, UsageFailure

_SHARE = FiniteRange(0, 1, min_open=True)


class Lengths(click.ParamType[tuple[int, ...]]):
    """Tokens, separated by commas."""

    name = "tokens"

    def convert(
        self, value: str | tuple[int, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Give them in order."""
        if isinstance(value, tuple):
            return value
        parts = value.split(",")
        if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
            self.fail(f"{value!r}: write whole numbers above 0, separated by commas", param, ctx)
        return tuple(sorted({int(part) for part in parts}))


@click.command("plan")
@click.argument("config", type=click.Path(path_type=Path, exists=True), metavar="CONFIG")
@click.option(
    "--gpu",
    "gpus",
    metavar="NAME",
    multiple=True,
    required=True,
    help=f"Of these: {', '.join(GPUS)}. Repeatable: each is planned with.",
)
@click.option(
    "--tensor-parallel",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="GPUs a layer is split over.",
)
@click.option(
    "--pipeline-parallel", type=click.IntRange(min=1), default=1, show_default=True, help="Stages of layers."
)
@click.option(
    "--block-tokens", type=click.IntRange(min=1), default=16, show_default=True, help="vLLM's --block-size."
)
@click.option(
    "--gpu-memory-utilization",
    "utilization",
    type=_SHARE,
    default=0.9,
    show_default=True,
    help="vLLM's, of the same name.",
)
@click.option(
    "--reserve-gib",
    type=FiniteRange(min=0),
    default=2.0,
    show_default=True,
    help="Of each GPU, for activations, CUDA graphs and NCCL: an assumption.",
)
@click.option(
    "--kv-cache-memory-bytes",
    "kv_bytes",
    type=click.IntRange(min=1),
    help="vLLM's, of the same name: what a GPU gives to the cache, whatever else it has.",
)
@click.option("--kv-dtype", default="auto", show_default=True, help="vLLM's --kv-cache-dtype.")
@click.option(
    "--weight-dtype",
    default="auto",
    show_default=True,
    help="Of the weights; auto is as the config says, quantisation included.",
)
@click.option(
    "--weight-gib",
    type=FiniteRange(min=0, min_open=True),
    help="What all weights take.  [default: as found]",
)
@click.option(
    "--lengths",
    type=Lengths(),
    default=LENGTHS,
    show_default=",".join(map(str, LENGTHS)),
    help="Of sequences, in tokens.",
)
@click.option(
    "--flops-reached", type=_SHARE, default=0.5, show_default=True, help="Share of the data sheet's."
)
@click.option("--link-reached", type=_SHARE, default=0.8, show_default=True, help="The same of PCIe.")
@click.option("--memory-reached", type=_SHARE, default=0.8, show_default=True, help="The same of HBM.")
@click.option(
    "--written-through",
    is_flag=True,
    help="A tier below has every block already: only the way in takes time.",
)
@click.option("--json", "wants_json", is_flag=True, help="The same as one JSON object.")
def plan_command(  # noqa: PLR0913, PLR0917 - click gives each by name
    config: Path,
    gpus: tuple[str, ...],
    tensor_parallel: int,
    pipeline_parallel: int,
    block_tokens: int,
    utilization: float,
    reserve_gib: float,
    kv_bytes: int | None,
    kv_dtype: str,
    weight_dtype: str,
    weight_gib: float | None,
    lengths: tuple[int, ...],
    flops_reached: float,
    link_reached: float,
    memory_reached: float,
    written_through: bool,  # noqa: FBT001
    wants_json: bool,  # noqa: FBT001
) -> None:
    """Say what of a model fits on a GPU: KV blocks, sequences by length, empty tails, swap against recompute.

    CONFIG is a model's config.json, or the folder that it lies in.
    """
    try:
        model = read_model(config, kv_dtype, weight_dtype, weight_gib and weight_gib * GIB)
        serving = Serving(
            tensor_parallel, pipeline_parallel, block_tokens, utilization, reserve_gib * GIB, kv_bytes
        )
        reached = Reached(flops_reached, link_reached, memory_reached, 1 if written_through else 2)
        made = plan(model, [gpu_by_name(name) for name in gpus], serving, reached, lengths)
    except (GeometryError, UnknownGpuError, CapacityError) as error:
        raise UsageFailure(str(error)) from error
    if wants_json:
        click.echo(json.dumps(as_json(made), allow_nan=False))
        return
    for line in plan_lines(made):
        click.echo(line)
