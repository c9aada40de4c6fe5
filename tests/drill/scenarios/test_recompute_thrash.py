"""Recompute thrash: the mechanism in the truth, and the signals that have to tell it."""

from __future__ import annotations

from statistics import mean

import pytest

from drill.scenarios.recompute_thrash import RECOMPUTE_THRASH
from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import Generation
from tests.drill.scenarios.played import ALONE, Played, played

_AMID, _UNTIL = 330, 450
"""Seconds in which the pool is full and the thrash is on."""
_WINDOW = 30


@pytest.fixture(scope="module")
def run() -> Played:
    return played("recompute-thrash", None, ALONE)


def test_the_same_sequences_are_thrown_out_and_computed_again_over_and_over(run: Played) -> None:
    amid = run.engine(_AMID, _UNTIL)
    preemptions = sum(each.truth.preemptions for each in amid)
    generated = sum(result.generated_tokens for each in amid for result in each.results)
    recomputed = sum(each.truth.recomputed_tokens for each in amid)
    assert preemptions > 100
    assert sum(each.truth.repeat_preemptions_30s for each in amid) > 0.8 * preemptions
    assert recomputed > 4 * generated
    best = max(run.signal("generation_tokens_per_second", until=_AMID))
    assert generated / len(amid) < 0.6 * best


def test_nothing_is_seen_before_the_onset(run: Played) -> None:
    assert not any(each.truth.preemptions for each in run.engine(until=run.onset))
    assert set(run.signal("thrashing", until=run.onset)) == {0.0}
    assert max(run.signal("kv_demand_ratio", until=run.onset)) < 0.5


def test_thrashing_is_entered_once_while_it_lasts_and_left_after_it(run: Played) -> None:
    thrashing = run.signal("thrashing")
    assert set(run.signal("thrashing", start=_AMID, until=_UNTIL)) == {1.0}
    assert run.signal("thrash_episodes_total")[-1] == 1.0
    assert thrashing[-1] == 0.0
    assert not any(each.truth.preemptions for each in run.engine(-_WINDOW))


def test_what_preemption_costs_is_told_as_it_is(run: Played) -> None:
    errors = []
    for second, told in run.pairs("wasted_work_ratio"):
        if _AMID <= second < _UNTIL:
            window = run.engine(second + 1 - _WINDOW, second + 1)
            again = sum(each.truth.recomputed_tokens for each in window)
            generated = sum(result.generated_tokens for each in window for result in each.results)
            errors.append(told - again / (again + generated))
    assert len(errors) > 100
    assert mean(map(abs, errors)) < 0.1
    assert max(run.signal("tokens_per_preemption", start=_AMID, until=_UNTIL)) < 700


def test_the_bound_of_pingpong_is_never_above_the_true_share_of_repeats(run: Played) -> None:
    told = 0
    for second, bound in run.pairs("pingpong_ratio", "bound"):
        window = run.engine(max(0, second + 1 - _WINDOW), second + 1)
        preemptions = sum(each.truth.preemptions for each in window)
        if preemptions:
            told += 1
            assert bound <= sum(each.truth.repeat_preemptions_30s for each in window) / preemptions
    assert told > 100


def test_v0_which_lets_nobody_back_before_all_of_it_fits_is_refused() -> None:
    with pytest.raises(SettingError, match="take generation v1"):
        RECOMPUTE_THRASH.scene(Setting(generation=Generation.V0))
