"""Offload thrash: the mechanism in the truth, and the signals that have to tell it."""

from __future__ import annotations

import pytest

from drill.scenarios.offload_thrash import OFFLOAD_THRASH
from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import Generation
from tests.drill.scenarios.played import ALONE, Played, played


@pytest.fixture(scope="module")
def run() -> Played:
    return played("offload-thrash", 480, ALONE)


def test_sequences_come_back_from_the_tier_and_are_thrown_out_again(run: Played) -> None:
    amid = run.engine(run.end, run.end + 120)
    preemptions = sum(each.truth.preemptions for each in amid)
    loaded = sum(each.truth.tier_load_bytes for each in amid)
    config = run.scene.engines["engine-0"]
    assert preemptions > 40
    assert sum(each.truth.repeat_preemptions_30s for each in amid) > 0.25 * preemptions
    # each comes back with many blocks, of which hardly any token is computed again
    assert loaded / config.block_bytes > 30 * preemptions
    recomputed = sum(each.truth.recomputed_tokens for each in amid)
    assert recomputed * config.block_bytes < 0.05 * loaded * config.block_tokens


def test_nothing_comes_back_before_the_onset_though_prompts_are_stored(run: Played) -> None:
    before = run.engine(until=run.onset)
    assert not any(each.truth.preemptions or each.truth.tier_load_bytes for each in before)
    assert sum(each.truth.tier_store_bytes for each in before) > 1e9
    assert set(run.signal("transfer_reciprocity_ratio", until=run.onset)) == {0.0}
    assert set(run.signal("thrashing", until=run.onset)) == {0.0}


def test_what_comes_back_is_told_to_the_byte(run: Played) -> None:
    truth = 0.0
    for second, engine in enumerate(run.engine()):
        truth += engine.truth.tier_load_bytes
        assert (run.at(second, "swap_bytes_total", "in") or 0.0) <= truth + 1.0
    assert run.signal("swap_bytes_total", "in")[-1] > 0.95 * truth > 1e10
    assert max(run.signal("transfer_reciprocity_ratio", start=run.end)) > 0.1
    assert run.signal("swap_tier_enabled")[-1] == 1.0


def test_preemptions_are_worth_less_than_in_contention_and_hardly_anybody_leaves(run: Played) -> None:
    assert 1.0 in run.signal("thrashing", start=run.onset)
    assert min(run.signal("tokens_per_preemption")) < 1_000
    assert run.signal("client_aborts_total")[-1] == run.seconds[-1].clients.timed_out


def test_v0_has_no_tier() -> None:
    with pytest.raises(SettingError, match="take generation v1"):
        OFFLOAD_THRASH.scene(Setting(generation=Generation.V0))
