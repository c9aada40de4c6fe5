"""Prompts by API key: bounded, and who floods is seen."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from exporter.derive.gateway_keys import KEYS, MOST_SHOWN
from exporter.gateway_sample import GatewaySample, KeyUse
from tests.support.derive import Named, run
from tests.support.gateways import gateway


def sample(at: float, tokens: dict[str, float], most: int = 200, **long: float) -> GatewaySample:
    """What a gateway tells that shows the ``most`` keys of most tokens."""
    keys = sorted(tokens.items(), key=lambda item: (-item[1], item[0]))
    return gateway(
        at,
        keys=tuple(KeyUse(key, count, long.get(key)) for key, count in keys[:most]),
        has_more_keys=len(keys) > most,
        keys_prompt_tokens_total=sum(tokens.values()),
    )


def tokens_of(said: Named) -> dict[str, float]:
    return {
        name.partition("{")[2].rstrip("}"): value
        for name, value in said.items()
        if name.startswith("gateway_prompt_tokens_total")
    }


def test_each_key_counts_from_where_it_stands() -> None:
    said = run(KEYS, [sample(0.0, {"a": 100, "b": 50}), sample(1.0, {"a": 130, "b": 50})])
    assert tokens_of(said[0]) == {"a": 0, "b": 0, "other": 0}
    assert tokens_of(said[1]) == {"a": 30, "b": 0, "other": 0}


def test_long_prompts_are_told_where_the_gateway_tells_them() -> None:
    said = run(KEYS, [sample(0.0, {"a": 1}, a=4), sample(1.0, {"a": 2}, a=7)])
    assert said[-1]["gateway_long_prompts_total{a}"] == 3
    assert not any("long" in name for name in run(KEYS, [sample(0.0, {"a": 1})])[-1])


def test_a_gateway_that_tells_no_keys_has_no_series() -> None:
    assert run(KEYS, [gateway(0.0), gateway(1.0)]) == [{}, {}]


def test_what_keys_without_a_place_ask_for_is_under_other() -> None:
    tokens = {f"k{n:02d}": 1000.0 - n for n in range(MOST_SHOWN + 5)}
    after = {key: count + 2 for key, count in tokens.items()}
    said = tokens_of(run(KEYS, [sample(0.0, tokens), sample(1.0, after)])[-1])
    assert len(said) == MOST_SHOWN + 1
    assert said["other"] == 10
    assert said["k00"] == 2


def test_a_newcomer_that_floods_gets_a_place_and_no_total_falls() -> None:
    tokens = {f"k{n:02d}": 1e9 for n in range(MOST_SHOWN)}
    samples = [sample(0.0, tokens)]
    for at in range(1, 10):
        tokens = {key: count + 10 for key, count in tokens.items()} | {"flood": 50_000.0 * at}
        samples.append(sample(float(at), tokens))
    said = [tokens_of(each) for each in run(KEYS, samples)]
    assert "flood" in said[2]
    assert len(said[-1]) == MOST_SHOWN + 1
    assert said[-1]["flood"] >= 50_000 * 7
    others = [each["other"] for each in said]
    assert others == sorted(others)


def test_a_restart_drops_one_rise_of_each() -> None:
    said = run(
        KEYS, [sample(0.0, {"a": 100}), sample(1.0, {"a": 140}), sample(2.0, {"a": 5}), sample(3.0, {"a": 8})]
    )
    assert [tokens_of(each)["a"] for each in said] == [0, 40, 40, 43]


def test_a_key_that_comes_into_sight_has_not_asked_for_all_of_it_just_now() -> None:
    """With thousands of keys those of most tokens alone are seen: who gets among them may have been there for long."""
    tokens = {f"k{n:02d}": 1000.0 - n for n in range(40)}
    samples = [sample(0.0, tokens, most=30)]
    for at in range(1, 10):
        tokens = {key: count + 10 for key, count in tokens.items()} | {"k35": 970.0 + 12 * at}
        samples.append(sample(float(at), tokens, most=30))
    said = [tokens_of(each) for each in run(KEYS, samples)]
    assert {key for each in said for key in each} == {f"k{n:02d}" for n in range(MOST_SHOWN)} | {"other"}


def test_what_keys_out_of_sight_ask_for_is_under_other_and_not_theirs_when_they_come_back() -> None:
    tokens = {f"k{n:02d}": 1000.0 for n in range(MOST_SHOWN)} | {f"n{n:02d}": 10.0 for n in range(25)}
    samples = [sample(0.0, tokens, most=25)]
    before = sum(tokens.values())
    for name, rise in (("n", 5000.0), ("k", 4000.0), ("k", 20.0), ("k", 1.0)):
        tokens = {key: count + rise * (key[0] == name) for key, count in tokens.items()}
        samples.append(sample(float(len(samples)), tokens, most=25))
    said = [tokens_of(each) for each in run(KEYS, samples)]
    left = sum(each.get(key, 0.0) for each, after in pairwise(said) for key in each.keys() - after.keys())
    assert sum(said[-1].values()) + left == sum(tokens.values()) - before
    assert said[-1]["k19"] == 1


@given(
    st.lists(st.lists(st.integers(0, 500), min_size=30, max_size=30), min_size=2, max_size=12),
    st.sampled_from([30, 25, MOST_SHOWN + 1]),
)
def test_whoever_has_a_place_all_tokens_are_counted_once(rises: list[list[int]], most: int) -> None:
    tokens = {f"k{n:02d}": 100.0 + n for n in range(30)}
    samples = [sample(0.0, tokens, most)]
    for at, each in enumerate(rises, 1):
        tokens = {key: count + rise for (key, count), rise in zip(tokens.items(), each, strict=True)}
        samples.append(sample(float(at), tokens, most))
    said = [tokens_of(each) for each in run(KEYS, samples)]
    # a place that changed hands took what its last holder had with it
    left, known = 0.0, dict[str, float]()
    for each in said:
        left += sum(value for key, value in known.items() if key not in each)
        known = each
    assert sum(said[-1].values()) + left == sum(map(sum, rises))
    assert all(len(each) == MOST_SHOWN + 1 for each in said)
