"""Probes through the cycle: where they speak, how sure values are, and that nothing jumps when they come and go."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from exporter import probe_cycle
from exporter.cycle import CycleSettings, State, initial, step
from exporter.derive import fragmentation
from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.observation import Observation, SourceStatus
from exporter.probe_sample import GroupHeld, Probed, ProbeSample
from exporter.sample import STALE_AFTER_SECONDS, EngineSample
from exporter.snapshot import Snapshot
from tests.support.derive import engine, rank
from tests.support.probes import probe
from tests.support.replay import named

TAIL = "tail_fragmentation_tokens{rank=0,bound=expected}"
ABORTS = "client_aborts_total"
PREEMPTIONS = "preemptions_total{rank=0}"


def page(
    at: float, *, aborts: float = 0.0, preemptions: float = 0.0, ranks: int = 1, running: float = 4.0
) -> EngineSample:
    """An engine's page whose numbers make the estimate say so many aborts; at once where nothing runs."""
    made = [
        replace(
            rank(
                at,
                running=running,
                waiting=0.0,
                block_tokens=16.0,
                blocks=100.0,
                kv_usage_ratio=0.5,
                preemptions_total=preemptions,
                finished_total=(("stop", 100.0),),
            ),
            rank=str(number),
        )
        for number in range(ranks)
    ]
    return engine(at, *made, http_ok_total=100.0 * ranks + aborts)


def shown(
    sample: EngineSample | None = None, *probes: ProbeSample, answering: bool = True
) -> list[Observation]:
    last_at = None if sample is None else sample.at
    engine_status = SourceStatus("e", "engine", answering, last_at, None)
    heard = SourceStatus("e/probe", "probe", bool(probes), probes[0].at if probes else None, None)
    return [Observation(engine_status, sample), Observation(heard, probes=probes)]


def values(snapshot: Snapshot) -> dict[str, float]:
    series = {(each.signal, each.labels, each.is_peak) for each in snapshot.values}
    assert len(series) == len(snapshot.values), "a series twice"
    return {named(each.signal, each.labels, peak=each.is_peak): each.value for each in snapshot.values}


def sure(snapshot: Snapshot, signal: str) -> str:
    """What signal_info says of it."""
    found = [each.labels for each in snapshot.values if each.signal.name == "signal_info"]
    [confidence] = [labels[1] for labels in found if labels[0] == f"thrashold_{signal}"]
    return confidence


def probed(snapshot: Snapshot) -> set[tuple[str, str, str]]:
    """What the engines' probes tell: engine, signal, confidence."""
    found = [each.labels for each in snapshot.values if each.signal.name == "probed_signal_info"]
    return {(name, signal.removeprefix("thrashold_"), confidence) for name, signal, confidence, _ in found}


def begun(settings: CycleSettings | None = None) -> State:
    return initial(settings or CycleSettings())


def test_where_the_probe_speaks_tails_are_exact_and_said_to_be() -> None:
    said = probe(100.5, running=4, groups=(GroupHeld(16, 50, 37),), aborts_total=None)
    _, snapshot = step(begun(), 101.0, shown(page(100.0), said))
    bounds = [
        values(snapshot)[f"tail_fragmentation_tokens{{rank=0,bound={bound}}}"] for bound in ("min", "max")
    ]
    assert bounds == [37, 37]
    assert values(snapshot)["tail_fragmentation_used_ratio{rank=0}"] == pytest.approx(37 / (50 * 16))
    assert sure(snapshot, "tail_fragmentation_tokens") == "measured"
    assert sure(snapshot, "kv_blocks") == "measured"
    assert probed(snapshot) == {
        ("e", name, "measured")
        for name in (
            "tail_fragmentation_tokens",
            "tail_fragmentation_used_ratio",
            "tail_fragmentation_reserve_ratio",
            "preemptions_total",
        )
    }
    _, without = step(begun(), 101.0, shown(page(100.0)))
    assert values(without)[TAIL] == 4 * 7.5
    assert sure(without, "tail_fragmentation_tokens") == "estimate"
    assert probed(without) == set()


def test_an_engine_without_a_probe_keeps_the_signal_an_estimate_beside_one_that_has_it() -> None:
    other = replace(page(100.0), engine="f")
    said = probe(100.5, groups=(GroupHeld(16, 50, 37),))
    observations = [
        *shown(page(100.0), said),
        Observation(SourceStatus("f", "engine", True, 100.0, None), other),
    ]
    _, snapshot = step(begun(), 101.0, observations)
    told = {
        each.labels[0]: each.value
        for each in snapshot.values
        if each.signal is fragmentation.TAIL_TOKENS and each.labels[-1] == "expected"
    }
    assert told == {"e": 37, "f": 30}
    assert sure(snapshot, "tail_fragmentation_tokens") == "estimate"
    assert ("e", "tail_fragmentation_tokens", "measured") in probed(snapshot)
    assert {name for name, *_ in probed(snapshot)} == {"e"}


def test_the_page_may_stall_while_the_probe_speaks() -> None:
    state, old = begun(), page(100.0)
    state, _ = step(state, 100.0, shown(old))
    for at in range(101, 130):
        said = probe(float(at), groups=(GroupHeld(16, 50, at),), aborts_total=at - 101)
        state, snapshot = step(state, at + 0.5, shown(old, said, answering=False))
        assert values(snapshot)[TAIL] == at
    assert "kv_usage_ratio{rank=0}" not in values(snapshot)
    assert "tail_fragmentation_used_ratio{rank=0}" not in values(snapshot)
    assert values(snapshot)[ABORTS] == 28


def test_before_the_engine_s_page_was_ever_read_the_model_s_name_is_unknown_and_nothing_is_told() -> None:
    _, snapshot = step(begun(), 101.0, shown(None, probe(100.5)))
    assert not any(name.startswith(("tail_", "scheduler_", "client_")) for name in values(snapshot))
    assert values(snapshot)["source_up"] in {0.0, 1.0}


def run(state: State, start: int, told: list[tuple[float | None, float | None]]) -> list[float]:
    """A cycle a second: aborts as the page makes one estimate them, and as the probe counts them."""
    said = []
    for at, (estimate, count) in enumerate(told, start):
        sample = None if estimate is None else page(float(at), aborts=estimate, running=0.0)
        probes = [] if count is None else [probe(float(at), aborts_total=int(count))]
        state, snapshot = step(state, float(at), shown(sample, *probes))
        said.append(values(snapshot).get(ABORTS, -1.0))
    return said


def test_aborts_go_on_from_where_they_were_when_the_probe_comes_and_goes() -> None:
    estimates = [(float(count), None) for count in (0, 1, 2)]
    both = [(2.0, 40.0), (3.0, 41.0), (3.0, 43.0)]
    # the probe's last word holds for 15 s, and so long the total stands still
    silent: list[tuple[float | None, float | None]] = [(3.0 + at, None) for at in range(1, 21)]
    said = run(begun(), 0, [*estimates, *both, *silent])
    assert said[:6] == [0, 1, 2, 2, 3, 5]
    assert said[6:21] == [5] * 15
    assert said[21] == 5 + 16, "all that the estimate saw since the probe's last word"
    assert said[-1] == 5 + 20
    assert all(earlier <= later for earlier, later in itertools.pairwise(said))


def test_a_restarted_engine_s_probe_makes_no_jump() -> None:
    state = begun()
    said = []
    for at, (sender, count) in enumerate([("a", 5), ("a", 9), ("b", 0), ("b", 2)]):
        told = probe(float(at), sender=sender, aborts_total=count)
        state, snapshot = step(state, float(at), shown(page(float(at)), told))
        said.append(values(snapshot)[ABORTS])
    assert said == [0, 4, 4, 6]


def test_aborts_are_exact_only_while_each_rank_counts_them() -> None:
    half = [probe(1.0, aborts_total=7)]
    _, snapshot = step(begun(), 1.0, shown(page(1.0, ranks=2), *half))
    assert sure(snapshot, ABORTS) == "estimate"
    state, _ = step(begun(), 1.0, shown(page(1.0, ranks=2), *half, probe(1.0, rank="1", aborts_total=5)))
    both = [probe(2.0, aborts_total=8), probe(2.0, rank="1", aborts_total=7)]
    _, snapshot = step(state, 2.0, shown(page(2.0, ranks=2), *both))
    assert values(snapshot)[ABORTS] == 3
    assert sure(snapshot, ABORTS) == "measured"


def test_once_a_request_with_stop_strings_was_ended_aborts_are_the_estimate_s() -> None:
    state, snapshot = step(begun(), 1.0, shown(page(1.0, running=0.0), probe(1.0, aborts_total=3)))
    assert sure(snapshot, ABORTS) == "measured"
    state, snapshot = step(
        state,
        2.0,
        shown(page(2.0, aborts=1, running=0.0), probe(2.0, aborts_total=9, unclear_aborts_total=1)),
    )
    assert sure(snapshot, ABORTS) == "estimate"
    assert values(snapshot)[ABORTS] == 1
    assert ("e", ABORTS, "measured") not in probed(snapshot)


def test_preemptions_are_counted_as_they_happen_and_don_t_jump() -> None:
    state, said = begun(), []
    for at, (late, count) in enumerate([(10, None), (12, None), (12, 20), (13, 25), (20, 27)]):
        probes = [] if count is None else [probe(float(at), preemptions_total=count)]
        state, snapshot = step(state, float(at), shown(page(float(at), preemptions=late), *probes))
        said.append((values(snapshot)[PREEMPTIONS], sure(snapshot, "preemptions_total")))
    assert said == [(0, "lagging"), (2, "lagging"), (2, "measured"), (7, "measured"), (9, "measured")]


def test_ranks_are_told_apart() -> None:
    probes = [probe(1.0, rank=str(number), groups=(GroupHeld(16, 1, number),)) for number in range(2)]
    _, snapshot = step(begun(), 1.0, shown(page(1.0, ranks=2), *probes))
    assert [
        values(snapshot)[f"tail_fragmentation_tokens{{rank={number},bound=max}}"] for number in range(2)
    ] == [0, 1]


def test_a_probe_that_falls_silent_holds_for_15_s_and_then_the_estimate_is_back() -> None:
    said = probe(100.0, groups=(GroupHeld(16, 50, 37),))
    state, _ = step(begun(), 100.0, shown(page(100.0), said))
    for after, expected in ((STALE_AFTER_SECONDS, 37.0), (STALE_AFTER_SECONDS + 0.5, 30.0)):
        state, snapshot = step(state, 100.0 + after, shown(page(100.0 + after)))
        assert values(snapshot)[TAIL] == expected
    assert sure(snapshot, "tail_fragmentation_tokens") == "estimate"
    assert not any(name.startswith(("scheduler_", "sequence_", "probe")) for name in values(snapshot))


def test_a_derivation_that_breaks_costs_its_own_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_seen: Probed, _facts: EngineFacts, _state: None) -> tuple[None, list[Any]]:
        raise ZeroDivisionError

    failing = Phenomenon("failing", fragmentation.FRAGMENTATION.signals, broken, None)
    monkeypatch.setattr(probe_cycle, "PROBE_PHENOMENA", (failing, *probe_cycle.PROBE_PHENOMENA[1:]))
    _, snapshot = step(begun(), 1.0, shown(page(1.0), probe(1.0, groups=(GroupHeld(16, 50, 37),))))
    assert values(snapshot)[TAIL] == 30, "the estimate"
    assert values(snapshot)["scheduler_steps_total{rank=0}"] == 0
    assert values(snapshot)["derive_errors_total{phenomenon=failing}"] == 1


def test_senders_that_keep_changing_their_rank_are_not_remembered_for_ever() -> None:
    state = begun()
    for at in range(3):
        many = [probe(float(at), rank=f"{at}.{number}") for number in range(probe_cycle.MOST_PROBES)]
        state, _ = step(state, float(at), shown(page(float(at)), *many))
    assert len(state.probes.ranks) == probe_cycle.MOST_PROBES


def test_engines_without_probes_cost_nothing() -> None:
    state, _ = step(begun(), 1.0, shown(page(1.0)))
    assert state.probes.handovers == {}
