"""vLLM V1's tier below the GPU: full blocks are written through to host memory and loaded back on a hit.

The rules of its OffloadingConnector: what is computed is stored once, least recently used blocks make room,
loads and stores run beside the forward passes on the link, each direction one after the other; a sequence whose
blocks are on their way waits aside. Nothing is swapped: a preempted sequence starts over and may find its
blocks here.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from drill.serving.sequences import Sequence


class _Direction:
    """One direction of the link, which copies one thing after the other."""

    def __init__(self) -> None:
        self.done = self._busy_since = self._settled = 0.0
        self._spent = 0.0
        self.transfers: deque[tuple[float, int]] = deque()
        """Those that nobody was told the end of: when each is done, and its blocks."""

    def queue(self, blocks: int, seconds: float, now: float) -> float:
        """Something more to copy; when it will be done."""
        if self.done <= now:
            self.done = self._busy_since = now
        self.done += seconds
        self.transfers.append((self.done, blocks))
        return self.done

    def ended(self) -> list[int]:
        """Blocks of each transfer that is done, and was not told of before, as of ``settle``."""
        blocks = []
        while self.transfers and self.transfers[0][0] <= self._settled:
            blocks.append(self.transfers.popleft()[1])
        return blocks

    def settle(self, now: float) -> float:
        """Seconds spent copying since this was last asked. To be asked before anything is queued at ``now``."""
        spent = self._since_settled(now)
        self._spent += spent
        self._settled = now
        return spent

    def spent(self, now: float) -> float:
        """Seconds spent copying until now, in all."""
        return self._spent + self._since_settled(now)

    def _since_settled(self, now: float) -> float:
        return max(0.0, min(now, self.done) - max(self._settled, self._busy_since))


class OffloadTier:
    """Host memory for ``blocks`` blocks of the model (all GPUs' parts together)."""

    def __init__(
        self, blocks: int, block_bytes_gpu: float, bytes_per_second: float, block_tokens: int
    ) -> None:
        self.blocks = blocks
        self.block_seconds = block_bytes_gpu / bytes_per_second
        self.block_tokens = block_tokens
        self._known: OrderedDict[int, None] = OrderedDict()
        self._stores = _Direction()
        self._loads = _Direction()

    @property
    def used(self) -> int:
        """Blocks it holds."""
        return len(self._known)

    def busy_seconds(self, now: float) -> float:
        """How long the link will be copying from now on, in the busier direction."""
        return max(0.0, self._stores.done - now, self._loads.done - now)

    def settle(self, now: float) -> tuple[float, float]:
        """Blocks loaded and stored since this was last asked, parts of blocks counted."""
        return self._loads.settle(now) / self.block_seconds, self._stores.settle(now) / self.block_seconds

    def moved(self, now: float) -> tuple[float, float]:
        """Blocks loaded and stored until now, in all, parts of blocks counted."""
        return self._loads.spent(now) / self.block_seconds, self._stores.spent(now) / self.block_seconds

    def ended(self) -> tuple[list[int], list[int]]:
        """Blocks of each load and store that came to its end by ``settle``, since this was last asked."""
        return self._loads.ended(), self._stores.ended()

    def pending(self) -> tuple[int, int]:
        """Blocks of the loads and of the stores that are queued or under way."""
        loading, storing = (sum(blocks for _, blocks in way.transfers) for way in (self._loads, self._stores))
        return loading, storing

    def known_after(self, sequence: Sequence, blocks: int) -> int:
        """Blocks it holds of the sequence's beginning after the first ``blocks``, without a gap."""
        hashes = sequence.hashes(sequence.length - 1, self.block_tokens)[blocks:]
        count = 0
        for key in hashes.tolist():
            if key not in self._known:
                break
            count += 1
        return count

    def load(self, sequence: Sequence, start: int, count: int, now: float) -> float:
        """Fetch ``count`` blocks from the ``start``-th on; when they are there."""
        for key in sequence.hashes(sequence.length - 1, self.block_tokens)[start : start + count].tolist():
            self._known.move_to_end(key)
        sequence.stored_blocks = start + count
        return self._loads.queue(count, count * self.block_seconds, now)

    def store(self, sequence: Sequence, now: float) -> None:
        """Write through what became full since the last time; of the prompt it is found from now on."""
        full = sequence.computed // self.block_tokens
        if full <= sequence.stored_blocks:
            return
        prompt = min(full, sequence.prompt // self.block_tokens)
        new = full - max(sequence.stored_blocks, prompt)
        if prompt > sequence.stored_blocks:
            new += self._insert(sequence, sequence.stored_blocks, prompt)
        sequence.stored_blocks = full
        if new:
            self._stores.queue(new, new * self.block_seconds, now)

    def keep(self, sequence: Sequence, now: float) -> None:
        """A sequence loses its blocks: what it generated can be found here, when it comes back."""
        self.store(sequence, now)
        prompt = sequence.prompt // self.block_tokens
        full = sequence.computed // self.block_tokens
        if full > prompt:
            self._insert(sequence, prompt, full)

    def _insert(self, sequence: Sequence, start: int, end: int) -> int:
        """Put the hashes of those blocks in; how many are new. What was used least recently makes room."""
        known = self._known
        keys = sequence.hashes(end * self.block_tokens, self.block_tokens)[start:end].tolist()
        new = [key for key in keys if key not in known]
        if len(new) < len(keys):
            for key in keys:
                if key in known:
                    known.move_to_end(key)
        for _ in range(min(len(known), len(known) + len(new) - self.blocks)):
            known.popitem(last=False)
        known.update(dict.fromkeys(new[: self.blocks]))
        return len(new)
