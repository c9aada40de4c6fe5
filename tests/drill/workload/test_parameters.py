from __future__ import annotations

from itertools import pairwise, takewhile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drill.workload.arrivals import Stream
from drill.workload.lengths import INCIDENT_PROMPTS, Fixed, Lengths, LogNormal, Uniform, Weighted
from drill.workload.rates import Rate
from drill.workload.synthetic import Conversation, Load, closed_loop, conversations, open_loop

SHORT = Load(Uniform(10, 20), Fixed(5))


def draws(lengths: Lengths, count: int = 4000) -> list[int]:
    chance = np.random.default_rng(1)
    return [lengths.draw(chance) for _ in range(count)]


def counted(rate: Rate, variation: float = 1.0, seed: int = 1) -> list[float]:
    return list(rate.times(np.random.default_rng(seed), variation))


def test_lengths_keep_within_their_bounds() -> None:
    assert set(draws(Fixed(7), 5)) == {7}
    assert set(draws(Uniform(3, 5))) == {3, 4, 5}
    prompts = draws(INCIDENT_PROMPTS)
    assert 8_000 <= min(prompts) < 9_000
    assert 60_000 < max(prompts) <= 64_000


def test_half_of_a_log_normal_lies_above_its_median() -> None:
    lengths = draws(LogNormal(500.0, 0.8))
    assert np.median(lengths) == pytest.approx(500, rel=0.05)
    assert np.std(np.log(lengths)) == pytest.approx(0.8, rel=0.05)


def test_weighted_lengths_come_as_often_as_they_weigh() -> None:
    found = draws(Weighted((10, 20, 30), (1.0, 0.0, 3.0)))
    assert set(found) == {10, 30}
    assert found.count(30) / len(found) == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Fixed(0),
        lambda: Uniform(5, 4),
        lambda: LogNormal(5, 1.0, least=8),
        lambda: Weighted((1,), ()),
        lambda: Weighted((1, 2), (0.0, 0.0)),
        lambda: Rate(((0.0, 1.0),)),
        lambda: Rate(((5.0, 1.0), (4.0, 1.0))),
        lambda: Rate(((0.0, -1.0), (4.0, 1.0))),
        lambda: Load(Fixed(1), Fixed(1), systems=0),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: object) -> None:
    with pytest.raises(ValueError, match=r"lengths|log-normal|weights|rate|systems"):
        make()  # type: ignore[operator]


def test_even_arrivals_lie_where_the_rate_has_added_up_to_each_whole_number() -> None:
    assert counted(Rate.constant(2.0, 3.0), 0.0) == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    # a ramp from 0 to 2 in 4 s: after t seconds t^2 / 4 have come
    assert counted(Rate(((0.0, 0.0), (4.0, 2.0))), 0.0) == pytest.approx([2.0, 8**0.5, 12**0.5, 4.0])
    assert counted(Rate.steps([(0, 1.0), (2, 0.0), (5, 2.0)], 6.0), 0.0) == pytest.approx(
        [1.0, 2.0, 5.5, 6.0]
    )


def test_the_rate_at_a_time_follows_its_lines_and_steps() -> None:
    rate = Rate(((0.0, 0.0), (10.0, 5.0), (10.0, 1.0), (20.0, 1.0)))
    assert [rate.at(seconds) for seconds in (0.0, 5.0, 10.0, 19.9, 20.0)] == [0.0, 2.5, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("variation", [0.3, 1.0, 3.0])
def test_gaps_vary_as_asked_and_the_rate_holds(variation: float) -> None:
    found = counted(Rate.constant(50.0, 400.0), variation)
    gaps = np.diff(found)
    assert len(found) / 400 == pytest.approx(50.0, rel=0.08)
    assert np.std(gaps) / np.mean(gaps) == pytest.approx(variation, rel=0.1)


def test_windows_have_their_own_rates() -> None:
    found = np.array(counted(Rate.windows(100.0, [5.0, 0.0, 20.0])))
    per_window = [int(np.sum((found >= start) & (found < start + 100))) for start in (0, 100, 200)]
    assert per_window[1] == 0
    assert per_window[0] == pytest.approx(500, rel=0.15)
    assert per_window[2] == pytest.approx(2000, rel=0.1)


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0, 5)), min_size=2, max_size=6).map(sorted),
    st.floats(0, 4),
)
def test_arrivals_rise_within_the_rates_time(points: list[tuple[float, float]], variation: float) -> None:
    found = counted(Rate(tuple(points)), variation)
    assert all(before <= after for before, after in pairwise(found))
    assert all(points[0][0] - 1e-6 <= at <= points[-1][0] + 1e-6 for at in found)


def test_an_open_loop_is_the_same_each_time_and_another_with_another_seed() -> None:
    one = open_loop(SHORT, Rate.constant(5.0, 20.0), 1)
    assert list(one) == list(one)
    assert list(one) != list(open_loop(SHORT, Rate.constant(5.0, 20.0), 2))


def test_prompts_share_system_prompts_and_documents_and_nothing_else() -> None:
    load = Load(Uniform(100, 900), Fixed(5), system_tokens=50, systems=2, documents=3, tenant="t", clients=4)
    arrivals = list(open_loop(load, Rate.constant(10.0, 30.0), 1))
    assert len({each.content[0] for each in arrivals}) == 2
    assert len({each.content[1] for each in arrivals}) == 3  # the same document has the same length
    assert {each.client for each in arrivals} == {"t-0", "t-1", "t-2", "t-3"}
    own = list(open_loop(SHORT, Rate.constant(10.0, 30.0), 1))
    assert len({each.content for each in own}) == len(own)


def test_turns_of_an_open_loop_quote_all_before_them_in_the_order_of_time() -> None:
    talk = Conversation(Fixed(2), Fixed(7), think_seconds=10.0)
    arrivals = list(open_loop(SHORT, Rate.constant(2.0, 20.0), 1, conversation=talk))
    assert [each.seconds for each in arrivals] == sorted(each.seconds for each in arrivals)
    firsts = [each for each in arrivals if len(each.content) == 1]
    assert len(arrivals) == 3 * len(firsts)
    for first in firsts:
        _, second, third = (each for each in arrivals if each.content[0] == first.content[0])
        assert (second.content[1].content, second.content[1].tokens) == (first.answer, 5)
        assert third.content[:3] == second.content
        assert third.prompt_tokens == first.prompt_tokens + 2 * (5 + 7)


def test_closed_loops_ask_anew_without_end_and_always_the_same() -> None:
    sessions = list(closed_loop(SHORT, Rate.constant(75.0, 10.0), 1, think_seconds=3.0, leaves_seconds=60.0))
    assert len(sessions) == 750
    assert len(sessions[0].turns) > 1_000_000
    assert sessions[5].turns[900] == sessions[5].turns[900] != sessions[5].turns[901]
    assert not sessions[5].turns[0].continues
    contents = {turn.content for each in sessions[:20] for turn in each.turns[:20]}
    assert len(contents) == 400
    thinks = [turn.think_seconds for each in sessions[:50] for turn in each.turns[:20]]
    assert np.mean(thinks) == pytest.approx(3.0, rel=0.1)


def test_conversations_wait_for_their_answers() -> None:
    talk = Conversation(Uniform(1, 3), Fixed(7), think_seconds=10.0)
    sessions = list(conversations(SHORT, Rate.constant(10.0, 20.0), 1, talk))
    assert {len(each.turns) for each in sessions} == {1, 2, 3}
    assert all(turn.continues for each in sessions for turn in each.turns)


def test_a_stream_without_end_is_gone_through_as_far_as_asked() -> None:
    def endless() -> Stream:
        return open_loop(SHORT, Rate.constant(1.0, 1e12), 1)

    assert len(list(takewhile(lambda each: each.seconds < 100.0, endless().shifted(5.0)))) > 50
    assert len(list(endless().between(0.0, 100.0))) > 50
