"""Writes ``docs/engines.md``: what each engine gives, from the cycle over recorded and written pages.

``python -m tests.exporter.engines_page docs/engines.md``. Recordings go round until every window has been filled.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from exporter.check_command import lacks
from exporter.derive.phenomenon import EngineFacts
from exporter.dialects.registry import of_kind
from exporter.offers import SIGNALS
from exporter.sample import EngineSample
from exporter.signal import Signal
from tests.bench.replay import replay
from tests.support.pages import EVERY_SECONDS, SECONDS, moving, run

SETTINGS = EngineFacts(kv_bytes_per_token=131_072.0, kv_bytes_per_token_gpu=131_072.0, gpus_per_replica=1)
"""As of an engine on one GPU whose settings tell its model."""


class Column(NamedTuple):
    """An engine in the table: its head, what it is read from, and whether that was recorded or written."""

    head: str
    page: str
    recorded: bool
    what: str


COLUMNS = (
    Column("vLLM V1", "vllm-0.32.0", recorded=True, what="vLLM 0.32.0"),
    Column("vLLM V1, offload", "vllm-0.32.0-offload", recorded=True, what="vLLM 0.32.0 with KV offloading"),
    Column("vLLM V1, 2 ranks", "vllm-0.32.0-dp2-api2", recorded=True, what="vLLM 0.32.0, data parallel"),
    Column("vLLM V0", "vllm-0.8.5-v0-swap", recorded=True, what="vLLM 0.8.5, V0, preemption by swapping"),
    Column("SGLang", "sglang", recorded=False, what="SGLang, main branch of autumn 2026, with HiCache"),
    Column(
        "SGLang 0.5.10, 2 ranks", "sglang-0.5.10-dp2", recorded=False, what="SGLang 0.5.10, data parallel"
    ),
    Column("SGLang 0.4.9", "sglang-0.4.9", recorded=False, what="SGLang 0.4.9"),
    Column(
        "TensorRT-LLM",
        "trtllm",
        recorded=False,
        what="trtllm-serve with statistics of requests and iterations",
    ),
    Column("Triton", "trtllm-triton", recorded=False, what="TensorRT-LLM behind Triton"),
    Column("TGI", "tgi", recorded=False, what="Text Generation Inference, back end v3"),
    Column(
        "llama.cpp",
        "llamacpp-2026.10.11549",
        recorded=True,
        what="the llama.cpp server, xllamacpp 2026.10.11549",
    ),
    Column("Dynamo", "dynamo-frontend", recorded=False, what="Dynamo's front end"),
    Column(
        "Dynamo worker",
        "dynamo-worker",
        recorded=False,
        what="a Dynamo worker that hides its engine's series",
    ),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one column's engine gave in a long run, and its newest sample."""

    given: frozenset[Signal]
    sample: EngineSample


@lru_cache(maxsize=len(COLUMNS))
def seen(column: Column) -> Seen:
    """Every signal that had a value in any cycle."""
    given: set[Signal] = set()
    sample: EngineSample | None = None
    for cycle in run(_pages(column), SETTINGS):
        given.update(value.signal for value in cycle.snapshot.values)
        sample = cycle.sample
    assert sample is not None
    return Seen(frozenset(given.intersection(SIGNALS)), sample)


def _pages(column: Column) -> Iterator[bytes]:
    if not column.recorded:
        return moving(column.page)
    busy = replay(column.page)
    return (busy.body(second) for second in range(0, SECONDS, EVERY_SECONDS))


_HEAD = """\
# Engines

Written by `make docs` from the cycle itself, run over {seconds} s of each engine's page; a test fails when it is stale.
`thrashold exporter --engine URL --check` says the same of the engine at hand: what it gives, what it lacks, and which
setting would give more.

The engine is found by the names on its page, and `thrashold_engine_info{{engine_kind}}` says which it is. What an
engine can't tell is absent. Recorded means that the page is a real engine's; written that names, labels and bounds are
those of the engine's source and the values made up: nobody has run that one against the sidecar yet.

`●` has a value; `-` is absent, and below the table stands why. Signals in bytes need `kv_bytes_per_token`,
`model_config` or `tensor_parallel` in the settings.
"""


def page() -> str:
    """The whole page, Markdown."""
    lines = [_HEAD.format(seconds=SECONDS)]
    lines.append("| signal | " + " | ".join(column.head for column in COLUMNS) + " |")
    lines.append("|---" * (len(COLUMNS) + 1) + "|")
    for signal in SIGNALS:
        cells = ("●" if signal in seen(column).given else "-" for column in COLUMNS)
        lines.append(f"| `{signal.name}` | " + " | ".join(cells) + " |")
    for column in COLUMNS:
        found = seen(column)
        how = "recorded" if column.recorded else "written"
        kind = of_kind(found.sample.kind)
        lines.append(f"\n## {column.head}\n")
        lines.append(
            f'`engine_kind="{kind.kind}"`, {len(found.given)} of {len(SIGNALS)} signals; {how}: {column.what}.\n'
        )
        for lack in lacks(found.sample, SETTINGS, found.given):
            names = ", ".join(f"`{signal.name}`" for signal in lack.signals)
            lines.append(f"- {lack.why}: {names}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page to the path given. Exits 2 without one."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m tests.exporter.engines_page PATH")
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
