"""Verdicts on recordings of real engines: idle, under load, in overload, swapping, standing still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from exporter.sample import EngineSample
from tests.alerts.triage.looks import alone, beside, verdict
from tests.support.replay import Cycle, replayed

SECONDS_APART = 0.8
"""Scrapes of a stalled engine come in bunches; a look's two reads are a second apart."""


def verdicts(name: str, *, by_sidecar: bool, every: int = 3) -> Mapping[str, Counter[str]]:
    """How often which, by phase."""
    cycles, found = replayed(name), dict[str, Counter[str]]()
    for place in range(1, len(cycles), every):
        before, now = cycles[place - 1 : place + 1]
        if now.at - before.at < SECONDS_APART:
            continue
        pair = (before.sample, now.sample)
        look = beside(pair, before.snapshot, now.snapshot) if by_sidecar else alone(pair)
        found.setdefault(now.phase, Counter())[verdict(look)] += 1
    return found


@pytest.mark.parametrize("by_sidecar", [True, False], ids=["beside a sidecar", "alone"])
@pytest.mark.parametrize("name", ["vllm-0.32.0", "vllm-0.32.0-offload"])
def test_a_real_vllm_is_healthy_until_it_is_asked_for_too_much(name: str, by_sidecar: bool) -> None:  # noqa: FBT001
    found = verdicts(name, by_sidecar=by_sidecar)
    for phase in ("idle", "load", "after"):
        assert set(found[phase]) == {"healthy"}, phase
    # until the pool has filled it is still well
    assert set(found["overload"]) <= {"overload", "healthy"}
    assert found["overload"]["overload"] >= 0.9 * found["overload"].total()


def test_a_real_v0_engine_swaps_and_a_sidecar_knows_it_for_a_minute() -> None:
    by_sidecar, by_itself = (verdicts("vllm-0.8.5-v0-swap", by_sidecar=way) for way in (True, False))
    for found in (by_sidecar, by_itself):
        assert set(found["idle"]) == set(found["load"]) == {"healthy"}
    assert by_sidecar["overload"]["swap-thrash"] >= 0.95 * by_sidecar["overload"].total()
    assert set(by_sidecar["after"]) == {"swap-thrash"}
    # swapped in and out within seconds: a second sees those that are out just then
    assert by_itself["overload"]["swap-thrash"] >= 0.5 * by_itself["overload"].total()
    assert set(by_itself["overload"]) <= {"swap-thrash", "overload", "healthy"}
    assert set(by_itself["after"]) == {"healthy"}


def standing(cycle: Cycle, seconds: int) -> Iterator[EngineSample]:
    """As a frozen core's front end goes on showing it."""
    for second in range(seconds + 1):
        at = cycle.at + second
        yield replace(cycle.sample, at=at, ranks=tuple(replace(rank, at=at) for rank in cycle.sample.ranks))


def test_an_engine_that_stands_still_is_suspected_in_a_second_and_known_after_half_a_minute() -> None:
    busy = next(
        cycle
        for cycle in replayed("vllm-0.32.0")
        if cycle.phase == "overload" and cycle.sample.ranks[0].running
    )
    assert verdict(alone([*standing(busy, 1)])) == "engine-frozen?"
    assert verdict(alone([*standing(busy, 35)])) == "engine-frozen"
