"""What a second tells of the engines' truth adds up with what the engines did."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drill.clients import ClientConfig
from drill.fleet import Fleet
from drill.second import Second
from drill.serving.config import EngineConfig, Generation
from drill.serving.content import Segment
from drill.serving.engine import Engine
from drill.serving.models import MODELS
from drill.serving.request import PreemptionMode, Request
from drill.truth import held_blocks
from drill.workload.arrivals import Arrival
from exporter.hardware import GPUS
from tests.drill.fleet.stories import arrival, fleet

SWAPPING = EngineConfig(
    MODELS["llama-70b"],
    GPUS["h100"],
    Generation.V0,
    tensor_parallel=8,
    gpu_blocks=2000,
    chunked_prefill=False,
    prefix_caching=False,
    max_batched_tokens=131072,
    preemption=PreemptionMode.SWAP,
    swap_bytes_gpu=40e9,
)


def swapping(count: int, output: int, engine: EngineConfig = SWAPPING) -> list[Second]:
    load = [Arrival(number * 0.01, (Segment(number, 1000),), output) for number in range(count)]
    return list(Fleet({"e": engine}, load, clients=ClientConfig(None)).run(120))


@settings(max_examples=6, deadline=None)
@given(st.integers(20, 40), st.integers(200, 1500), st.sampled_from([GPUS["h100"], GPUS["a100"]]))
def test_links_and_gpus_carry_in_the_seconds_what_iterations_come_to(
    count: int, output: int, gpu: object
) -> None:
    seconds = swapping(count, output, replace(SWAPPING, gpu=gpu))  # type: ignore[arg-type]
    if seconds[-1].clients.in_flight:
        return  # an iteration may be under way still
    results = [result for second in seconds for result in second.engines[0].results]
    activities = [second.engines[0].activity for second in seconds]
    for name in ("to_device_bytes", "to_host_bytes", "nvlink_bytes", "copy_seconds", "collective_seconds"):
        total = sum(getattr(each, name) for each in results)
        assert sum(getattr(each, name) for each in activities) == pytest.approx(total)
    busy = sum(each.sm_busy_ratio * each.seconds for each in results)
    assert sum(each.sm_busy_seconds for each in activities) == pytest.approx(busy)
    assert all(each.sm_busy_seconds <= 1.0 + 1e-9 for each in activities)


def test_swapped_bytes_are_those_of_the_blocks() -> None:
    seconds = swapping(40, 1200)
    results = [result for second in seconds for result in second.engines[0].results]
    out_blocks = sum(result.swap_out_blocks for result in results)
    assert out_blocks > 0
    truth = [second.engines[0].truth for second in seconds]
    assert sum(each.swap_out_bytes for each in truth) == pytest.approx(out_blocks * 16 * 327_680)
    assert sum(each.preemptions for each in truth) == sum(len(result.preempted) for result in results)


def test_a_long_iteration_is_spread_over_the_seconds_it_takes() -> None:
    load = [Arrival(0.5, (Segment(1, 100_000),), 2)]
    engine = replace(SWAPPING, gpu_blocks=20_000, max_model_tokens=131_072)
    seconds = list(Fleet({"e": engine}, load, clients=ClientConfig(None)).run(30))
    lasted = max(result.seconds for second in seconds for result in second.engines[0].results)
    assert lasted > 4.0
    busy = [second.engines[0].activity.sm_busy_seconds for second in seconds]
    assert busy[0] == pytest.approx(busy[1] / 2, rel=0.01)
    assert busy[1] == pytest.approx(busy[2]) == pytest.approx(busy[3])
    assert not any(second.engines[0].results for second in seconds[:4])


def test_tail_waste_is_what_last_blocks_lack() -> None:
    # blocks of 4, a prompt of 5: after a second the 6th token is under way, which leaves 2 slots of 8, and so on
    seconds = list(fleet([arrival(0.0, prompt=5, output=6)]).run(7))
    assert [second.engines[0].truth.tail_waste_tokens for second in seconds] == [2, 1, 0, 3, 2, 0, 0]


def test_who_is_preempted_again_within_30_s_is_a_repeat() -> None:
    load = [arrival(number / 10, prompt=8, output=20) for number in range(6)]
    seconds = list(fleet(load, blocks=16, reserve_whole_prompt=False).run(120))
    truth = [second.engines[0].truth for second in seconds]
    finished = [
        each for second in seconds for result in second.engines[0].results for each in result.finished
    ]
    times = [[time for time, _ in record.preemptions] for record in finished]
    assert len(finished) == 6
    assert sum(each.preemptions for each in truth) == sum(map(len, times))
    again = sum(after - before <= 30.0 for row in times for before, after in pairwise(row))
    assert sum(each.repeat_preemptions_30s for each in truth) == again > 0


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 60), st.integers(1, 40))
def test_tail_waste_of_one_sequence_lies_below_a_block(prompt: int, output: int) -> None:
    seconds = list(fleet([arrival(0.0, prompt=prompt, output=output)], max_batched_tokens=16).run(50))
    assert all(0 <= second.engines[0].truth.tail_waste_tokens < 4 for second in seconds)


def test_blocks_that_several_requests_share_are_held_once() -> None:
    engine = Engine(replace(SWAPPING, generation=Generation.V1, preemption=None, prefix_caching=True))
    begins_alike = (Segment(7, 160),)
    for number in range(3):
        engine.submit(
            Request(number, 5.0 * number, 160 + 32, 3000, (*begins_alike, Segment(100 + number, 32)))
        )
    while engine.step(12.0) is not None:
        pass
    tables = engine.holdings()
    assert len(tables) == 3
    every = [block for table in tables.values() for block in table]
    assert held_blocks(engine, tables) == len(set(every)) < len(every)
    assert held_blocks(engine, [1]) == len(tables[1])
    assert held_blocks(engine, [99]) == held_blocks(engine, []) == 0
