"""Flags of made series; those of real engines and of the drill stand in tests/evaluation/test_detection.py."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analysis.anomaly import Baseline, Flag, Kind, flags, look, of_frame
from analysis.frame import Frame, Key
from analysis.history.history import History
from analysis.unusual import look_at
from exporter.derive.blocks import KV_USAGE
from exporter.derive.gpu_memory import GPU_MEMORY_USED
from exporter.derive.latency import TTFT_P99
from exporter.derive.nvlink import NVLINK_LINKS
from exporter.derive.ranks import RESTARTS
from exporter.derive.swap import SWAPPED
from exporter.derive.traffic import GENERATION_TOKENS, SEQUENCES

START = 1_800_000_000.0
USAGE = Key.of(KV_USAGE.full_name, {"engine": "engine-0"})
BYTES = Key.of(GPU_MEMORY_USED.full_name, {"uuid": "GPU-0"})
RESTARTS_OF = Key.of(RESTARTS.full_name, {"engine": "engine-0"})
TOKENS = Key.of(GENERATION_TOKENS.full_name, {"engine": "engine-0"})
RESTARTED = 1800


def times(instants: int, step: float = 1.0) -> np.ndarray:
    return START + step * np.arange(instants)


def calm(instants: int = 3600, seed: int = 1) -> np.ndarray:
    """A usage around a half that wanders."""
    chance = np.random.default_rng(seed)
    drift = np.convolve(chance.normal(0.0, 1.0, instants + 299), np.ones(300) / 300, "valid")
    return np.clip(0.5 + 0.8 * drift + chance.normal(0.0, 0.01, instants), 0.0, 1.0)


def found(values: np.ndarray, key: Key = USAGE, step: float = 1.0) -> tuple[Flag, ...]:
    return flags(values, times(len(values), step), step, key)


def test_an_incident_is_one_flag_with_all_that_is_to_be_said() -> None:
    values = calm() * 0.4
    values[1800:2130] = 0.99
    (flag,) = found(values)
    assert (flag.kind, flag.baseline) == (Kind.SPIKE, Baseline.BEFORE)
    assert (flag.start, flag.last) == (START + 1800, START + 2129)
    assert flag.end == START + 2130
    assert (flag.value, flag.high < 0.4, flag.low > 0.05) == (0.99, True, True)
    assert re.fullmatch(
        r"kv_usage_ratio of engine-0 rose to 0\.99; 0\.\d+ to 0\.\d+ was usual; \d+ spreads above;"
        r" 08:30:00 to 08:35:30",
        flag.words,
    )


@pytest.mark.parametrize(("level", "kind"), [(0.99, Kind.LEVEL_UP), (0.0, Kind.LEVEL_DOWN)])
def test_what_lasts_to_the_end_has_none(level: float, kind: Kind) -> None:
    values = calm() * 0.2 + 0.35
    values[2400:] = level
    (flag,) = found(values)
    assert (flag.kind, flag.start, flag.end) == (kind, START + 2400, None)
    assert "was still there at the end" in flag.words


def test_what_only_wanders_is_quiet() -> None:
    assert sum(len(found(calm(seed=seed))) for seed in range(60)) <= 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1.0, 1024.0]))
def test_a_unit_changes_no_flag(seed: int, unit: float) -> None:
    values = calm(seed=seed) * 1e10
    assume(
        not found(values, BYTES)
    )  # one in hundreds wanders out by itself, and may be out before it is made to
    values[2000:2400] *= 3.0
    plain, other = found(values, BYTES), found(values * unit, BYTES)
    assert [(flag.start, flag.end, flag.kind) for flag in plain] == [
        (flag.start, flag.end, flag.kind) for flag in other
    ]
    assert any(abs(flag.start - START - 2000) <= 5 for flag in plain)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e12, -3.5])
def test_a_constant_is_quiet(value: float) -> None:
    assert found(np.full(1000, value)) == ()


def test_a_slow_drift_is_none_and_a_steep_rise_does_not_explain_itself_away() -> None:
    noise = np.random.default_rng(4).normal(0.0, 0.01, 7200)
    assert found(0.2 + 0.5 * np.arange(7200) / 7200 + noise) == ()
    rise = 0.2 + 0.7 * np.clip((np.arange(7200) - 5000) / 100, 0.0, 1.0) + noise
    (flag,) = found(rise)
    assert 5000 <= flag.start - START <= 5100


def test_a_gap_is_neither_scored_nor_an_event() -> None:
    values = calm()
    values[1200:1900] = np.nan
    assert found(values) == ()
    values[1900:1903] = np.nan
    values[2500:2600] = 3.0
    (flag,) = found(values)
    assert flag.start == START + 2500


def counter(rates: np.ndarray) -> np.ndarray:
    return np.cumsum(rates)


def test_a_counter_is_looked_at_by_its_rate_and_a_reset_is_none() -> None:
    chance = np.random.default_rng(5)
    rates = chance.poisson(300.0, 3600).astype(float)
    values = counter(rates)
    values[RESTARTED:] -= values[RESTARTED - 1]
    assert found(values, TOKENS) == ()
    rates[2500:2700] = 3000.0
    (flag,) = found(counter(rates), TOKENS)
    assert flag.is_rate
    assert flag.words.startswith("generation_tokens_total per second of engine-0 rose to 3e+03;")


def test_a_counter_that_appears_late_or_jumps_over_a_gap_is_no_event() -> None:
    values = counter(np.full(3600, 20.0)) + 1e9
    values[:500] = np.nan
    values[1500:1700] = np.nan
    values[1700:] += 1e8
    assert found(values, TOKENS) == ()


def frame(**columns: np.ndarray) -> Frame:
    keys = {"usage": USAGE, "tokens": TOKENS, "restarts": RESTARTS_OF}
    instants = len(next(iter(columns.values())))
    return Frame(
        times(instants), 1.0, tuple(keys[name] for name in columns), np.column_stack(list(columns.values()))
    )


def test_a_restart_is_no_event_by_itself() -> None:
    usage, tokens = calm() * 0.3 + 0.4, counter(np.full(3600, 500.0))
    tokens[RESTARTED:] -= tokens[RESTARTED]
    usage[RESTARTED - 20 : RESTARTED] = np.nan
    usage[RESTARTED : RESTARTED + 90] = 0.0
    assert of_frame(frame(usage=usage, tokens=tokens)).flags == ()
    said = np.concatenate((np.zeros(RESTARTED + 15), np.ones(3600 - RESTARTED - 15)))
    steady = counter(np.full(3600, 500.0))
    assert of_frame(frame(usage=usage, tokens=steady, restarts=said)).flags == ()
    assert [flag.kind for flag in of_frame(frame(usage=usage, tokens=steady)).flags] == [Kind.DROP]


def test_what_a_restart_changed_for_good_began_with_it() -> None:
    usage, tokens = calm() * 0.3 + 0.4, counter(np.full(3600, 500.0))
    tokens[RESTARTED:] -= tokens[RESTARTED]
    usage[RESTARTED - 20 : RESTARTED] = np.nan
    usage[RESTARTED:] = 0.95
    assert [flag.start for flag in of_frame(frame(usage=usage, tokens=tokens)).flags] == [START + RESTARTED]


def test_a_restart_hides_nothing_of_an_engine_of_that_name_in_another_cluster() -> None:
    tokens, usage = counter(np.full(3600, 500.0)), calm() * 0.4
    tokens[RESTARTED:] -= tokens[RESTARTED]
    usage[RESTARTED + 20 : RESTARTED + 120] = 0.99
    here, there = ({"cluster": cluster, "engine": "engine-0"} for cluster in ("east", "west"))
    keys = Key.of(GENERATION_TOKENS.full_name, here), Key.of(KV_USAGE.full_name, there)
    both = Frame(times(3600), 1.0, keys, np.column_stack((tokens, usage)))
    (flag,) = of_frame(both).flags
    assert (flag.key, flag.start) == (keys[1], START + RESTARTED + 20)


def test_engines_of_one_name_in_two_clusters_are_two_places() -> None:
    first, second = calm() * 0.4, calm(seed=2) * 0.4
    first[1500:1600], second[2500:2600] = 0.99, 0.99
    keys = [Key.of(KV_USAGE.full_name, {"cluster": cluster, "engine": "engine-0"}) for cluster in ("a", "b")]
    both = Frame(times(3600), 1.0, tuple(keys), np.column_stack((first, second)))
    places = look_at(History(both, "made up")).places
    assert [(each.name, each.since, each.first) for each in places] == [
        ("engine-0 in a", START + 1500, ("kv_usage_ratio",)),
        ("engine-0 in b", START + 2500, ("kv_usage_ratio",)),
    ]
    (alone,) = look_at(History(both.take([0]), "made up")).places
    assert alone.name == "engine-0"


def test_what_is_short_and_had_its_like_is_nothing_new() -> None:
    values = calm(7200) * 0.2
    for begin in (2000, 4000, 6000):
        values[begin : begin + 60] = 0.9
    assert [flag.start for flag in found(values)] == [START + 2000]
    values[6000:6600] = 0.9
    assert [flag.start for flag in found(values)] == [START + 2000, START + 6000]


def test_a_series_that_can_not_be_judged_says_why() -> None:
    few = look(USAGE, np.full(20, 0.5), times(20), 1.0)
    text = look(Key("thrashold_build_info"), np.ones(100), times(100), 1.0)
    assert "20 instants are known" in few.left_out
    assert "text" in text.left_out
    assert (few.flags, text.flags) == ((), ())


HOUR = 60
WEEK = 168 * HOUR


def weekly(weeks: int) -> np.ndarray:
    """A minute's step: nights, days, and a job of an hour each Monday."""
    at = np.arange(weeks * WEEK)
    chance = np.random.default_rng(6)
    values = 0.4 + 0.15 * np.sin(at * 2 * np.pi / (24 * HOUR)) + chance.normal(0.0, 0.01, len(at))
    values[(at % WEEK) // HOUR == 30] = 0.95
    return np.asarray(values)


@pytest.mark.parametrize("weeks", [2, 3, 5])
def test_what_comes_each_week_is_usual_and_what_does_not_is_none(weeks: int) -> None:
    values = weekly(weeks)
    assert found(values, step=60.0) == ()
    odd = (weeks - 1) * WEEK + 100 * HOUR
    values[odd : odd + 60] = 0.95
    (flag,) = found(values, step=60.0)
    assert (flag.baseline, flag.start) == (Baseline.HOUR_OF_WEEK, START + odd * 60)
    assert flag.high < 0.8


def test_with_weeks_enough_it_is_seen_that_a_peak_did_not_come() -> None:
    values = weekly(5)
    missing = 4 * WEEK + 30 * HOUR
    values[missing : missing + HOUR] = 0.4
    (flag,) = found(values, step=60.0)
    assert (flag.kind, flag.low > 0.5) == (Kind.DROP, True)


def test_before_there_are_weeks_it_is_said_what_was_held_against() -> None:
    values = weekly(1)
    assert look(USAGE, values, times(len(values), 60.0), 60.0).baseline is Baseline.BEFORE
    longer = weekly(2)
    assert look(USAGE, longer, times(len(longer), 60.0), 60.0).baseline is Baseline.HOUR_OF_WEEK


def test_a_series_that_is_new_in_an_old_history_is_held_against_what_was_before() -> None:
    values = np.full(3 * WEEK, np.nan)
    values[-2 * 24 * HOUR :] = weekly(1)[: 2 * 24 * HOUR]
    values[-200:-100] = 3.0
    looked = look(USAGE, values, times(len(values), 60.0), 60.0)
    assert looked.baseline is Baseline.BEFORE
    assert START + (len(values) - 200) * 60 in [flag.start for flag in looked.flags]


def test_words_say_whose_it_is_and_the_day_where_there_are_several() -> None:
    labels = {"engine": "engine-0", "rank": "1", "model_name": "llama", "state": "waiting"}
    values = np.zeros(3000)
    values[1500:2900] = 60.0
    values[10] = np.inf
    (flag,) = found(values, Key.of(SEQUENCES.full_name, labels), step=60.0)
    assert flag.words == (
        "sequences (waiting) of engine-0 rank 1 rose to 60; 0 to 0 was usual; 60 spreads above;"
        " 2027-01-16 09:00:00 to 2027-01-17 08:20:00"
    )


SWAPPED_OF = Key.of(SWAPPED.full_name, {"engine": "engine-0", "rank": "0"})
FIRST_TOKEN = Key.of(TTFT_P99.full_name, {"engine": "engine-0", "rank": "0"})
RUNNING = Key.of(SEQUENCES.full_name, {"engine": "engine-0", "state": "running"})


@pytest.mark.parametrize("known", [60, 600, 3600])
def test_what_rests_at_zero_is_flagged_as_it_first_leaves_it_however_little_is_known(known: int) -> None:
    values = np.zeros(known + 300)
    values[known:] = 1.0
    (flag,) = found(values, SWAPPED_OF)
    assert (flag.start, flag.value, flag.kind) == (START + known, 1.0, Kind.LEVEL_UP)


@pytest.mark.parametrize(("before", "after"), [(0.0, 1.0), (18.0, 17.0), (18.0, 19.0)])
def test_a_count_that_never_changed_has_changed_once_it_lasts(before: float, after: float) -> None:
    links = Key.of(NVLINK_LINKS.full_name, {"uuid": "GPU-0", "state": "active"})
    values = np.full(3600, before)
    values[2400:2700] = after
    (flag,) = found(values, links)
    assert (flag.start, flag.end, flag.value) == (START + 2400, START + 2700, after)
    # one that did change before says nothing by doing so again, nor by doing so for a minute
    values[1800:1860] = after
    assert found(values, links) == ()


def requests(instants: int, every: float, seed: int, *, spread: float = 0.8) -> np.ndarray:
    """The 99th percentile over the trailing minute of times that vary by factors, of requests that come by chance."""
    chance = np.random.default_rng(seed)
    comes = chance.random(instants) < 1 / every
    took = np.where(comes, 0.1 * np.exp(spread * chance.normal(size=instants)), np.nan)
    padded = np.concatenate((np.full(59, np.nan), took))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 60)
    none = np.isnan(windows).all(axis=1)
    found = np.full(instants, np.nan)
    found[~none] = np.nanmax(windows[~none], axis=1)  # of less than a hundred it is the largest
    return found


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([2.0, 10.0, 40.0]))
def test_few_requests_make_no_event_but_what_lasts_does(seed: int, every: float) -> None:
    """Three hours: of few requests a percentile is that of one, and jumps with each."""
    values = requests(10_800, every, seed)
    assert len(found(values, FIRST_TOKEN)) <= 1
    values[7200:7800] = 30.0
    assert any(flag.start <= START + 7200 <= flag.last for flag in found(values, FIRST_TOKEN))


def test_one_slow_answer_is_no_event_unless_it_is_beyond_all_that_was() -> None:
    values = requests(7200, 5.0, seed=3, spread=0.2)
    values[5000:5060] = 1.0
    assert found(values, FIRST_TOKEN) == ()
    values[5000:5060] = 60.0
    (flag,) = found(values, FIRST_TOKEN)
    assert (flag.start, flag.value) == (START + 5000, 60.0)


def test_quiet_hours_do_not_make_unusual_what_was_usual_before_them() -> None:
    """A day at half a minute: a busy morning, quiet hours for longer than blocks are remembered, a busy morning."""
    chance = np.random.default_rng(8)
    busy, quiet = chance.uniform(0.2, 0.6, 600), chance.uniform(0.38, 0.42, 2600)
    assert found(np.concatenate((busy, quiet, busy)), step=30.0) == ()


@pytest.mark.parametrize("level", [4.0, 100.0, 2500.0])
def test_counts_of_what_comes_by_chance_vary_by_their_root(level: float) -> None:
    values = np.random.default_rng(9).poisson(level, 7200).astype(float)
    assert found(values, RUNNING) == ()
    values[5000:5600] += 6 * np.sqrt(level) + 6
    (flag,) = found(values, RUNNING)
    assert abs(flag.start - START - 5000) <= 5
