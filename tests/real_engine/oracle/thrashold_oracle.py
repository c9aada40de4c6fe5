"""What a real engine does, told from inside its scheduler: a general plugin of vLLM V1, for tests only.

With THRASHOLD_ORACLE set to a file it appends one JSON line an event, each with ``t`` (epoch) and ``kind``:

``arrive``   the scheduler has taken a request in: ``id``
``step``     after a scheduling step: ``running``, ``waiting``, ``tail_tokens`` (slots that running
             sequences hold beyond the tokens they have computed), ``blocks_used`` (of the pool),
             ``decodes`` (sequences that this step computes one token of) and ``prefill_tokens`` (all
             other tokens it computes)
``preempt``  a sequence lost its blocks: ``id``
``end``      a request is over: ``id``, ``aborted`` (ended from outside, by a client that left),
             ``preemptions`` (how often it was), ``untold`` (those of them the engine's own counter
             will never hear of, because they ride on an output that the request no longer makes)

Without the variable nothing is touched. The sidecar has no part in this file, nor this file in it:
truth and measurement must not share an error.
"""

# The engine's own types can't be had where this is checked, and its scheduler has no public hooks.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN002, ANN003, ANN202, PLC0415, SLF001

import json
import os
import time
from pathlib import Path


def register() -> None:
    path = os.environ.get("THRASHOLD_ORACLE")
    if not path:
        return
    from vllm.v1.core.sched.scheduler import Scheduler

    if getattr(Scheduler, "has_thrashold_oracle", False):
        return  # an engine may load its plugins more than once in a process
    Scheduler.has_thrashold_oracle = True
    watch(Scheduler, path)


def watch(scheduler, path) -> None:
    from vllm.v1.engine import EngineCoreEventType
    from vllm.v1.request import RequestStatus

    schedule, preempt, free = scheduler.schedule, scheduler._preempt_request, scheduler._free_request
    add = scheduler.add_request
    file = Path(path).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115 - as long as the engine lives

    def tell(kind, **what):
        file.write(json.dumps({"t": time.time(), "kind": kind, **what}) + "\n")

    def tail_tokens(self):
        tail = 0
        for request in self.running:
            for blocks in self.kv_cache_manager.get_block_ids(request.request_id):
                # once scheduled, the computed tokens already include those of this step
                tail += max(0, len(blocks) * self.block_size - request.num_computed_tokens)
        return tail

    def add_and_tell(self, request, *args, **kwargs):
        tell("arrive", id=request.request_id)
        return add(self, request, *args, **kwargs)

    def schedule_and_tell(self, *args, **kwargs):
        output = schedule(self, *args, **kwargs)
        pool = self.kv_cache_manager.block_pool
        chunks = output.num_scheduled_tokens.values()
        decodes = sum(chunk == 1 for chunk in chunks)
        tell(
            "step",
            running=len(self.running),
            waiting=len(self.waiting),
            tail_tokens=tail_tokens(self),
            blocks_used=pool.num_gpu_blocks - 1 - pool.get_num_free_blocks(),  # it keeps one
            decodes=decodes,
            prefill_tokens=sum(chunks) - decodes,
        )
        return output

    def preempt_and_tell(self, request, *args, **kwargs):
        tell("preempt", id=request.request_id)
        return preempt(self, request, *args, **kwargs)

    def free_and_tell(self, request, *args, **kwargs):
        tell(
            "end",
            id=request.request_id,
            aborted=request.status == RequestStatus.FINISHED_ABORTED,
            preemptions=request.num_preemptions,
            untold=sum(event.type == EngineCoreEventType.PREEMPTED for event in request.events),
        )
        return free(self, request, *args, **kwargs)

    scheduler.add_request = add_and_tell
    scheduler.schedule = schedule_and_tell
    scheduler._preempt_request = preempt_and_tell
    scheduler._free_request = free_and_tell
