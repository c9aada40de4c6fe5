"""What a real engine publishes as KV events, told before it is encoded: a general plugin of vLLM V1, for tests only.

With THRASHOLD_KV_ORACLE set to a file it appends one JSON line when the publisher has bound its socket
(``endpoint``), and one for each batch handed to it: ``t`` (epoch) and running totals, ``batches``, ``stored`` and
``removed`` (blocks by medium) and ``restored`` (blocks stored on the GPU that had been removed from it at most 60 s
before; all removals are remembered).
"""

# The engine's own types can't be had where this is checked, and its publisher has no public hooks.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN002, ANN003, ANN202, PLC0415, SLF001

import json
import os
import time
from collections import Counter
from pathlib import Path

RESTORE_SECONDS = 60.0


def register() -> None:
    path = os.environ.get("THRASHOLD_KV_ORACLE")
    if not path:
        return
    from vllm.distributed.kv_events import ZmqEventPublisher

    if getattr(ZmqEventPublisher, "has_thrashold_oracle", False):
        return  # an engine may load its plugins more than once in a process
    ZmqEventPublisher.has_thrashold_oracle = True
    watch(ZmqEventPublisher, path)


class Count:
    """Running totals of what was handed over."""

    def __init__(self) -> None:
        self.batches = self.restored = 0
        self.stored, self.removed = Counter(), Counter()
        self._removed_at = {}

    def take(self, event) -> None:
        kind = type(event).__name__
        if kind not in {"BlockStored", "BlockRemoved"}:
            return
        count = self.stored if kind == "BlockStored" else self.removed
        count[event.medium] += len(event.block_hashes)
        if event.medium == "GPU":
            for each in event.block_hashes:
                self._note(each, time.time(), is_stored=kind == "BlockStored")

    def _note(self, block, now, *, is_stored) -> None:
        if not is_stored:
            self._removed_at[block] = now
        elif now - self._removed_at.pop(block, 0.0) <= RESTORE_SECONDS:
            self.restored += 1


def watch(publisher, path) -> None:
    set_up, publish = publisher._socket_setup, publisher.publish
    file = Path(path).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115 - as long as the engine lives
    count = Count()

    def tell(**what):
        file.write(json.dumps({"t": time.time(), **what}) + "\n")

    def set_up_and_tell(self, *args, **kwargs):
        set_up(self, *args, **kwargs)
        tell(endpoint=self._pub.last_endpoint.decode())

    def publish_and_tell(self, events, *args, **kwargs):
        count.batches += 1
        for event in events.events:
            count.take(event)
        tell(batches=count.batches, restored=count.restored, stored=count.stored, removed=count.removed)
        return publish(self, events, *args, **kwargs)

    publisher._socket_setup = set_up_and_tell
    publisher.publish = publish_and_tell
