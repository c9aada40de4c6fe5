"""What happened to real engines, and what the ranking says of it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from alerts.causes import Cause
from analysis.cascade.ranking import Answer, causes
from analysis.cascade.template import Role
from exporter.derive.blocks import KV_USAGE
from exporter.derive.preemption import PREEMPTION_RATE
from exporter.derive.swap import SWAPPED
from exporter.derive.traffic import GENERATION_RATE, PROMPT_RATE, SEQUENCES
from tests.analysis.cascade.histories import captured, made_up

ARCHIVE = Path(__file__).resolve().parents[2] / "fixtures" / "public_runs" / "llmservingsim-vllm.tar.xz"
OVERLOADED = "llmservingsim-vllm/RTX4090/Llama-3.1-8B/timeseries.csv"
STEPS = pytest.mark.parametrize("step_seconds", [1.0, 15.0])


@STEPS
def test_vllm_v0_that_swaps_under_overload_is_told_as_swapping(step_seconds: float) -> None:
    found = causes(captured("vllm-0.8.5-v0-swap", step_seconds)).found
    assert [each.cause for each in found] == [Cause.SWAP_THRASH, Cause.OVERLOAD]
    assert found[1].explained_by == (Cause.SWAP_THRASH,)
    (swapped,) = (each for each in found[0].supporting if each.signal is SWAPPED)
    assert swapped.link.role is Role.NECESSARY
    assert swapped.baseline == 0.0
    assert swapped.worst is not None
    assert swapped.worst >= 1.0


@STEPS
@pytest.mark.parametrize("name", ["vllm-0.32.0", "vllm-0.32.0-oracle"])
def test_vllm_v1_under_pressure_is_overload_with_preemptions_and_no_ping_pong(
    name: str, step_seconds: float
) -> None:
    ranking = causes(captured(name, step_seconds))
    assert [each.cause for each in ranking.found] == [Cause.OVERLOAD]
    assert any(each.signal is PREEMPTION_RATE for each in ranking.found[0].supporting)
    (thrash,) = (each for each in ranking.fleet if each.cause is Cause.RECOMPUTE_THRASH)
    assert thrash.score == 0.0
    assert not any(each.link.role is Role.NECESSARY for each in thrash.supporting)


@pytest.mark.parametrize("name", ["llamacpp-2026.10.11549", "vllm-0.32.0-offload"])
def test_real_engines_that_were_well_are_told_as_well(name: str) -> None:
    assert causes(captured(name, 1.0)).answer is Answer.NOTHING_UNUSUAL


def test_a_recording_of_seconds_is_too_little() -> None:
    frame = captured("vllm-0.32.0", 1.0)
    short = frame.between(frame.start, frame.start + 40.0)
    assert causes(short).answer is Answer.NOT_ENOUGH_DATA


@STEPS
def test_a_public_run_on_a_real_gpu_is_load_beyond_capacity(step_seconds: float) -> None:
    """vLLM 0.19 on an RTX 4090, 300 requests at 10 a second: usage, sequences and tokens are all that was recorded."""
    with tarfile.open(ARCHIVE) as archive:
        file = archive.extractfile(OVERLOADED)
        assert file is not None
        rows = np.genfromtxt(io.BytesIO(file.read()), delimiter=",", names=True)
    every = round(step_seconds)
    frame = made_up(
        {
            (SEQUENCES, (("state", "running"),)): rows["running"][::every],
            (SEQUENCES, (("state", "waiting"),)): rows["waiting"][::every],
            (KV_USAGE, ()): rows["kv_cache_pct"][::every] / 100,
            (GENERATION_RATE, ()): rows["gen_throughput"][::every],
            (PROMPT_RATE, ()): rows["prompt_throughput"][::every],
        },
        step_seconds,
    )
    ranking = causes(frame)
    assert [each.cause for each in ranking.found] == [Cause.OVERLOAD]
    assert ranking.found[0].confidence < 1.0  # nobody watched gateways, objectives and preemptions
    assert any("gateway" in caveat for caveat in ranking.caveats)
