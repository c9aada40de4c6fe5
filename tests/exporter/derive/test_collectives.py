from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

import pytest

from exporter.derive.collectives import COLLECTIVES
from exporter.gpu_sample import GpuSample, NvLink
from exporter.sample import EngineSample
from tests.exporter.derive.joining import Timed, joins
from tests.support.derive import Named, engine, gpu, rank, run_joined

RATE, DROP = "collective_bytes_per_second", "collective_drop_ratio"
TOKEN_BYTES = 2 * 80 * 8192 * 2 * 7 / 8 * 2
"""Sent by each of 8 GPUs for a token: two all-reduces a layer of 8192 16-bit values, as a ring does it."""


def told(
    seconds: int,
    running: Callable[[int], float] = lambda _: 32.0,
    step_seconds: Callable[[int], float] = lambda _: 0.04,
    prompt_tokens: Callable[[int], float] = lambda _: 500.0,
    seed: int = 1,
    **fields: object,
) -> list[Timed]:
    """An engine on two GPUs: a token a step for each sequence, and prompts computed beside them."""
    dice = random.Random(seed)  # noqa: S311 -- a story, not a secret
    tokens = moved = 0.0
    made: list[Timed] = []
    for at in range(seconds):
        steps = dice.uniform(0.95, 1.05) / step_seconds(at)
        new = steps * running(at)
        tokens += new
        moved += (new + prompt_tokens(at)) * TOKEN_BYTES
        made.append(
            engine(
                float(at),
                rank(float(at), running=running(at), generation_tokens_total=tokens),
                **{"started_at": 1.0, **fields},
            )
        )
        made += [gpu(at + 0.4, index, nvlink=NvLink(moved, moved)) for index in range(2)]
    return made


def said(samples: Sequence[Timed]) -> list[Named]:
    """What is said after each second, as the cycle asks: once all three were read."""
    return run_joined(COLLECTIVES, islice(joins(samples), 2, None, 3))


def drops(samples: Sequence[Timed], after: int) -> list[float]:
    return [values[DROP] for values in said(samples)[after:]]


def test_each_byte_counts_once() -> None:
    values = said(told(30, prompt_tokens=lambda _: 0.0))[-1]
    assert values[RATE] == pytest.approx(2 * 32 * 25 * TOKEN_BYTES, rel=0.03)


def test_collectives_that_slow_down_show() -> None:
    """The incident: throughput down by 82 %, with a lot more sequences than before."""
    samples = told(
        1800,
        running=lambda at: 32.0 if at < 1200 else 80.0,
        step_seconds=lambda at: 0.04 if at < 1200 else 0.04 / 0.18,
        prompt_tokens=lambda at: 500.0 if at < 1200 else 90.0,
    )
    found = drops(samples, 450)
    assert max(found[:740]) < 0.1
    # 80 sequences at a fifth of the pace carry 0.45 of what 32 did
    assert all(0.5 < drop < 0.6 for drop in found[800:])
    same_load = told(
        1800,
        step_seconds=lambda at: 0.04 if at < 1200 else 0.04 / 0.18,
        prompt_tokens=lambda at: 500.0 if at < 1200 else 90.0,
    )
    assert all(drop == pytest.approx(0.82, abs=0.03) for drop in drops(same_load, 1300))


def test_it_shows_for_as_long_as_it_lasts() -> None:
    samples = told(
        600 + 47 * 60,
        step_seconds=lambda at: 0.04 if at < 600 else 0.2,
        prompt_tokens=lambda at: 500.0 if at < 600 else 100.0,
    )
    assert all(drop == pytest.approx(0.8, abs=0.03) for drop in drops(samples, 700))


@pytest.mark.parametrize(
    "changed",
    [
        # twice the sequences: each step takes longer, all together make more
        told(1800, running=lambda at: 64.0 if at > 900 else 32.0, step_seconds=lambda at: 0.06 if at > 900 else 0.04),
        # the load goes: few sequences, each as fast or faster
        told(1800, running=lambda at: 3.0 if at > 900 else 32.0, prompt_tokens=lambda at: 40.0 if at > 900 else 500.0),
        # nothing arrives any more: prefill, most of the bytes, is gone
        told(1800, prompt_tokens=lambda at: 0.0 if at > 900 else 20_000.0, step_seconds=lambda _: 0.08),
        # a wave of prompts: decode steps wait for them
        told(
            1800,
            prompt_tokens=lambda at: 20_000.0 if at > 900 else 100.0,
            step_seconds=lambda at: 0.3 if at > 900 else 0.04,
        ),
    ],
    ids=["more load", "less load", "no arrivals", "a wave of prompts"],
)  # fmt: skip
def test_other_load_is_no_drop(changed: list[Timed]) -> None:
    found = [values[DROP] for values in said(changed)[450:] if DROP in values]
    assert found
    assert max(found) < 0.15


def test_nothing_is_known_to_be_usual_before_five_minutes_were_seen() -> None:
    known = [DROP in values for values in said(told(400))]
    assert known.index(True) in range(270, 340)


def test_of_fewer_sequences_than_ever_before_nothing_is_usual() -> None:
    samples = told(1200, running=lambda at: 32.0 if at < 900 else 2.0)
    assert not any(DROP in values for values in said(samples)[960:1200])


def test_another_process_has_other_habits() -> None:
    before = told(700)
    tokens, moved = 0.0, 0.0
    after: list[Timed] = []
    for at in range(700, 800):
        tokens += 50.0
        moved += 50.0 * TOKEN_BYTES
        after.append(
            engine(float(at), rank(float(at), running=32.0, generation_tokens_total=tokens), started_at=700.0)
        )
        after += [gpu(at + 0.4, index, nvlink=NvLink(1e18 + moved)) for index in range(2)]
    assert not any(DROP in values for values in said([*before, *after])[700:])


@pytest.mark.parametrize(
    "without",
    [
        lambda sample: sample._replace(nvlink=None) if isinstance(sample, GpuSample) else sample,
        lambda sample: (
            sample._replace(nvlink=NvLink(None, None, 0, 0)) if isinstance(sample, GpuSample) else sample
        ),
    ],
    ids=["none", "no counters"],
)
def test_absent_without_nvlink(without: Callable[[Timed], Timed]) -> None:
    assert said([without(each) for each in told(400)])[-1] == {}


@pytest.mark.parametrize(
    "links", [NvLink(out_bytes_per_second=3e9, in_bytes_per_second=2e9), NvLink(bytes_per_second=6e9)]
)
def test_rates_will_do_where_there_are_no_totals(links: NvLink) -> None:
    samples = [each._replace(nvlink=links) if isinstance(each, GpuSample) else each for each in told(40)]
    assert said(samples)[-1][RATE] == pytest.approx(2 * 3e9)


def test_the_time_between_two_reads_of_the_links_counts_not_that_between_two_samples() -> None:
    def told(at: int) -> GpuSample:
        read_at = at // 4 * 4.0
        return gpu(at + 0.4, nvlink=NvLink(1e9 * read_at, read_at=read_at))

    samples: list[Timed] = [*map(told, range(60)), *(engine(float(at), rank(float(at))) for at in range(60))]
    rates = [values.get("collective_bytes_per_second") for values in run_joined(COLLECTIVES, joins(samples))]
    known = [rate for rate in rates if rate is not None]
    assert known == [pytest.approx(1e9)] * len(known)
    assert len(known) > 60


def test_totals_of_two_sources_are_not_compared() -> None:
    samples: list[Timed] = [engine(float(at), rank(float(at))) for at in range(60)]
    samples += [gpu(at + 0.4, nvlink=NvLink(1e9 * at)) for at in range(40)]
    samples += [gpu(at + 0.4, nvlink=NvLink(5e15 + 1e9 * at, source="dcgm")) for at in range(40, 60)]
    rates = [values.get("collective_bytes_per_second") for values in run_joined(COLLECTIVES, joins(samples))]
    assert max(rate for rate in rates if rate is not None) == pytest.approx(1e9)
    assert rates[-1] is not None


def test_links_that_carry_nothing_make_no_drop() -> None:
    samples = [
        each._replace(nvlink=NvLink(0.0, 0.0)) if isinstance(each, GpuSample) else each for each in told(400)
    ]
    assert said(samples)[-1] == {RATE: 0}


def test_no_tokens_no_drop() -> None:
    samples = [
        engine(each.at, rank(each.at, running=32.0, generation_tokens_total=5.0))
        if not _is_gpu(each)
        else each
        for each in told(500)
    ]
    assert DROP not in said(samples)[-1]


def test_absent_while_a_gpu_is_stale() -> None:
    assert run_joined(COLLECTIVES, joins(told(400), stale=1))[-1] == {}


def _is_gpu(sample: Timed) -> bool:
    return isinstance(sample, GpuSample)


def test_tokens_that_are_counted_when_a_request_ends_say_nothing_of_now() -> None:
    late = frozenset({"generation_tokens_total"})
    values = said(
        [
            replace(each, ranks=tuple(replace(one, told_at_end=late) for one in each.ranks))
            if isinstance(each, EngineSample)
            else each
            for each in told(600)
        ]
    )
    assert all(RATE in value for value in values[20:])
    assert not any(DROP in value for value in values)
