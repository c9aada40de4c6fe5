"""Batches of KV events as engines write them, in both encodings, and a recording of a real engine's."""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

_RECORDING = Path(__file__).resolve().parents[1] / "fixtures" / "kv_events" / "vllm-0.32.0-offload.raw.xz"

Encoding = Literal["array", "map"]
ENCODINGS: tuple[Encoding, ...] = ("array", "map")


def stored(
    *hashes: int | bytes, medium: str | None = "GPU", encoding: Encoding = "map", group: int | None = 0
) -> Any:  # noqa: ANN401 -- a list or a dict
    if encoding == "array":
        return ["BlockStored", list(hashes), None, [7, 8], 2, None, medium, None, None, group]
    return {
        "type": "BlockStored",
        "block_hashes": list(hashes),
        "parent_block_hash": None,
        "token_ids": [7, 8],
        "block_size": 2,
        "lora_id": None,
        "medium": medium,
        "lora_name": None,
        "group_idx": group,
    }


def removed(
    *hashes: int | bytes, medium: str | None = "GPU", encoding: Encoding = "map", group: int | None = 0
) -> Any:  # noqa: ANN401 -- a list or a dict
    if encoding == "array":
        return ["BlockRemoved", list(hashes), medium, group]
    return {"type": "BlockRemoved", "block_hashes": list(hashes), "medium": medium, "group_idx": group}


def cleared(encoding: Encoding = "map") -> Any:  # noqa: ANN401 -- a list or a dict
    return ["AllBlocksCleared"] if encoding == "array" else {"type": "AllBlocksCleared"}


def payload(at: float, events: Sequence[Any], rank: int | None = 0) -> bytes:
    """A batch, as an array of its own whatever its events are."""
    return msgspec.msgpack.encode([at, list(events), rank])


def message(number: int, content: bytes, topic: bytes = b"kv-events") -> list[bytes]:
    """The frames of a live message."""
    return [topic, number.to_bytes(8, "big"), content]


@lru_cache(maxsize=1)
def recorded() -> tuple[bytes, ...]:
    """Every payload of the recording, in order."""
    return tuple(_split(lzma.decompress(_RECORDING.read_bytes())))


def _split(raw: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(raw):
        size = int.from_bytes(raw[at : at + 4], "big")
        yield raw[at + 4 : at + 4 + size]
        at += 4 + size
