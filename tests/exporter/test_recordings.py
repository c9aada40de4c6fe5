"""What the sidecar says of real engines, against the truth that was recorded beside them."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporter.catalogue import SIGNALS
from exporter.derive.pingpong import BOUND_SECONDS
from exporter.signal import PEAK_SECONDS, Kind
from tests.exporter.golden import CYCLES, FOLDER, KV_BYTES_PER_TOKEN, said
from tests.support.captures import recording
from tests.support.replay import Cycle, replayed

NAMES = sorted(name for name in CYCLES if name.startswith("vllm"))
ORACLE = "vllm-0.32.0-oracle"


def cycles(name: str) -> tuple[Cycle, ...]:
    return replayed(name, KV_BYTES_PER_TOKEN)


def final(name: str) -> dict[str, float]:
    return cycles(name)[-1].named()


def raw(name: str, index: int, sample: str, **labels: str) -> float:
    """One sample of the engine's own text, by the reference parser, summed over what matches."""
    families = text_string_to_metric_families(recording(name).files[f"{index:03d}.prom"].decode())
    found = [
        each.value
        for family in families
        for each in family.samples
        if each.name == sample and labels.items() <= each.labels.items()
    ]
    assert found, f"{sample} is not in scrape {index} of {name}"
    return sum(found)


@pytest.mark.parametrize("name", sorted(CYCLES))
def test_every_signal_is_what_it_was(name: str) -> None:
    golden = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    now = said(name)
    for index, values in golden.items():
        assert set(now[index]) == set(values)
        assert now[index] == pytest.approx(values, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", sorted(CYCLES))
def test_values_keep_the_rules_of_the_house(name: str) -> None:
    before: dict[tuple[object, tuple[str, ...]], float] = {}
    for cycle in cycles(name):
        for value in cycle.snapshot.values:
            signal = value.signal
            assert signal in SIGNALS
            assert math.isfinite(value.value), signal.name
            assert value.value >= 0 or signal.name == "kv_headroom_tokens", signal.name
            if signal.name.endswith("_ratio") and signal.name not in {
                "kv_demand_ratio",
                "tail_fragmentation_reserve_ratio",
                "rank_imbalance_ratio",
            }:
                assert value.value <= 1, signal.name
            if signal.kind is Kind.COUNTER:
                key = (signal, value.labels)
                assert value.value >= before.get(key, 0.0), signal.name
                before[key] = value.value


@pytest.mark.parametrize("name", NAMES)
def test_totals_are_the_engine_s_own_rises(name: str) -> None:
    last_index = recording(name).lines("index.jsonl")[-1]["i"]
    ours = final(name)
    for signal, sample in (
        ("generation_tokens_total", "vllm:generation_tokens_total"),
        ("prompt_tokens_total", "vllm:prompt_tokens_total"),
        ("preemptions_total", "vllm:num_preemptions_total"),
    ):
        rose = raw(name, last_index, sample)
        if recording(name).files["000.prom"].find(sample.encode()) >= 0:
            rose -= raw(name, 0, sample)
        told = sum(value for key, value in ours.items() if key.startswith(signal))
        # what came before a series was first seen is not ours to tell
        assert told <= rose
        assert told >= 0.97 * rose


@pytest.mark.parametrize("name", NAMES)
def test_slo_events_are_the_engine_s_own_observations(name: str) -> None:
    last_index = recording(name).lines("index.jsonl")[-1]["i"]
    ours = final(name)
    left = ours["client_aborts_total"]
    per_request = "vllm:request_time_per_output_token_seconds_count"
    gaps = "vllm:time_per_output_token_seconds_count"
    counted = {
        "ttft": "vllm:time_to_first_token_seconds_count",
        "tpot": gaps if "0.8.5" in name else per_request,
    }
    for slo, sample in counted.items():
        told = sum(ours[f"slo_events_total{{slo={slo},good={good}}}"] for good in ("true", "false"))
        rose = raw(name, last_index, sample)
        if sample.encode() in recording(name).files["000.prom"]:
            rose -= raw(name, 0, sample)
        if sample == gaps:
            # which it is judged by is known with the first finished request
            assert 0.9 * rose <= told - left <= rose
        else:
            assert told - left == rose


@pytest.mark.parametrize("name", NAMES)
def test_peaks_hold_for_their_minute(name: str) -> None:
    seen: list[tuple[float, float]] = []
    for cycle in cycles(name):
        usage = cycle.sample.ranks[0].kv_usage_ratio if cycle.sample.ranks else None
        if usage is not None:
            seen.append((cycle.at, usage))
            known = [value for at, value in seen if at >= cycle.at - PEAK_SECONDS]
            assert cycle.named()["kv_usage_ratio_peak{rank=0}"] == max(known)


def test_usage_is_a_whole_number_of_blocks_in_every_scrape() -> None:
    for name, blocks in (("vllm-0.32.0", 255), ("vllm-0.32.0-offload", 255), ("vllm-0.8.5-v0-swap", 512)):
        for cycle in cycles(name):
            values = cycle.named()
            if "kv_usage_ratio{rank=0}" in values:
                assert values["kv_blocks{rank=0,state=total}"] == blocks
                used = values["kv_usage_ratio{rank=0}"] * blocks
                assert used == pytest.approx(values["kv_blocks{rank=0,state=used}"], abs=1e-6)


def test_data_parallel_ranks_have_half_of_the_sum_each() -> None:
    values = final("vllm-0.32.0-dp2-api2")
    assert values["kv_blocks{rank=0,state=total}"] == values["kv_blocks{rank=1,state=total}"] == 255


def test_the_model_s_bytes_a_token() -> None:
    for name in NAMES:
        if "0.8.5" not in name:
            assert final(name)["kv_bytes_per_token{rank=0,scope=gpu}"] == KV_BYTES_PER_TOKEN


def test_expected_tail_waste_against_the_truth_inside_the_scheduler() -> None:
    steps = recording(ORACLE).lines("oracle.jsonl")
    times = [step["t"] for step in steps]
    told = truth = 0.0
    inside = overloaded = 0
    for cycle in cycles(ORACLE):
        index = bisect_right(times, cycle.at + cycle.seconds) - 1
        if index < 0:
            continue
        values, true = cycle.named(), steps[index]["tail_tokens"]

        def bound(name: str, values: dict[str, float] = values) -> float:
            return values[f"tail_fragmentation_tokens{{rank=0,bound={name}}}"]

        if cycle.phase == "overload":
            overloaded += 1
            told += bound("expected")
            truth += true
            inside += bound("low") <= true <= bound("high")
    assert overloaded == 45
    assert told / truth == pytest.approx(1, abs=0.05)
    assert inside >= 38


def test_preemptions_lag_by_no_more_than_the_last_one() -> None:
    true = sum(len(step["preempted"]) for step in recording(ORACLE).lines("oracle.jsonl"))
    assert true == 156
    assert final(ORACLE)["preemptions_total{rank=0}"] == 155


def test_ping_pong_is_never_told_above_the_truth_and_the_histogram_comes_close() -> None:
    events = [
        (step["t"], who) for step in recording(ORACLE).lines("oracle.jsonl") for who in step["preempted"]
    ]
    checked = 0
    for cycle in cycles(ORACLE):
        told = cycle.named().get("pingpong_ratio{rank=0,method=bound}")
        window = Counter(who for at, who in events if cycle.at - BOUND_SECONDS < at <= cycle.at)
        if told is not None and window:
            assert told <= 1 - len(window) / window.total()
            checked += 1
    assert checked >= 30
    whole = Counter(who for _, who in events)
    truth = 1 - len(whole) / whole.total()
    assert final(ORACLE)["pingpong_ratio{rank=0,method=histogram}"] == pytest.approx(truth, abs=0.05)


@pytest.mark.parametrize(
    ("name", "left", "told"),
    [
        # the others had finished before the server noticed
        ("vllm-0.32.0-oracle", 72, 72),
        ("vllm-0.32.0", 75, 62),
        ("vllm-0.32.0-offload", 77, 52),
        ("vllm-0.32.0-dp2-api2", 66, 44),
        ("vllm-0.8.5-v0-swap", 79, 78),
    ],
)
def test_client_aborts(name: str, left: int, told: float) -> None:
    clients = recording(name).lines("clients.jsonl")
    assert sum(client["end"] == "disconnect" for client in clients) == left
    assert final(name)["client_aborts_total"] == told


@pytest.mark.parametrize("name", [name for name in NAMES if "dp2" not in name])
def test_the_mean_gap_between_tokens_is_the_clients_own(name: str) -> None:
    clients = [
        client
        for client in recording(name).lines("clients.jsonl")
        if client.get("ttft") is not None and client["chunks"] > 1
    ]
    waited = sum(client["dur"] - client["ttft"] for client in clients)
    theirs = waited / sum(client["chunks"] - 1 for client in clients)
    weighted = tokens = 0.0
    before = None
    for cycle in cycles(name):
        now = cycle.sample.ranks[0].generation_tokens_total
        told = cycle.named().get("token_interval_seconds{rank=0}")
        if before is not None and now is not None and told is not None:
            weighted += told * (now - before)
            tokens += now - before
        before = now
    assert weighted / tokens == pytest.approx(theirs, rel=0.1)


def test_offloaded_blocks_are_those_that_kv_events_told_of() -> None:
    values = final("vllm-0.32.0-offload")
    # the recorded events: 3,804 blocks stored to the CPU tier
    assert values["swap_blocks_total{rank=0,direction=out}"] == 3804
    assert values["swap_bytes_total{rank=0,direction=out}"] == 3804 * 32 * KV_BYTES_PER_TOKEN
    assert values["swap_bytes_total{rank=0,direction=in}"] == 28_475_392
    assert values["swap_tier_enabled{rank=0}"] == 1


def test_v0_really_swapping_is_seen_though_it_counts_no_bytes() -> None:
    recorded = cycles("vllm-0.8.5-v0-swap")
    values = recorded[-1].named()
    assert values["swap_tier_enabled{rank=0}"] == 1
    assert not any(name.startswith("swap_bytes_total") for name in values)
    assert max(cycle.named()["swapped_sequences{rank=0}"] for cycle in recorded) == 3
    # 128 preemptions of about 57 blocks: 7,285 blocks moved, told from outside to within a tenth
    told = values["swap_bytes_estimate_total{rank=0}"] / (16 * KV_BYTES_PER_TOKEN)
    assert told == pytest.approx(7_285, rel=0.1)


def test_an_engine_that_can_not_swap_says_so_once_it_was_asked_for_prefixes() -> None:
    enabled = [cycle.named().get("swap_tier_enabled{rank=0}") for cycle in cycles("vllm-0.32.0")]
    assert enabled[0] is None
    assert enabled[-1] == 0


def test_no_recording_froze_or_deadlocked_or_leaked() -> None:
    for name in NAMES:
        for cycle in cycles(name):
            for key, value in cycle.named().items():
                if key.startswith(("engine_frozen", "engine_deadlocked", "kv_leak", "thrashing")):
                    assert value == 0, (name, cycle.at, key)
