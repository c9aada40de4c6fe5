"""Faults of machines, engines and gateways: the signal that is theirs shows them, soon and only then."""

from __future__ import annotations

from statistics import median

import pytest

from drill.scenarios.setting import Setting
from drill.second import EngineState
from tests.drill.scenarios.played import Played, played

HIT, WELL = "engine-0", "engine-1"
GPU_OF = {HIT: "GPU-00000000-0000-0000-0000-000000000000", WELL: "GPU-00000000-0000-0000-0001-000000000000"}


def before(run: Played, name: str, *labels: str) -> list[float]:
    """What a signal said from the second minute to the onset."""
    return run.values(name, *labels, start=60, until=run.onset - 1)


def after(run: Played, name: str, *labels: str, wait: float = 20.0) -> list[float]:
    """What a signal said from some seconds after the onset on."""
    return run.values(name, *labels, start=run.onset + wait, until=run.end)


def test_another_tenant_saturates_a_link_and_no_swap_explains_it() -> None:
    run = played("pcie-other-tenant", 300)
    assert max(before(run, "pcie_saturation_ratio")) < 0.1
    assert min(after(run, "pcie_saturation_ratio", GPU_OF[HIT])) > 0.9
    assert max(after(run, "pcie_saturation_ratio", GPU_OF[WELL])) < 0.1
    assert max(after(run, "pcie_swap_share_ratio")) == 0
    link = run.scene.engines[HIT].gpu.pcie_bytes_per_second
    gpus = run.scene.engines[HIT].tensor_parallel
    assert min(after(run, "pcie_unexplained_bytes_per_second", HIT, wait=70)) > 0.9 * link * gpus
    # nobody copies, so nobody is slower
    assert max(after(run, "token_interval_seconds", HIT)) < 2 * max(
        before(run, "token_interval_seconds", HIT)
    )


def test_a_narrow_link_is_told_and_nothing_else_changes() -> None:
    run = played("pcie-downgraded", 270)
    assert set(before(run, "pcie_link_downgraded")) == {0.0}
    assert set(after(run, "pcie_link_downgraded", GPU_OF[HIT])) == {1.0}
    assert set(after(run, "pcie_link_downgraded", GPU_OF[WELL])) == {0.0}
    assert max(after(run, "ttft_p50_seconds")) < 1.0


def test_slow_collectives_carry_less_than_usual_on_one_engine() -> None:
    run = played("collective-slow", 560)
    assert max(before(run, "collective_drop_ratio")) < 0.2
    assert max(after(run, "collective_drop_ratio", HIT, wait=60)) > 0.4
    assert max(after(run, "collective_drop_ratio", WELL)) < 0.2
    slow, usual = after(run, "token_interval_seconds", HIT), before(run, "token_interval_seconds", HIT)
    assert min(slow) > 1.5 * sum(usual) / len(usual)


def test_a_lost_gpu_is_down_its_engine_gone_and_its_load_elsewhere() -> None:
    run = played("gpu-lost", 270)
    assert set(before(run, "source_up", HIT)) == {1.0}
    assert set(after(run, "source_up", HIT)) == {0.0}
    assert set(after(run, "gpu_up", GPU_OF[HIT])) == {0.0}
    assert set(after(run, "gpu_up", GPU_OF[WELL])) == {1.0}
    # gone, not zero
    assert after(run, "kv_usage_ratio", HIT) == []
    assert {each.engines[0].state for each in run.seconds[-60:]} == {EngineState.DEAD}
    assert max(after(run, "sequences", WELL, "running")) > 1.5 * max(
        before(run, "sequences", WELL, "running")
    )


def test_a_frozen_engine_is_told_within_a_minute_and_no_other_is() -> None:
    run = played("engine-frozen", 270)
    assert set(before(run, "engine_frozen")) == {0.0}
    assert set(after(run, "engine_frozen", HIT, wait=60)) == {1.0}
    assert set(after(run, "engine_frozen", WELL)) == {0.0}
    assert min(after(run, "last_token_age_seconds", HIT, wait=30)) > 25
    assert set(after(run, "source_up", HIT)) == {1.0}


def test_leaked_blocks_stay_used_when_nothing_runs() -> None:
    run = played("kv-leak", 600)
    leaked = run.true(lambda each: each.truth.leaked_blocks, HIT)[-1]
    usable = run.scene.engines[HIT].usable_blocks
    assert 0.28 * usable < leaked < 0.32 * usable
    assert set(before(run, "kv_leak")) == {0.0}
    assert run.values("kv_leak", HIT, start=580) == [1.0] * 20
    assert run.values("kv_usage_ratio", HIT, start=599) == [leaked / usable]
    assert set(run.values("kv_leak", WELL)) == {0.0}


def test_a_renamed_metric_is_absent_and_the_rest_goes_on() -> None:
    run = played("metric-rename", 360)
    assert len(before(run, "kv_usage_ratio", HIT)) == run.onset - 61
    back = run.onset + 120
    assert run.values("kv_usage_ratio", HIT, start=back) == []
    assert len(run.values("kv_usage_ratio", WELL, start=back)) == 360 - back
    assert min(run.values("generation_tokens_per_second", HIT, start=back + 15)) > 0
    assert run.values("engine_restarts_total", HIT, start=back)[-1] == 1
    assert run.seconds[-1].engines[0].state is EngineState.SERVING


def test_a_hung_driver_takes_its_gpus_and_nothing_else() -> None:
    run = played("sidecar-blind", 450)
    blind = range(round(run.onset), round(run.end))
    up = {
        run.seconds[place].seconds: said for place, said in enumerate(run.values("source_up", f"nvml {HIT}"))
    }
    assert {second for second, value in up.items() if not value} == set(blind)
    gone, there = (
        run.values("pcie_bytes_per_second", GPU_OF[each], "in", start=run.onset + 20, until=run.end - 1)
        for each in (HIT, WELL)
    )
    assert (gone, len(there)) == ([], len(blind) - 21)
    assert min(after(run, "generation_tokens_per_second", HIT)) > 0
    # one failure since the sidecar began, which is none less when the driver is back
    assert run.values("source_errors_total", f"nvml {HIT}", start=blind[0] - 1) == [1.0] * (
        len(run.seconds) - blind[0] + 1
    )


def test_a_tight_gateway_rejects_while_engines_have_room() -> None:
    run = played("gateway-too-tight", 270)
    assert before(run, "gateway_requests_total", "rejected")[-1] == 0
    rejected = after(run, "gateway_requests_total", "rejected")
    assert rejected[-1] > 100
    assert max(after(run, "kv_usage_ratio", wait=60)) < 0.35
    assert sum(run.values("sequences", "waiting", start=run.onset + 20)) == 0
    assert max(after(run, "retry_amplification_ratio")) > 2
    assert rejected[-1] == run.seconds[-1].clients.rejected


def test_a_breaker_below_what_is_in_flight_stands_open_and_engines_have_room() -> None:
    run = played("gateway-breaker", 300)
    assert set(before(run, "gateway_breaker_open")) == {0.0}
    stands = after(run, "gateway_breaker_open")
    assert sum(stands) / len(stands) > 0.7
    assert after(run, "gateway_requests_total", "overflow")[-1] > 50
    assert max(after(run, "kv_usage_ratio", wait=60)) < 0.35


def test_a_slow_filter_is_what_refusals_wait_for_and_no_engine_sees_it() -> None:
    run = played("gateway-slow", 330)
    assert max(before(run, "gateway_reject_p99_seconds")) < 0.001
    # 1.5 s, of which its bucket tells that it is between 1 and 2.5
    slow = after(run, "gateway_reject_p99_seconds", wait=90)
    assert len(slow) > 30
    assert 1.0 < min(slow) <= max(slow) <= 2.5
    assert max(after(run, "ttft_p50_seconds")) < 1.0
    rejected = after(run, "gateway_requests_total", "rejected")[-1]
    assert 0 < rejected < 0.1 * run.seconds[-1].clients.attempts


def test_a_prompt_that_never_fits_stops_an_engine_until_it_is_restarted() -> None:
    run = played("engine-deadlocked", 300)
    assert set(before(run, "engine_deadlocked")) == {0.0}
    late = after(run, "engine_deadlocked", HIT, wait=105)
    assert set(late) == {1.0}
    assert set(after(run, "engine_deadlocked", WELL)) == {0.0}
    last = run.seconds[-1].engines[0]
    assert last.state is EngineState.SERVING
    assert last.gauges is not None
    assert (last.gauges.running, last.gauges.usage_ratio) == (0, 0.0)
    assert last.gauges.waiting > 10
    # nothing says that it stands still: there is nothing in it that could go on
    assert set(after(run, "engine_frozen", HIT)) == {0.0}


def test_an_engine_that_dies_and_comes_back_is_counted_each_time() -> None:
    run = played("engine-restarts", 460)
    assert set(before(run, "engine_restarts_total")) == {0.0}
    assert run.values("engine_restarts_total", HIT)[-1] == run.seconds[-1].engines[0].life == 3
    assert set(run.values("engine_restarts_total", WELL)) == {0.0}
    down = [second for second in run.seconds if second.engines[0].state is EngineState.DEAD]
    assert len(down) == 3 * 60


def test_a_busy_tenant_on_one_rank_is_told_of_the_engine() -> None:
    run = played("rank-imbalance", 330)
    assert run.scene.servers == {HIT: (HIT, f"{HIT}/1")}
    assert max(before(run, "rank_imbalance_ratio", HIT)) < 1.4
    assert min(after(run, "rank_imbalance_ratio", HIT, wait=90)) > 1.5
    held = sorted(
        each.gauges.running + each.gauges.waiting for each in run.seconds[-1].engines if each.gauges
    )
    assert held[1] > 3 * held[0]


def test_a_collapsed_prefix_cache_costs_prefill_and_time_to_first_token() -> None:
    run = played("prefix-collapse", 340)
    assert min(before(run, "prefix_hit_ratio", HIT)) > 0.85
    assert max(after(run, "prefix_hit_ratio", HIT, wait=90)) < 0.3
    assert min(after(run, "prefill_token_ratio", HIT, wait=90)) > 0.8
    assert max(after(run, "ttft_p50_seconds", HIT)) > 10 * max(before(run, "ttft_p50_seconds", HIT))


def test_prompts_computed_whole_stall_the_others_while_the_pool_has_room() -> None:
    run = played("prefill-blocking", 300)
    assert max(before(run, "last_token_age_seconds")) < 2
    assert max(after(run, "last_token_age_seconds")) >= 3
    stalled = after(run, "decode_stall_seconds_total", HIT)
    assert stalled[-1] - stalled[0] > 5
    assert max(after(run, "thrashing")) == 0
    usual, now = before(run, "tpot_p50_seconds", HIT), after(run, "tpot_p50_seconds", HIT)
    assert max(now) < 1.5 * max(usual)
    assert max(before(run, "head_of_line_ratio")) < 0.1
    told, true = after(run, "head_of_line_ratio", HIT, wait=60)[-1], stood_still_ratio(run, 60)
    assert told == pytest.approx(true, rel=0.25)
    assert told > 0.2


def stood_still_ratio(run: Played, seconds: int) -> float:
    """Share of the last so many seconds in which decodes waited for a prompt, half a second or more at a time."""
    results = [result for second in run.engine(len(run.seconds) - seconds) for result in second.results]
    usual = median(
        each.seconds / each.iterations for each in results if each.decode_tokens and not each.prefill_tokens
    )
    waits = [each.seconds - usual for each in results if each.prefill_tokens]
    return sum(wait for wait in waits if wait >= 0.5) / seconds


def test_overload_queues_and_does_not_thrash() -> None:
    run = played("overload", 340)
    assert max(after(run, "sequences", HIT, "waiting")) > 50
    assert max(run.values("thrashing")) == 0
    assert min(after(run, "generation_tokens_per_second", HIT)) > 0.5 * min(
        before(run, "generation_tokens_per_second", HIT)
    )


def test_nothing_is_wrong_with_a_heavy_day() -> None:
    run = played("benign-day", 300)
    assert run.scene.episodes == ()
    assert max(run.values("thrashing")) == 0
    assert max(run.values("engine_frozen")) == 0
    # bursts queue for a moment, and that's all
    assert sum(waiting > 0 for waiting in run.values("sequences", "waiting")) < 0.3 * len(run.seconds)


def test_scenarios_compose_on_one_fleet() -> None:
    run = played("engine-frozen", 270, Setting(), "pcie-other-tenant")
    assert [each.cause.value for each in run.scene.episodes] == ["engine-frozen", "pcie-other-tenant"]
    assert set(after(run, "engine_frozen", HIT, wait=60)) == {1.0}
    assert min(after(run, "pcie_saturation_ratio", GPU_OF[HIT])) > 0.9
