"""Adds up the events of one data-parallel rank in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from exporter.kv_events.wire import GPU, Batch, medium_of
from exporter.kv_events_sample import KvEventsSample

RESTORE_SECONDS = 60.0
"""A block stored again within this long of its removal is a restore."""

MOST_REMEMBERED = 1 << 17
"""Removed blocks remembered, in 11 MB at most. The largest caches hold some 100,000 blocks."""


class Tally:
    """Counts from 0. Times are seconds on one clock that never jumps, and never fall from call to call."""

    def __init__(self) -> None:
        self._stores: Counter[str] = Counter({GPU: 0})
        self._removals: Counter[str] = Counter({GPU: 0})
        self._restores = 0
        self._clears = 0
        self._batches = 0
        self._lost = 0
        self._unknown = 0
        self._broken = 0
        self._removed = RecentlyRemoved()

    def take(self, batch: Batch, now: float) -> None:
        """Count what ``batch`` tells."""
        self._batches += 1
        self._unknown += batch.unknown_events
        for event in batch.events:
            if event.kind == "cleared":
                self._clears += 1
                self._removed.forget()  # what comes back now was cleared on purpose
                continue
            is_stored, blocks = event.kind == "stored", event.block_hashes
            medium = medium_of(event.medium)
            of_kind = self._stores if is_stored else self._removals
            of_kind[medium] += len(blocks)
            if medium != GPU:
                continue
            keys = _in_group(event.group_idx, blocks) if event.group_idx else blocks
            if is_stored:
                self._restores += self._removed.taken_back(keys, now)
            else:
                self._removed.add(keys, now)

    def lost(self, batches: int) -> None:
        """Count batches that never came."""
        self._lost += batches

    def broken(self) -> None:
        """Count a message that can't be read."""
        self._broken += 1

    def restarted(self) -> None:
        """The engine began anew, with an empty cache: what it stores now is no restore."""
        self._removed.forget()

    def sample(self, at: float, engine: str, rank: str) -> KvEventsSample:
        """All that was counted so far."""
        return KvEventsSample(
            at,
            engine,
            rank,
            tuple(self._stores.items()),
            tuple(self._removals.items()),
            self._restores,
            self._clears,
            self._batches,
            self._lost,
            self._unknown,
            self._broken,
        )


class RecentlyRemoved:
    """Which blocks were removed in the trailing ``RESTORE_SECONDS``, up to ``MOST_REMEMBERED`` of them.

    Two tables, the newer of which takes the place of the older once it is full or holds what is that old:
    nothing is ever looked for to be thrown away. Beyond the limit the oldest are forgotten too early.
    A block is what it is called, whatever that is, and kept as 64 bits of it.
    """

    def __init__(self) -> None:
        self._newer: dict[int, float] = {}
        self._older: dict[int, float] = {}
        self._newer_began = 0.0

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def add(self, blocks: Sequence[Hashable], now: float) -> None:
        """Remember ``blocks`` as removed now."""
        if len(self._newer) + len(blocks) > MOST_REMEMBERED // 2 or now - self._newer_began > RESTORE_SECONDS:
            self._older, self._newer, self._newer_began = self._newer, {}, now
        newer = self._newer
        for block in blocks[-MOST_REMEMBERED // 2 :]:
            newer[hash(block)] = now

    def taken_back(self, blocks: Sequence[Hashable], now: float) -> int:
        """How many of ``blocks`` were removed lately; each counts once for each removal."""
        newer, older = self._newer, self._older
        found = 0
        for block in blocks:
            key = hash(block)
            at = newer.pop(key, older.pop(key, None))
            if at is not None and now - at <= RESTORE_SECONDS:
                found += 1
        return found

    def forget(self) -> None:
        """Forget them all."""
        self._newer, self._older = {}, {}


def _in_group(group: int, blocks: Sequence[int | bytes]) -> Sequence[Hashable]:
    """Each group of a hybrid model has blocks of its own under the same hashes."""
    return [(group, each) for each in blocks]
