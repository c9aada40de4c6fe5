from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.derive.stalls import STALLS
from exporter.sample import RankSample
from tests.support.derive import last, rank, run

STALL = "decode_stall_seconds_total"


def decoding(
    seconds: int, stop: float, cont: float, phase: float = 0.0, rate: float = 400.0
) -> list[RankSample]:
    """Samples each second, from ``phase`` on, of an engine that stands still from ``stop`` to ``cont``."""
    samples = []
    for index in range(seconds):
        at = index + phase
        worked = min(at, stop) + max(0.0, at - cont)
        samples.append(
            rank(
                at,
                running=3.0,
                waiting=0.0,
                kv_usage_ratio=0.3,
                generation_tokens_total=float(int(rate * worked)),
            )
        )
    return samples


@given(st.floats(0, 0.99), st.floats(2.1, 25), st.floats(30.0, 31.0))
def test_a_standstill_is_counted_to_within_a_tenth_of_a_second(
    phase: float, length: float, stop: float
) -> None:
    said = last(STALLS, decoding(70, stop, stop + length, phase))
    assert said[STALL] == pytest.approx(length, abs=0.1)
    assert said["last_token_age_seconds"] == 0


def test_a_standstill_shortly_after_the_load_fell_is_measured_by_the_new_load() -> None:
    # 25 s of 40 sequences, then 3 of them, which stop for 5 s after four
    busy = [
        rank(float(at), running=40.0, waiting=0.0, kv_usage_ratio=0.9, generation_tokens_total=4_000.0 * at)
        for at in range(25)
    ]
    few = [
        replace(
            sample,
            at=sample.at + 25,
            generation_tokens_total=(sample.generation_tokens_total or 0.0) + 96_000.0,
        )
        for sample in decoding(40, 4.4, 9.4)
    ]
    assert last(STALLS, [*busy, *few])[STALL] == pytest.approx(5, abs=0.3)


def test_two_standstills_add_up() -> None:
    first = decoding(60, 30, 35)
    offset = first[-1]
    second = [
        rank(
            sample.at + offset.at + 1,
            running=3.0,
            generation_tokens_total=(sample.generation_tokens_total or 0)
            + (offset.generation_tokens_total or 0)
            + 400,
        )
        for sample in decoding(60, 30, 40)
    ]
    assert last(STALLS, [*first, *second])[STALL] == pytest.approx(15, abs=0.2)


def test_the_count_grows_while_it_stands() -> None:
    said = [values[STALL] for values in run(STALLS, decoding(60, 30.5, 50.5))]
    assert said[:32] == [0] * 32
    assert said == sorted(said)
    assert said[45] == pytest.approx(14.5, abs=0.1)


def test_an_idle_engine_does_not_stand_still() -> None:
    samples = [rank(float(at), running=0.0, waiting=0.0, generation_tokens_total=500.0) for at in range(100)]
    assert last(STALLS, samples) == {
        STALL: 0,
        "last_token_age_seconds": 0,
        "engine_frozen": 0,
        "engine_deadlocked": 0,
    }


def test_a_pause_below_two_seconds_is_no_standstill() -> None:
    assert last(STALLS, decoding(60, 30.2, 31.6))[STALL] == 0


def test_the_age_of_the_last_token() -> None:
    said = run(STALLS, decoding(45, 30, 100))
    assert said[0] == {STALL: 0, "engine_deadlocked": 0}
    assert [values["last_token_age_seconds"] for values in said[1:]][-15:] == [
        float(age) for age in range(15)
    ]


def test_frozen_after_thirty_seconds_in_which_nothing_moved() -> None:
    frozen = [values.get("engine_frozen") for values in run(STALLS, decoding(120, 30, 70))]
    assert frozen == [None] + [0] * 59 + [1] * 11 + [0] * 49


def test_a_sidecar_that_starts_beside_a_frozen_engine_does_not_call_it_alive() -> None:
    frozen = [values.get("engine_frozen") for values in run(STALLS, decoding(50, 0, 40))]
    assert frozen == [None] * 30 + [1] * 11 + [0] * 9


@pytest.mark.parametrize(
    "field", ["waiting", "kv_usage_ratio", "prompt_tokens_total", "preemptions_total", "prefix_queries_total"]
)
def test_a_long_prefill_that_moves_anything_is_not_frozen(field: str) -> None:
    samples = [
        rank(
            float(at),
            **{"running": 1.0, "generation_tokens_total": 7.0, "kv_usage_ratio": 0.2, field: at / 1000},
        )
        for at in range(100)
    ]
    said = last(STALLS, samples)
    assert said["engine_frozen"] == 0
    assert said["last_token_age_seconds"] == 99


def prefilling(samples: list[RankSample], taken_in_at: float) -> list[RankSample]:
    """The same with a prompt whose tokens are counted as its prefill ends."""
    return [replace(sample, prompt_tokens_total=64_000.0 * (sample.at >= taken_in_at)) for sample in samples]


def test_a_prefill_that_was_seen_makes_patient() -> None:
    # a prefill of 20 s was seen, so 30 s without a move are not enough: 60 are
    samples = prefilling(decoding(300, 30, 50), 51)
    tail = samples[-1]
    still = [replace(tail, at=tail.at + at) for at in range(1, 80)]
    frozen = [values.get("engine_frozen") for values in run(STALLS, [*samples, *still])][len(samples) :]
    assert frozen == [0] * 59 + [1] * 20


def test_freezes_teach_no_patience_however_they_grow() -> None:
    samples = decoding(40, 100, 100)
    for length in (29, 80, 200):
        tail = samples[-1]
        samples += [replace(tail, at=tail.at + at) for at in range(1, length)]
        tokens = tail.generation_tokens_total or 0.0
        samples += [
            replace(samples[-1], at=samples[-1].at + at, generation_tokens_total=tokens + 400.0 * at)
            for at in range(1, 60)
        ]
    frozen = [values.get("engine_frozen") for values in run(STALLS, samples)]
    assert sum(value or 0 for value in frozen) == pytest.approx((80 - 30) + (200 - 30), abs=3)


def test_a_prefill_makes_patient_for_two_minutes_at_most_and_for_ten_minutes() -> None:
    long = prefilling(decoding(200, 30, 59), 60)
    longer = prefilling([replace(sample, at=sample.at + 200) for sample in decoding(200, 30, 116)], 317)
    grown = [
        replace(sample, generation_tokens_total=(sample.generation_tokens_total or 0) + 1e6,
                prompt_tokens_total=(sample.prompt_tokens_total or 0) + 64_000)
        for sample in longer
    ]  # fmt: skip
    tail = grown[-1]
    still = [replace(tail, at=tail.at + at) for at in range(1, 130)]
    frozen = [values.get("engine_frozen") for values in run(STALLS, [*long, *grown, *still])][400:]
    assert frozen == [0] * 119 + [1] * 10


def test_the_count_never_falls_however_the_reads_fall() -> None:
    ats = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.5, 7.5, 8.0, 8.2, 9.0, 10.0]
    samples = [rank(at, running=1.0, generation_tokens_total=5.0 + 9 * (at < 3) * at) for at in ats]
    flat = [
        replace(sample, generation_tokens_total=min(23.0, sample.generation_tokens_total or 0))
        for sample in samples
    ]
    counts = [
        values[STALL]
        for values in run(STALLS, [*flat[:3], *(replace(s, generation_tokens_total=23.0) for s in flat[3:])])
    ]
    assert counts == sorted(counts)
    assert counts[-1] == pytest.approx(8, abs=1.1)


def test_a_freeze_teaches_no_patience() -> None:
    twice = decoding(200, 30, 90)
    tail = twice[-1]
    still = [
        rank(
            tail.at + at,
            running=3.0,
            waiting=0.0,
            kv_usage_ratio=0.3,
            generation_tokens_total=tail.generation_tokens_total,
        )
        for at in range(1, 40)
    ]
    assert last(STALLS, [*twice, *still])["engine_frozen"] == 1


def test_gauges_that_stand_still_after_all_clients_left_are_told() -> None:
    # vLLM issue 22545: Running: 106 reqs, Waiting: 15 reqs, KV 90.4 %, 0.0 tokens/s, unchanged
    samples = [
        rank(float(at), running=106.0, waiting=15.0, kv_usage_ratio=0.904, generation_tokens_total=1e6)
        for at in range(60)
    ]
    assert last(STALLS, samples)["engine_frozen"] == 1


@pytest.mark.parametrize("usage", [0.0, 0.97])
def test_waiting_while_nothing_runs_is_a_deadlock_after_a_minute(usage: float) -> None:
    # vLLM issues 39734 (KV 0 %) and 45388 (KV high), vllm-metal 479 (6 waiting for capacity)
    samples = [
        rank(float(at), running=0.0, waiting=6.0, kv_usage_ratio=usage, generation_tokens_total=9.0)
        for at in range(70)
    ]
    deadlocked = [values.get("engine_deadlocked") for values in run(STALLS, samples)]
    assert deadlocked == [None] * 60 + [1] * 10
    lively = [
        rank(-1.0, running=1.0, waiting=0.0, kv_usage_ratio=usage, generation_tokens_total=9.0),
        *samples,
    ]
    deadlocked = [values.get("engine_deadlocked") for values in run(STALLS, lively)]
    assert deadlocked == [0] * 61 + [1] * 10


def test_sequences_that_stand_swapped_out_while_nothing_runs_are_a_deadlock_too() -> None:
    samples = [
        rank(float(at), running=0.0, waiting=0.0, swapped=6.0, generation_tokens_total=9.0)
        for at in range(62)
    ]
    assert [values.get("engine_deadlocked") for values in run(STALLS, samples)] == [None] * 60 + [1] * 2


@pytest.mark.parametrize("field", ["prompt_tokens_total", "generation_tokens_total"])
def test_a_long_prompt_that_is_taken_in_piece_by_piece_is_no_deadlock(field: str) -> None:
    """SGLang's running sequences are those that decode: the one whose prompt is being computed isn't among them."""
    samples = [rank(float(at), running=0.0, waiting=3.0, **{field: 8192.0 * (at // 5)}) for at in range(120)]
    assert last(STALLS, samples)["engine_deadlocked"] == 0
    late = frozenset({field})
    samples = [
        rank(float(at), running=0.0, waiting=3.0, told_at_end=late, **{field: float(at)}) for at in range(120)
    ]
    assert last(STALLS, samples)["engine_deadlocked"] == 1


def test_what_was_not_known_is_not_a_deadlock() -> None:
    samples = [rank(float(at), running=0.0 if at < 6 or at > 99 else None, waiting=6.0) for at in range(101)]
    assert last(STALLS, [rank(-1.0, running=1.0, waiting=0.0), *samples]) == {}


def test_one_step_in_between_is_no_deadlock() -> None:
    samples = [rank(float(at), running=float(at == 40), waiting=6.0) for at in range(90)]
    assert last(STALLS, samples) == {"engine_deadlocked": 0}


def test_a_restart_ends_a_standstill() -> None:
    samples = [
        rank(
            float(at),
            running=2.0,
            waiting=0.0,
            generation_tokens_total=50.0,
            started_at=100.0 if at < 40 else 900.0,
        )
        for at in range(50)
    ]
    said = run(STALLS, samples)
    assert said[39]["engine_frozen"] == 1
    # of the new process nothing is known yet, least of all that it stands still
    assert "engine_frozen" not in said[40]
    assert "last_token_age_seconds" not in said[40]


def test_a_silence_of_the_source_is_not_one_of_the_engine() -> None:
    early, late = decoding(40, 100, 100), decoding(200, 0, 0)
    said = last(STALLS, [*early, late[-1]])
    assert said[STALL] == 0
    # 100 s without a sample and the same count: whatever happened was not seen
    same = rank(200.0, running=3.0, generation_tokens_total=early[-1].generation_tokens_total)
    assert last(STALLS, [*early, same])[STALL] == 0
