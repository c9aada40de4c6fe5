from __future__ import annotations

from collections.abc import Sized
from dataclasses import fields, is_dataclass, replace

import pytest

from exporter import engine_cycle
from exporter.cycle import CycleSettings, State, initial, step
from exporter.derive import fragmentation
from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.observation import Observation, SourceStatus
from exporter.sample import STALE_AFTER_SECONDS, EngineSample, RankSample
from exporter.sampler_signals import GPUS_EXPECTED
from exporter.signal import Point
from exporter.snapshot import Snapshot, Value
from exporter.source_signals import SIGNAL_INFO
from exporter.window import Window
from tests.support.derive import engine, rank
from tests.support.replay import named


def seen(
    sample: EngineSample | None,
    *,
    answering: bool = True,
    name: str = "e",
    errors: tuple[tuple[str, int], ...] = (),
) -> Observation:
    last_at = sample.at if sample is not None else None
    read_seconds = 0.01 if sample is not None else None
    return Observation(SourceStatus(name, "engine", answering, last_at, read_seconds, errors), sample)


def busy(at: float, tokens: float = 0.0, name: str = "e") -> EngineSample:
    ranks = rank(at, running=2.0, waiting=0.0, block_tokens=16.0, generation_tokens_total=tokens)
    return replace(engine(at, ranks), engine=name)


def values(snapshot: Snapshot) -> dict[str, float]:
    return {named(each.signal, each.labels, peak=each.is_peak): each.value for each in snapshot.values}


RUNNING = "sequences{rank=0,state=running}"


def test_before_the_first_answer_nothing_is_zero() -> None:
    _, snapshot = step(initial(CycleSettings()), 0.0, [seen(None, answering=False, errors=(("refused", 1),))])
    assert values(snapshot)["source_up"] == 0
    assert values(snapshot)["source_errors_total{reason=refused}"] == 1
    assert not any(name.startswith(("sequences", "source_age", "kv_")) for name in values(snapshot))
    assert not snapshot.ready


def test_values_hold_while_a_source_is_silent_and_vanish_when_it_is_stale() -> None:
    state, observation = initial(CycleSettings()), seen(busy(100.0))
    for age in (0.0, 1.0, 14.9, STALE_AFTER_SECONDS):
        state, snapshot = step(state, 100.0 + age, [observation])
        assert values(snapshot)[RUNNING] == 2
        assert values(snapshot)["source_age_seconds"] == pytest.approx(age)
        assert values(snapshot)["source_up"] == 1
        assert snapshot.ready
    state, snapshot = step(state, 100.0 + STALE_AFTER_SECONDS + 0.1, [observation])
    assert RUNNING not in values(snapshot)
    assert values(snapshot)["source_up"] == 0
    assert not snapshot.ready


def test_a_source_that_fails_is_down_at_once_while_its_values_still_hold() -> None:
    state, _ = step(initial(CycleSettings()), 100.0, [seen(busy(100.0))])
    _, snapshot = step(state, 101.0, [seen(busy(100.0), answering=False, errors=(("refused", 1),))])
    assert values(snapshot)["source_up"] == 0
    assert values(snapshot)[RUNNING] == 2


def test_other_sources_make_nothing_ready() -> None:
    status = SourceStatus("nvml", "nvml", answering=True, last_at=100.0, read_seconds=None)
    gpus = Observation(status, own=(Value(GPUS_EXPECTED, ("nvml",), 8.0, is_peak=False),))
    state, snapshot = step(initial(CycleSettings()), 100.0, [gpus])
    assert not snapshot.ready, "the engine is what it is there for"
    assert values(snapshot)["gpus_expected"] == 8, "what a source tells of itself is shown as it is"
    told = {each.labels[0] for each in snapshot.values if each.signal is SIGNAL_INFO}
    assert GPUS_EXPECTED.full_name in told
    _, snapshot = step(state, 101.0, [gpus, seen(busy(101.0))])
    assert snapshot.ready


def test_one_stale_engine_takes_nothing_from_another() -> None:
    state = initial(CycleSettings())
    silent = seen(busy(100.0, name="a"), name="a")
    for at in range(100, 140):
        state, snapshot = step(state, float(at), [silent, seen(busy(float(at), name="b"), name="b")])
    labels = {each.labels for each in snapshot.values if each.signal.name == "sequences"}
    assert labels == {("b", "0", "m", "running"), ("b", "0", "m", "waiting")}


def test_the_same_sample_is_derived_from_once() -> None:
    state, observation = initial(CycleSettings()), seen(busy(100.0, 50.0))
    for at in (100.0, 101.0, 102.0):
        state, _ = step(state, at, [observation])
    assert len(state.engines["e"].window.samples) == 1


def test_totals_go_on_after_a_silence() -> None:
    state = initial(CycleSettings())
    for at, tokens in ((0.0, 1000.0), (1.0, 1100.0), (60.0, 5000.0)):
        state, snapshot = step(state, at, [seen(busy(at, tokens))])
    assert values(snapshot)["generation_tokens_total{rank=0}"] == 4000


def test_a_rank_that_began_anew_while_it_was_away_is_a_restart() -> None:
    def of(at: float, **tokens: float) -> Observation:
        ranks = (
            RankSample(at, name[1:], "m", generation_tokens_total=count) for name, count in tokens.items()
        )
        return seen(engine(at, *ranks))

    state = initial(CycleSettings())
    scrapes = (of(0.0, r0=1000, r1=50), of(1.0, r0=1100, r1=60), of(2.0, r1=70), of(3.0, r0=5, r1=80))
    for observation in scrapes:
        state, snapshot = step(state, observation.status.last_at or 0.0, [observation])
    assert values(snapshot)["engine_restarts_total"] == 1
    assert values(snapshot)["generation_tokens_total{rank=0}"] == 100


def test_ranks_that_come_back_one_by_one_are_one_restart() -> None:
    def of(at: float, **tokens: float) -> Observation:
        ranks = (
            RankSample(at, name[1:], "m", generation_tokens_total=count) for name, count in tokens.items()
        )
        return seen(engine(at, *ranks))

    state = initial(CycleSettings())
    scrapes = (of(0.0, r0=1000, r1=900), of(1.0, r0=1100, r1=990), of(2.0, r0=3), of(3.0, r0=5, r1=4))
    for observation in scrapes:
        state, snapshot = step(state, observation.status.last_at or 0.0, [observation])
    assert values(snapshot)["engine_restarts_total"] == 1


def test_facts_belong_to_the_engine_they_are_set_for() -> None:
    settings = CycleSettings({"a": EngineFacts(kv_bytes_per_token=100.0)})
    _, snapshot = step(
        initial(settings), 0.0, [seen(busy(0.0, name="a"), name="a"), seen(busy(0.0, name="b"), name="b")]
    )
    with_bytes = {
        each.labels[0] for each in snapshot.values if each.signal.name == "tail_fragmentation_bytes"
    }
    assert with_bytes == {"a"}


def test_a_derivation_that_breaks_costs_its_own_signals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_window: Window[RankSample], _facts: EngineFacts, _state: None) -> tuple[None, list[Point]]:
        raise ZeroDivisionError("a bug")

    bug = Phenomenon("fragmentation", fragmentation.FRAGMENTATION.signals, broken, None)
    phenomena = [bug if each.name == bug.name else each for each in engine_cycle.RANK_PHENOMENA]
    monkeypatch.setattr(engine_cycle, "RANK_PHENOMENA", tuple(phenomena))
    state: State = initial(CycleSettings())
    for at in (0.0, 1.0):
        state, snapshot = step(state, at, [seen(busy(at))])
    assert values(snapshot)[RUNNING] == 2
    assert not any(name.startswith("tail_") for name in values(snapshot))
    assert values(snapshot)["derive_errors_total{phenomenon=fragmentation}"] == 2
    assert [(failure.subject, failure.phenomenon) for failure in snapshot.failures] == [
        ("e", "fragmentation")
    ]


def test_each_value_says_how_sure_it_is() -> None:
    _, snapshot = step(initial(CycleSettings(version="9.9")), 0.0, [seen(busy(0.0))])
    told = {each.labels[0]: each.labels[1] for each in snapshot.values if each.signal.name == "signal_info"}
    assert told["thrashold_tail_fragmentation_tokens"] == "estimate"
    assert told["thrashold_sequences"] == "measured"
    # none of a signal that has no value
    assert "thrashold_kv_usage_ratio" not in told
    assert values(snapshot)["build_info{version=9.9}"] == 1


def test_what_can_not_be_right_is_told() -> None:
    odd = replace(busy(0.0), notes=("usage_above_1",))
    _, snapshot = step(initial(CycleSettings()), 0.0, [seen(odd)])
    assert values(snapshot)["source_oddity{oddity=usage_above_1}"] == 1


def test_a_rank_that_went_away_takes_its_values_along() -> None:
    def of(at: float, *names: str) -> Observation:
        return seen(engine(at, *(RankSample(at, name, "m", running=1.0) for name in names)))

    state, _ = step(initial(CycleSettings()), 0.0, [of(0.0, "0", "1")])
    state, snapshot = step(state, 1.0, [of(1.0, "0")])
    assert {each.labels[1] for each in snapshot.values if each.signal.name == "sequences"} == {"0"}
    assert set(state.engines["e"].ranks) == {("0", "m"), ("1", "m")}
    for at in range(2, 400, 5):
        state, _ = step(state, float(at), [of(float(at), "0")])
    assert len(state.engines["e"].ranks["1", "m"].window.samples) == 1


def test_totals_of_a_rank_go_on_after_it_was_away_for_long() -> None:
    def of(at: float, tokens: float | None) -> Observation:
        ranks = () if tokens is None else (rank(at, generation_tokens_total=tokens),)
        return seen(engine(at, *ranks))

    state, told = initial(CycleSettings()), []
    for at, tokens in ((0.0, 100.0), (1.0, 150.0), (2.0, None), (900.0, None), (901.0, 400.0)):
        state, snapshot = step(state, at, [of(at, tokens)])
        told.append(values(snapshot).get("generation_tokens_total{rank=0}"))
    assert told == [0, 50, None, None, 300]


def test_labels_that_keep_changing_fill_no_memory() -> None:
    state = initial(CycleSettings())
    for at in range(400):
        changing = RankSample(float(at), str(at), "m", running=1.0, generation_tokens_total=1.0)
        state, _ = step(state, float(at), [seen(engine(float(at), changing))])
    assert len(state.engines["e"].ranks) <= 257
    # nor does any phenomenon of the whole engine remember more
    sizes = [
        len(value)
        for memory in state.engines["e"].memory.values()
        if is_dataclass(memory)
        for field in fields(memory)
        if isinstance(value := getattr(memory, field.name), Sized)
    ]
    assert 0 < max(sizes) <= 257
