"""Readings and states of the demo, made up."""

from __future__ import annotations

from drill.screen import State
from drill.sidecar import Reading, parsed
from drill.story import new_events


def reading(**changed: float) -> Reading:
    values = {
        "usage": 0.97,
        "demand": 2.5,
        "waiting": 52.0,
        "swapped": 1.0,
        "preemptions": 9.0,
        "each": 800.0,
        "thrashing": 0.0,
        "wasted": 0.72,
        **changed,
    }
    whose = 'engine="e",model_name="m",rank="0"'
    page = f"""
thrashold_source_up{{source="e"}} 1
thrashold_kv_usage_ratio{{{whose}}} {values["usage"]}
thrashold_kv_usage_ratio_peak{{{whose}}} 1
thrashold_kv_demand_ratio{{{whose}}} {values["demand"]}
thrashold_sequences{{state="running",{whose}}} 11
thrashold_sequences{{state="waiting",{whose}}} {values["waiting"]}
thrashold_swapped_sequences{{{whose}}} {values["swapped"]}
thrashold_preemptions_total{{{whose}}} {values["preemptions"]}
thrashold_tokens_per_preemption{{{whose}}} {values["each"]}
thrashold_thrashing{{{whose}}} {values["thrashing"]}
thrashold_wasted_work_ratio{{{whose}}} {values["wasted"]}
thrashold_swap_bytes_estimate_total{{{whose}}} 58635080
thrashold_pingpong_ratio{{method="bound",{whose}}} 0
thrashold_client_aborts_total{{engine="e"}} 77
thrashold_signal_info{{signal="kv_usage_ratio",confidence="measured",method="gauge"}} 1
thrashold_signal_info{{signal="thrashold_pingpong_ratio",confidence="lower_bound",method="x"}} 1
"""
    return parsed(page)


def without(whole: Reading, *names: str) -> Reading:
    """The same reading before the signals ``names`` are known."""
    return Reading(
        {key: value for key, value in whole.values.items() if key[0] not in names}, whole.confidence
    )


CALM = reading(usage=0.16, demand=0.2, waiting=0, swapped=0, preemptions=0)
PHASES = ((12.0, "load"), (82.0, "overload"), (float("inf"), "after"))


def state(elapsed: float, *readings: Reading) -> State:
    history = tuple((float(second), each) for second, each in enumerate(readings))
    events = new_events((), elapsed, readings[-1]) if readings else ()
    return State(elapsed, 86.0, "http://127.0.0.1:54321", PHASES, history, events)
