"""What goes over the pipe: both ends understand the same, whatever the library tells."""

from __future__ import annotations

import math
import os
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.gpu_sample import GpuHealth, GpuIdentity, GpuMemory, GpuSample, PcieTraffic
from exporter.sampler.backend import ReadError
from exporter.sampler.finite import finite
from exporter.sampler.frame import Frame, Hung, Own, Trouble, Unopened
from exporter.sampler.pipe import FrameLines, LineWriter, never_block

numbers = st.floats() | st.none()
needed = st.floats()
pairs = st.lists(st.tuples(st.text(max_size=5), needed), max_size=3).map(tuple)
healths = st.builds(
    GpuHealth, numbers, numbers, pairs, pairs, pairs, pairs, st.integers(0, 7) | st.none(), st.booleans()
)
memories = st.builds(GpuMemory, needed, needed, numbers)
traffics = st.builds(PcieTraffic, st.just("gpm"), *[numbers] * 6)


@given(healths | memories | traffics)
def test_what_is_no_number_goes_and_the_rest_stays(value: GpuHealth | GpuMemory | PcieTraffic) -> None:
    try:
        cleaned = finite(value)
    except ReadError:
        assert isinstance(value, GpuMemory)
        assert not all(map(math.isfinite, value[:2])), "only what says nothing without it is refused"
        return
    for before, after in zip(value, cleaned, strict=True):
        if isinstance(before, tuple):
            assert after == tuple(pair for pair in before if math.isfinite(pair[1]))
        elif isinstance(before, float) and not math.isfinite(before):
            assert after is None
        else:
            assert after == before


@given(healths, memories, traffics, st.floats(0, 1e9))
def test_a_frame_comes_out_as_it_went_in(
    health: GpuHealth, memory: GpuMemory, pcie: PcieTraffic, at: float
) -> None:
    groups: dict[str, Any] = {"health": finite(health), "pcie": finite(pcie)}
    if all(map(math.isfinite, memory[:2])):
        groups["memory"] = finite(memory)
    sample = GpuSample(at, GpuIdentity("GPU-ü", 3), errors_total=(("pcie", "timeout", 2.0),), **groups)
    frame = Frame(
        1,
        at,
        0.5,
        (sample,),
        8,
        Trouble("hung", "it hangs"),
        "590",
        Own(0.1, 0.2, 15e6, 0.034),
        (Unopened(7, "gpu_lost", "it is lost"),),
        (Hung("GPU-ü", "memory", 0.25),),
        (("timeout", 3.0),),
    )
    line = FrameLines().line(frame)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert msgspec.json.decode(line, type=Frame) == frame


some = st.sampled_from
samples = st.fixed_dictionaries(
    {
        "at": some([1.0, 2.0]),
        "identity": some([GpuIdentity("GPU-a", 0), GpuIdentity("GPU-b", 1)]),
        "up": st.booleans(),
        "memory": some([None, GpuMemory(80e9, 5e9), GpuMemory(80e9, 6e9, 1.0)]),
        "health": some([None, GpuHealth(40.0), GpuHealth(40.0, pcie_errors_total=(("replay", 1.0),))]),
        "xids_total": some([(), ((79, 1.0),)]),
    }
).map(lambda fields: GpuSample(**fields))


@given(st.lists(st.lists(samples, max_size=3), max_size=6))
def test_lines_of_one_frame_after_the_other_are_those_of_each_by_itself(
    drawn: list[list[GpuSample]],
) -> None:
    lines = FrameLines()
    for number, gpus in enumerate(drawn):
        frame = Frame(number, 2.0 * number, 0.5, tuple(gpus), own=Own(0.1 * number, 0.2, 15e6))
        line = lines.line(frame)
        assert line == FrameLines().line(frame)
        assert msgspec.json.decode(line, type=Frame) == frame


def test_a_frame_that_is_refused_leaves_the_next_one_alone() -> None:
    lines, sound = FrameLines(), GpuSample(1.0, GpuIdentity("GPU-a"), memory=GpuMemory(80e9, 5e9))
    lines.line(Frame(1, 1.0, 0.0, (sound,)))
    with pytest.raises(ValueError, match="Out of range float"):
        lines.line(Frame(2, 2.0, 0.0, (sound._replace(memory=GpuMemory(80e9, math.nan)),)))
    after = Frame(3, 3.0, 0.0, (sound, sound._replace(at=3.0)))
    assert msgspec.json.decode(lines.line(after), type=Frame) == after


def test_a_frame_with_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        FrameLines().line(Frame(1, math.nan, 0.0))


def test_a_full_pipe_takes_whole_lines_or_none() -> None:
    reading, writing = os.pipe()
    never_block(writing)
    writer = LineWriter(writing)
    lines = [str(number).encode() * 30_000 + b"\n" for number in range(9)]
    for line in lines:
        writer.put(line)
    assert writer.is_waiting
    read = b""
    while writer.is_waiting:
        read += os.read(reading, 1 << 20)
        writer.flush()
    writer.put(b"the last\n")
    read += os.read(reading, 1 << 20)
    os.close(reading)
    kept = read.split(b"\n")
    assert kept[:-2] == [line.rstrip(b"\n") for line in lines[: len(kept) - 2]]
    assert kept[-2:] == [b"the last", b""]
    assert writer.dropped == len(lines) - (len(kept) - 2) > 0
    with pytest.raises(BrokenPipeError):
        writer.put(b"nobody reads\n")
    os.close(writing)
