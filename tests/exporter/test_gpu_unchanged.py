"""What of a GPU has not changed is not derived anew, and nobody can tell that from the page."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.catalogue import GPU_PHENOMENA
from exporter.cycle import CycleSettings, State, initial, step
from exporter.derive.phenomenon import Kept
from exporter.gpu_cycle import GpuState
from exporter.gpu_sample import (
    GpuHealth,
    GpuMemory,
    GpuProcess,
    GpuSample,
    GpuUtilisation,
    NvLink,
    PcieLink,
    PcieTraffic,
)
from exporter.observation import Observation, SourceStatus
from exporter.render import PLAIN, Rendering, negotiate
from tests.support.gpus import identity

FORMATS = (PLAIN, negotiate("application/openmetrics-text;version=1.0.0"))
some = st.sampled_from
errors = some([(), (("replay", 1.0),), (("replay", 4.0), ("fatal", 0.0))])
GROUPS: dict[str, st.SearchStrategy[Any]] = {
    "up": some([True, True, True, False]),
    "down_because": some(["", "gpu_lost"]),
    "reader_started_at": some([1.0, 1.0, 1.0, 2.0]),
    "memory": st.none() | st.builds(GpuMemory, some([80e9]), some([5e9, 6e9, -1.0]), some([None, 1e9])),
    "utilisation": st.none() | st.builds(GpuUtilisation, some([0.0, 0.5, float("nan"), 7.0]), some([None, 0.25])),
    "pcie": st.none()
    | st.builds(PcieTraffic, some(["gpm", "counter"]), some([0.0, 1e9, 5e9]), some([0.0, 2e9]), st.none(), st.none(),
                some([0.0, 1.0])),
    "link": st.none() | st.builds(PcieLink, some([4, 5]), some([8, 16]), some([None, 5]), some([16])),
    "nvlink": st.none()
    | st.builds(NvLink, some([None, 1e9, 2e9]), some([0.0, 1e9]), some([None, 17, 18]), some([None, 1]),
                read_at=some([None, 100.0, 105.0])),
    "health": st.none()
    | st.builds(GpuHealth, some([None, 40.0, 41.0]), some([300.0]), errors, errors, errors, errors,
                some([None, 0, 1]), some([None, True])),
    "processes": some([None, (), (GpuProcess(7, 1e9),), (GpuProcess(7, 2e9), GpuProcess(8))]),
    "xids_total": some([(), ((79, 1.0),), ((13, 2.0), (79, 1.0))]),
    "xid_last_at": some([None, 101.0]),
    "errors_total": some([(), (("health", "timeout", 1.0),)]),
}  # fmt: skip


@st.composite
def seconds(draw: st.DrawFn) -> list[list[GpuSample]]:
    """A minute's worth of a GPU or two, of which each second some groups change; equal ones are other objects."""
    fields = [{name: draw(of) for name, of in GROUPS.items()} for _ in range(draw(st.integers(1, 2)))]
    found = []
    for second in range(draw(st.integers(1, 15))):
        for each in fields:
            for name in draw(st.lists(some(sorted(GROUPS)), max_size=2)):
                each[name] = draw(GROUPS[name])
        found.append(
            [
                GpuSample(
                    100.0 + second, identity(index), **{name: copied(value) for name, value in each.items()}
                )
                for index, each in enumerate(fields)
            ]
        )
    return found


def copied(value: Any) -> Any:  # noqa: ANN401 - any group's tuple
    """The same once more, as it comes out of the next frame."""
    return type(value)(*value) if isinstance(value, tuple) and hasattr(value, "_fields") else value


def forgetful(state: State) -> State:
    """The state of who knows nothing of what it looked at and told before."""
    gpus = {
        uuid: GpuState(
            gpu.window,
            {
                name: kept._replace(looked_at=None) if isinstance(kept, Kept) else kept
                for name, kept in gpu.memory.items()
            },
        )
        for uuid, gpu in state.gpus.items()
    }
    return replace(state, gpus=gpus)


@settings(deadline=None, max_examples=150)
@given(seconds())
def test_the_page_is_that_of_a_sidecar_that_makes_everything_anew(drawn: list[list[GpuSample]]) -> None:
    state = anew = initial(CycleSettings(version="test"))
    for samples in drawn:
        at = samples[0].at
        status = SourceStatus("nvml", "nvml", answering=True, last_at=at, read_seconds=None)
        state, snapshot = step(state, at + 0.25, [Observation(status, gpus=tuple(samples))])
        anew, other = step(forgetful(anew), at + 0.25, [Observation(status, gpus=tuple(samples))])
        assert snapshot.failures == other.failures == ()
        for wanted in FORMATS:
            assert Rendering(snapshot).body(wanted) == Rendering(other).body(wanted)


def test_what_has_not_changed_is_told_by_the_very_same_values() -> None:
    state = initial(CycleSettings())
    told = []
    for second in range(20):
        at = 100.0 + second
        sample = GpuSample(
            at,
            identity(),
            memory=GpuMemory(80e9, 5e9),
            utilisation=GpuUtilisation(0.5),
            nvlink=NvLink(1e9 * (second // 5), 0.0, 18, 0, read_at=100.0 + 5 * (second // 5)),
            health=GpuHealth(40.0, 300.0 + second // 10, errors_total(second)),
            pcie=PcieTraffic("gpm", 1e9 * second, 1e9 * second),
        )
        status = SourceStatus("nvml", "nvml", answering=True, last_at=at, read_seconds=None)
        state, _ = step(state, at + 0.25, [Observation(status, gpus=(sample,))])
        told.append({name: id(values) for name, (_, values) in state.gpus[identity().uuid].told.items()})
    times = {
        each.name: sum(then[each.name] != now[each.name] for then, now in pairwise(told))
        for each in GPU_PHENOMENA
    }
    assert times == {
        "gpu_inventory": 0,
        "gpu_memory": 0,
        "gpu_processes": 0,
        "gpu_load": 0,
        "pcie": 19,
        "nvlink": 3,
        "gpu_health": 1,
        "gpu_errors": 0,
    }


def errors_total(second: int) -> tuple[tuple[str, float], ...]:
    """The same counts, in a tuple of their own each second."""
    return (("replay", float(second * 0)),)
