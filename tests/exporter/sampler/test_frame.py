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
from exporter.sampler.pipe import LineWriter, line_of, never_block

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
    line = line_of(frame)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert msgspec.json.decode(line, type=Frame) == frame


def test_a_frame_with_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        line_of(Frame(1, math.nan, 0.0))


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
