"""Reads the batches of KV events that engines publish: msgpack, in either of its two encodings.

A batch is an array ``[time, events, data-parallel rank]`` (or a map of the same), an event an array that
begins with its type (vLLM to 0.23, SGLang) or a map with ``type`` (vLLM from 0.24). Arrays grow at their end
and maps by keys: what is newer than this file is skipped.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import msgspec
from msgspec import Raw, Struct

GPU: Final = "gpu"

_MEDIA = {
    "GPU": GPU,
    "CPU": "cpu",
    "CPU_PINNED": "cpu",
    "STORAGE": "storage",
    "DISK": "storage",
    "FS": "storage",
    "OBJ": "storage",
}
"""The house's words for the media that engines name, in capitals or not; others are ``other``: labels stay few."""

_ABSENT = Raw()


class BrokenBatchError(ValueError):
    """The payload is no batch of KV events."""


class Event(Struct, gc=False, frozen=True):
    """Blocks that were stored or removed, by their hashes, or a cache that was cleared as a whole.

    ``group`` is the KV group of a hybrid model, each of which has blocks of its own under the same hashes.
    """

    kind: Literal["stored", "removed", "cleared"]
    medium: str = GPU
    group: int = 0
    hashes: tuple[int | bytes, ...] = ()


class Batch(Struct, gc=False, frozen=True):
    """What one step of the scheduler published, in order.

    ``at`` is the publisher's time, seconds since the epoch. ``rank`` is None where it tells none.
    ``unknown_events`` were of another type than the three above, or held what can't be read.
    """

    at: float
    rank: int | None
    events: tuple[Event, ...]
    unknown_events: int = 0


def decode(payload: bytes) -> Batch:
    """The batch that ``payload`` holds. Raises BrokenBatchError, and nothing else, where it holds none."""
    try:
        raw = (_BATCH_MAP if _is_map(payload) else _BATCH_ARRAY).decode(payload)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BrokenBatchError(str(error)) from error
    if not math.isfinite(raw.ts):
        raise BrokenBatchError("the time is not a number")
    events = []
    unknown = 0
    for each in raw.events:
        try:
            event = (_EVENT_MAP if _is_map(each) else _EVENT_ARRAY).decode(each)
        except (msgspec.DecodeError, ValueError, RecursionError):
            unknown += 1
            continue
        if isinstance(event, _ClearedMap | _ClearedArray):
            events.append(_CLEARED)
            continue
        # before 0.11 there was no other medium than the GPU, and no word for it
        medium = GPU if event.medium is None else _MEDIA.get(event.medium.upper(), "other")
        kind: Literal["stored", "removed"] = "stored" if isinstance(event, _STORED) else "removed"
        events.append(Event(kind, medium, event.group_idx or 0, event.block_hashes))
    return Batch(raw.ts, raw.data_parallel_rank, tuple(events), unknown)


def _is_map(encoded: bytes | Raw) -> bool:
    """Whether a msgpack value is a map: fixmap, map 16 or map 32."""
    first = memoryview(encoded)[:1].tobytes()
    return first in _MAP_BEGINNINGS


_MAP_BEGINNINGS = frozenset(bytes([first]) for first in (*range(0x80, 0x90), 0xDE, 0xDF))


# Only what is counted is read: msgspec skips the rest, of which token ids are the most, without making objects.


class _BatchMap(Struct, gc=False):
    ts: float
    events: list[Raw]
    data_parallel_rank: int | None = None


class _BatchArray(Struct, gc=False, array_like=True):
    ts: float
    events: list[Raw]
    data_parallel_rank: int | None = None


class _StoredMap(Struct, gc=False, tag="BlockStored"):
    block_hashes: tuple[int | bytes, ...]
    medium: str | None = None
    group_idx: int | None = None


class _RemovedMap(Struct, gc=False, tag="BlockRemoved"):
    block_hashes: tuple[int | bytes, ...]
    medium: str | None = None
    group_idx: int | None = None


class _ClearedMap(Struct, gc=False, tag="AllBlocksCleared"):
    pass


class _StoredArray(Struct, gc=False, array_like=True, tag="BlockStored"):
    block_hashes: tuple[int | bytes, ...]
    parent_block_hash: Raw = _ABSENT
    token_ids: Raw = _ABSENT
    block_size: Raw = _ABSENT
    lora_id: Raw = _ABSENT
    medium: str | None = None
    lora_name: Raw = _ABSENT
    extra_keys: Raw = _ABSENT
    group_idx: int | None = None


class _RemovedArray(Struct, gc=False, array_like=True, tag="BlockRemoved"):
    block_hashes: tuple[int | bytes, ...]
    medium: str | None = None
    group_idx: int | None = None


class _ClearedArray(Struct, gc=False, array_like=True, tag="AllBlocksCleared"):
    pass


_STORED = (_StoredMap, _StoredArray)
_CLEARED = Event("cleared")
_BATCH_MAP = msgspec.msgpack.Decoder(_BatchMap)
_BATCH_ARRAY = msgspec.msgpack.Decoder(_BatchArray)
_EVENT_MAP = msgspec.msgpack.Decoder(_StoredMap | _RemovedMap | _ClearedMap)
_EVENT_ARRAY = msgspec.msgpack.Decoder(_StoredArray | _RemovedArray | _ClearedArray)
