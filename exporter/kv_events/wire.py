"""Reads the batches of KV events that engines publish: msgpack, in either of its two encodings.

A batch is an array ``[time, events, data-parallel rank]`` (or a map of the same), an event an array that
begins with its type (vLLM to 0.23, SGLang) or a map with ``type`` (vLLM from 0.24). Arrays grow at their end
and maps by keys: what is newer than this file is skipped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, Final, Literal

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


class Batch(Struct, gc=False, frozen=True):
    """What one step of the scheduler published, in order.

    ``at`` is the publisher's time, seconds since the epoch. ``rank`` is None where it tells none.
    ``unknown_events`` were of another type than the three below, or held what can't be read.
    """

    at: float
    rank: int | None
    events: Sequence[Event]
    unknown_events: int = 0


# An event is what msgspec makes of it, and nothing is made of that again: tens of thousands may come a second.
# Only what is counted is read: msgspec skips the rest, of which token ids are the most, without making objects.


class Stored(Struct, gc=False, tag="BlockStored"):
    """Blocks that were stored, by their hashes.

    ``medium`` is the engine's word for where, which ``medium_of`` reads; ``group_idx`` the KV group of a hybrid model,
    each of which has blocks of its own under the same hashes.
    """

    kind: ClassVar[Literal["stored"]] = "stored"
    block_hashes: tuple[int | bytes, ...]
    medium: str | None = None
    group_idx: int | None = None


class Removed(Struct, gc=False, tag="BlockRemoved"):
    """Blocks that were removed, as those of ``Stored``."""

    kind: ClassVar[Literal["removed"]] = "removed"
    block_hashes: tuple[int | bytes, ...]
    medium: str | None = None
    group_idx: int | None = None


class Cleared(Struct, gc=False, tag="AllBlocksCleared"):
    """A cache that was cleared as a whole."""

    kind: ClassVar[Literal["cleared"]] = "cleared"


class StoredArray(Struct, gc=False, array_like=True, tag="BlockStored"):
    """``Stored`` in the older encoding."""

    kind: ClassVar[Literal["stored"]] = "stored"
    block_hashes: tuple[int | bytes, ...]
    parent_block_hash: Raw = _ABSENT
    token_ids: Raw = _ABSENT
    block_size: Raw = _ABSENT
    lora_id: Raw = _ABSENT
    medium: str | None = None
    lora_name: Raw = _ABSENT
    extra_keys: Raw = _ABSENT
    group_idx: int | None = None


class RemovedArray(Struct, gc=False, array_like=True, tag="BlockRemoved"):
    """``Removed`` in the older encoding."""

    kind: ClassVar[Literal["removed"]] = "removed"
    block_hashes: tuple[int | bytes, ...]
    medium: str | None = None
    group_idx: int | None = None


class ClearedArray(Struct, gc=False, array_like=True, tag="AllBlocksCleared"):
    """``Cleared`` in the older encoding."""

    kind: ClassVar[Literal["cleared"]] = "cleared"


_MapEvent = Stored | Removed | Cleared
_ArrayEvent = StoredArray | RemovedArray | ClearedArray
Event = _MapEvent | _ArrayEvent


@lru_cache(maxsize=64)
def medium_of(named: str | None) -> str:
    """The house's word for a medium as an engine names it."""
    # before 0.11 there was no other medium than the GPU, and no word for it
    return GPU if named is None else _MEDIA.get(named.upper(), "other")


def decode(payload: bytes | memoryview) -> Batch:
    """The batch that ``payload`` holds. Raises BrokenBatchError, and nothing else, where it holds none."""
    for whole in (_OF_MAPS, _OF_ARRAYS):
        try:
            raw = whole.decode(payload)
        except _CANNOT_BE_READ:
            continue
        return _batch(raw.ts, raw.data_parallel_rank, raw.events, 0)
    return _event_by_event(payload)


def _event_by_event(payload: bytes | memoryview) -> Batch:
    """What can be read of a batch that mixes encodings, or of whose events some can't be read."""
    try:
        raw = (_BATCH_MAP if _is_map(payload) else _BATCH_ARRAY).decode(payload)
    except _CANNOT_BE_READ as error:
        raise BrokenBatchError(str(error)) from error
    events: list[Event] = []
    unknown = 0
    for each in raw.events:
        try:
            events.append((_EVENT_MAP if _is_map(each) else _EVENT_ARRAY).decode(each))
        except _CANNOT_BE_READ:
            unknown += 1
    return _batch(raw.ts, raw.data_parallel_rank, events, unknown)


def _batch(at: float, rank: int | None, events: Sequence[Event], unknown: int) -> Batch:
    if not math.isfinite(at):
        raise BrokenBatchError("the time is not a number")
    return Batch(at, rank, events, unknown)


def _is_map(encoded: bytes | memoryview | Raw) -> bool:
    """Whether a msgpack value is a map: fixmap, map 16 or map 32."""
    first = memoryview(encoded)[:1].tobytes()
    return first in _MAP_BEGINNINGS


_CANNOT_BE_READ = (msgspec.DecodeError, ValueError, RecursionError)
_MAP_BEGINNINGS = frozenset(bytes([first]) for first in (*range(0x80, 0x90), 0xDE, 0xDF))


# Nearly every batch is an array of events that are all known and encoded alike: that is read in one go.


class _OfMaps(Struct, gc=False, array_like=True):
    ts: float
    events: tuple[_MapEvent, ...]
    data_parallel_rank: int | None = None


class _OfArrays(Struct, gc=False, array_like=True):
    ts: float
    events: tuple[_ArrayEvent, ...]
    data_parallel_rank: int | None = None


class _BatchMap(Struct, gc=False):
    ts: float
    events: list[Raw]
    data_parallel_rank: int | None = None


class _BatchArray(Struct, gc=False, array_like=True):
    ts: float
    events: list[Raw]
    data_parallel_rank: int | None = None


_OF_MAPS = msgspec.msgpack.Decoder(_OfMaps)
_OF_ARRAYS = msgspec.msgpack.Decoder(_OfArrays)
_BATCH_MAP = msgspec.msgpack.Decoder(_BatchMap)
_BATCH_ARRAY = msgspec.msgpack.Decoder(_BatchArray)
_EVENT_MAP = msgspec.msgpack.Decoder(_MapEvent)
_EVENT_ARRAY = msgspec.msgpack.Decoder(_ArrayEvent)
