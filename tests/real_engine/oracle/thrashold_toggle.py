"""Switches thrashold's probe off and on inside a real engine, to see what it costs: a general plugin, for tests only.

While the file that THRASHOLD_TOGGLE names exists, the probe's wrappers count for so many steps and stand aside for as
many, by turns; for each step a JSON line goes to the file beside it that ends in .jsonl: whether they counted, when
schedule() was called and how long the call took, both by the same clock.
"""

# The engine's own types can't be had where this is checked, and its scheduler has no public hooks.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN002, ANN003, ANN202, PLC0415

import json
import os
import time
from pathlib import Path

STEPS_A_TURN = 10


def register() -> None:
    path = os.environ.get("THRASHOLD_TOGGLE")
    if not path:
        return
    import thrashold_oracle
    import thrashold_probe
    from vllm.v1.core.sched.scheduler import Scheduler

    if getattr(Scheduler, "has_thrashold_toggle", False):
        return
    # each may be registered twice; this one must come last, so that it sees the time of both
    thrashold_oracle.register()
    thrashold_probe.register()
    Scheduler.has_thrashold_toggle = True
    watch(Scheduler, Path(path))


def watch(scheduler, path: Path) -> None:
    probe = vars(scheduler)["_thrashold_probe"]
    schedule = scheduler.schedule
    out = path.with_suffix(".jsonl").open("a", buffering=1, encoding="utf-8")
    turns = {"steps": 0, "running": False}

    def schedule_and_time(self, *args, **kwargs):
        turns["steps"] += 1
        if turns["steps"] % STEPS_A_TURN == 0:
            turns["running"] = path.exists()
            probe.on = not turns["running"] or not probe.on
        began = time.perf_counter()
        output = schedule(self, *args, **kwargs)
        seconds = time.perf_counter() - began
        if turns["running"]:
            out.write(json.dumps((probe.on, began, seconds)) + "\n")
        return output

    scheduler.schedule = schedule_and_time
