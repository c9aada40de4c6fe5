"""What can be set on one engine: where it is, how to get in, and what no metric of it tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta

from exporter.connection_settings import ConnectionSettings, Seconds, Text, settle
from exporter.derive.phenomenon import (
    LONG_PROMPT_TOKENS,
    TIME_PER_OUTPUT_TOKEN_SLO_SECONDS,
    TIME_TO_FIRST_TOKEN_SLO_SECONDS,
)
from exporter.kv_events_settings import KvEventsSettings
from exporter.kv_geometry import DTYPE_BYTES
from exporter.settings import RefusedError

GpuIndex = Annotated[int, Meta(ge=0, le=1023)]
Gpus = Annotated[int, Meta(ge=1, le=1024)]
KvBytes = Annotated[float, Meta(gt=0, le=1e9)]
BlockTokens = Annotated[int, Meta(ge=1, le=1 << 20)]

MOST_SOCKET_PATH_BYTES = 107


@dataclass(frozen=True, slots=True)
class SloSettings:
    """What users of an engine may expect; ``slo_events_total`` counts what kept to it and what didn't."""

    tpot_seconds: Annotated[
        Seconds,
        Meta(
            description="The most seconds a token after the first may take: on average over a request where the engine"
            " tells that (vLLM from 0.11), else each by itself."
        ),
    ] = TIME_PER_OUTPUT_TOKEN_SLO_SECONDS
    ttft_seconds: Annotated[Seconds, Meta(description="The most seconds until the first token.")] = (
        TIME_TO_FIRST_TOKEN_SLO_SECONDS
    )


@dataclass(frozen=True, slots=True)
class EngineSettings(ConnectionSettings):
    """One engine to read. May be written as its URL alone, or as NAME=URL."""

    shorthand: ClassVar[str] = "url"
    shorthand_name: ClassVar[str] = "name"

    name: Annotated[
        str,
        Meta(
            description="The value of the `engine` label; unless set, host:port of the URL. No two engines can have"
            " the same."
        ),
    ] = ""
    deadline_seconds: Annotated[
        Seconds,
        Meta(
            description="Seconds for a whole read, from connecting to the last byte. Engines under overload have been"
            " seen to answer after 14 s; waiting that long gains a number that is stale by then."
        ),
    ] = 10.0
    max_body_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=1 << 30,
            description="The most bytes a page may hold, as sent and when unpacked. An engine's page is tens of kB to"
            " a few MB; 32 MiB keeps a runaway one from filling memory.",
        ),
    ] = 32 * 1024 * 1024
    kv_bytes_per_token: Annotated[
        KvBytes | None,
        Meta(
            description="Bytes that one token takes in the KV cache of the whole model, over all GPUs of a replica,"
            " copies counted once. Goes before `model_config`. Signals in bytes need one of these two, or"
            " `tensor_parallel`: an engine tells its pool's size on one GPU and not on how many it lies."
        ),
    ] = None
    model_config: Annotated[
        Path | None,
        Meta(
            description="The model's `config.json`, as published with the weights, to work `kv_bytes_per_token` out"
            " from. Read once, at the start."
        ),
    ] = None
    kv_cache_dtype: Annotated[
        Text,
        Meta(
            description="The engine's KV cache dtype, for `model_config`: `auto` (the model's own), "
            + ", ".join(f"`{name}`" for name in (*DTYPE_BYTES, "fp8_ds_mla"))
            + "."
        ),
    ] = "auto"
    tensor_parallel: Annotated[
        Gpus | None,
        Meta(
            description="Over how many GPUs each layer is divided, as the engine was told. Enough for signals in bytes"
            " where the engine tells what its pool takes on one GPU; the log says at the first read what is missing."
        ),
    ] = None
    pipeline_parallel: Annotated[
        Gpus | None, Meta(description="Over how many stages the layers are divided, as the engine was told.")
    ] = None
    block_group_tokens: Annotated[
        tuple[BlockTokens, ...],
        Meta(
            description="Tokens a block holds, one number for each KV group of a hybrid model, where the engine"
            " doesn't tell. Empty tails of blocks are counted in each group."
        ),
    ] = ()
    gpus: Annotated[
        tuple[Text | GpuIndex, ...] | None,
        Meta(
            description="The GPUs it runs on, each by UUID, index in PCI order or PCI bus id (in quotes)."
            " One that isn't there is named in the log and on the page. Unless set, all of this"
            " machine; an empty list says that it runs elsewhere."
        ),
    ] = None
    kv_events: Annotated[
        KvEventsSettings | None,
        Meta(
            description="The KV events it publishes, where they are to be heard ([KV events](kv-events.md)). Needs the"
            " `kv-events` extra."
        ),
    ] = None
    probe: Annotated[
        Path | None,
        Meta(
            description="A Unix socket to make and to hear the engine's [probe](probe.md) on, which is told the same"
            " path. Only this user and root can connect. Ranks of one engine share it."
        ),
    ] = field(default=None, metadata={"written": True})
    slo: Annotated[SloSettings, Meta(description="What users of this engine may expect.")] = SloSettings()
    long_prompt_tokens: Annotated[
        int,
        Meta(ge=1, description="Prompts of more tokens than this count as long, for `long_prompt_ratio`."),
    ] = LONG_PROMPT_TOKENS

    def __post_init__(self) -> None:
        address = settle(self, "/metrics")
        if not self.name:
            object.__setattr__(self, "name", address)
        if self.probe is not None and len(bytes(self.probe)) > MOST_SOCKET_PATH_BYTES:
            raise RefusedError(
                "probe",
                f"{self.probe} is longer than the {MOST_SOCKET_PATH_BYTES} bytes that a Unix socket's path may have",
            )


def probe_source_name(engine: str) -> str:
    """What the source of an engine's probe is called, beside the engine's own."""
    return f"{engine}/probe"
