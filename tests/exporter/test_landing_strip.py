"""The strip on top of the landing page: who answers, and what tells whether an engine is in trouble."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest

from exporter.catalogue import SIGNALS
from exporter.derive.blocks import KV_LEAK, KV_USAGE
from exporter.derive.headroom import DEMAND
from exporter.derive.latency import SATURATED, TTFT_P99
from exporter.derive.preemption import THRASHING
from exporter.derive.ranks import ENGINE_INFO
from exporter.derive.stalls import DEADLOCKED, FROZEN, TOKEN_AGE
from exporter.derive.swap import SWAP_BYTES_RATE, SWAPPED
from exporter.derive.traffic import SEQUENCES
from exporter.landing_strip import TILES, Number, ages_of_old, strip, verdict
from exporter.landing_values import STATES
from exporter.observation import SourceStatus
from exporter.publication import Publication
from exporter.signal import Scope, Signal
from exporter.snapshot import Snapshot, Value
from tests.support.replay import replayed

NOW = 1_800_000_000.0
RANK = ("host:1", "0", "tiny")
EVIL = "<script>alert('1')</script>\"&"


def value(
    signal: Signal, number: float, *labels: str, rank: tuple[str, ...] = RANK, peak: bool = False
) -> Value:
    return Value(signal, (*rank, *labels), number, is_peak=peak)


def status(
    name: str = "host:1", age: float | None = 0.3, *, up: bool = True, errors: int = 0
) -> SourceStatus:
    last_at = None if age is None else NOW - age
    reasons = (("refused", errors),) if errors else ()
    return SourceStatus(name, "engine", answering=up, last_at=last_at, read_seconds=None, errors=reasons)


def publication(*values: Value, statuses: tuple[SourceStatus, ...] = (status(),)) -> Publication:
    return Publication(Snapshot(NOW, values, ready=True), statuses)


def words(html: str) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))).strip()


def blocks(*values: Value, statuses: tuple[SourceStatus, ...] = (status(),)) -> list[str]:
    shown = publication(*values, statuses=statuses)
    return strip(shown, ages_of_old(shown)).split("<section ")[1:]


def tile(title: str, *values: Value) -> str:
    """What stands in the tile of that title, and whether it is marked."""
    (block,) = blocks(*values)
    (found,) = (each for each in block.split('<div class="tile')[1:] if f">{title}</dt>" in each)
    return ("alarm " if found.startswith(" alarm") else "") + words("<" + found).removeprefix(title).strip()


def numbers() -> Iterator[Number]:
    for each in TILES:
        yield from (number for _, number in (*each.numbers, *each.beside))
        yield from each.states


def test_each_number_is_one_of_a_rank_and_some_engine_tells_it() -> None:
    told: set[Number] = set()
    for name in ("vllm-0.32.0", "vllm-0.32.0-offload", "vllm-0.8.5-v0-swap"):
        for cycle in replayed(name)[::10]:
            told |= {
                Number(each.signal, each.labels[len(Scope.RANK.labels) :]) for each in cycle.snapshot.values
            }
    for number in numbers():
        assert number.signal in SIGNALS
        assert number.signal.scope is Scope.RANK
        assert number in told, "a label's value that no engine ever shows"
    assert all(number.signal in STATES for each in TILES for number in each.states)


def test_an_engine_in_trouble() -> None:
    told = (
        value(KV_USAGE, 0.994),
        value(KV_USAGE, 0.998, peak=True),
        value(KV_LEAK, 0.0),
        value(DEMAND, 5.47),
        value(SEQUENCES, 50.0, "waiting"),
        value(SEQUENCES, 9.0, "running"),
        value(THRASHING, 1.0),
        value(TOKEN_AGE, 31.0),
        value(FROZEN, 1.0),
        value(DEADLOCKED, 0.0),
    )
    assert tile("KV usage", *told) == "99.4 % peak 99.8 %"
    assert tile("KV demand", *told) == "547.0 % estimate"
    assert tile("waiting", *told) == "50 running 9"
    assert tile("tokens/preemption", *told) == "alarm — not known thrashing"
    assert tile("since last token", *told) == "alarm 31.0 s frozen not deadlocked lower bound"
    assert words(verdict(publication(*told))) == "the engine answers thrashing: host:1 frozen: host:1"


def test_what_an_engine_is_stands_beside_its_name() -> None:
    kinds = (("one", "sglang", ""), ("two", "vllm", "v1"))
    info = tuple(Value(ENGINE_INFO, labels, 1.0, is_peak=False) for labels in kinds)
    found = blocks(*info, statuses=(status("one"), status("two"), status("three", age=None)))
    heads = [words("<" + block.partition("</h2>")[0]) for block in found]
    assert heads == ["one sglang", "two vllm v1", "three down"]


@pytest.mark.parametrize("kind", ["gateway", "kv_events", "probe", "nvml", "dcgm"])
def test_a_source_beside_the_engines_that_does_not_answer_is_told_of_on_top(kind: str) -> None:
    def beside(*, up: bool, why: str) -> Publication:
        other = SourceStatus("other", kind, answering=up, last_at=None, read_seconds=None, last_error=why)
        return publication(statuses=(status(), other))

    assert words(verdict(beside(up=False, why="refused"))) == "the engine answers no answer: other"
    assert words(verdict(beside(up=True, why=""))) == "the engine answers"
    assert words(verdict(beside(up=False, why=""))) == "the engine answers", "not looked at yet"


def test_absent_is_not_zero() -> None:
    assert tile("waiting", value(KV_USAGE, 0.5)) == "— not known"
    assert tile("waiting", value(SEQUENCES, 0.0, "waiting")) == "0"
    assert tile("tokens/preemption", value(KV_USAGE, 0.5)) == "— not known thrashing: not known"
    assert tile("tokens/preemption", value(THRASHING, 0.0)) == "— not known not thrashing"


def test_what_swaps_is_told_as_the_engine_tells_it() -> None:
    rates = (value(SWAP_BYTES_RATE, 2048.0, "in"), value(SWAP_BYTES_RATE, 1024.0, "out"))
    assert tile("swapped", value(SWAPPED, 3.0), value(SWAPPED, 5.0, peak=True)) == "alarm 3 peak 5"
    assert tile("swapped", value(SWAPPED, 0.0), value(SWAPPED, 5.0, peak=True)) == "0 peak 5"
    assert tile("swapped in", *rates) == "2.0 KiB/s out 1.0 KiB/s"
    assert tile("swapped", value(KV_USAGE, 0.5)) == "— not known"


def test_a_quantile_above_the_top_bucket_is_a_floor() -> None:
    ttft = value(TTFT_P99, 10.0)
    assert tile("first token p99", ttft, value(SATURATED, 0.0, "ttft_p99")) == "10.0 s"
    assert tile("first token p99", ttft, value(SATURATED, 1.0, "tpot_p99")) == "10.0 s"
    saturated = tile("first token p99", ttft, value(SATURATED, 1.0, "ttft_p99"))
    assert saturated == f"alarm 10.0 s {STATES[SATURATED].word}"


def test_each_rank_has_its_own_block_and_is_named_where_there_are_several() -> None:
    one = blocks(value(KV_USAGE, 0.5))
    assert "host:1 tiny" in words(one[0])
    assert "rank" not in words(one[0])
    two = blocks(value(KV_USAGE, 0.5), value(KV_USAGE, 0.75, rank=("host:1", "1", "tiny")))
    assert [re.findall(r"rank \d|[\d.]+ %", words(each)) for each in two] == [
        ["rank 0", "50.0 %"],
        ["rank 1", "75.0 %"],
    ]


def test_an_engine_that_is_down_has_a_block_too() -> None:
    statuses = (status(), status("dead:1", None, up=False), status("gone:1", 130.0, up=False))
    alive, dead, gone = blocks(value(KV_USAGE, 0.5), statuses=statuses)
    assert "down" not in words(alive)
    assert words(dead).startswith('class="engine"> dead:1 down KV usage — not known')
    assert words(dead).count("not known") == len(TILES)
    assert "gone:1 down 2 min 10 s since it answered" in words(gone)
    assert "old" not in words(gone), "nothing is left to be old"


def test_numbers_of_an_engine_that_is_down_say_their_age() -> None:
    (block,) = blocks(value(KV_USAGE, 0.5), statuses=(status(age=12.0, up=False),))
    assert block.startswith('class="engine old"')
    assert "host:1 tiny down 12 s old" in words(block)


def test_an_engine_read_too_long_ago_is_down_as_its_signal_says() -> None:
    (block,) = blocks(statuses=(status(age=16.0),))
    assert "down" in words(block)
    assert words(verdict(publication(statuses=(status(age=16.0),)))) == "the engine does not answer"


@pytest.mark.parametrize(
    ("statuses", "kind", "said"),
    [
        ((), "", ""),
        ((status(),), "ok", "the engine answers"),
        ((status(up=False, errors=1),), "bad", "the engine does not answer"),
        ((status("a"), status("b")), "ok", "2 of 2 engines answer"),
        ((status("a"), status("b", up=False)), "bad", "1 of 2 engines answer"),
        ((status("a", up=False), status("b", up=False)), "bad", "none of 2 engines answer"),
        ((status("a", None, up=False), status("b", None, up=False)), "hint", "no engine has answered yet"),
        ((status("a", None, up=False, errors=1), status("b")), "bad", "1 of 2 engines answer"),
        ((SourceStatus("gpu", "nvml", answering=False, last_at=None, read_seconds=None),), "", ""),
    ],
)
def test_how_many_engines_answer(statuses: tuple[SourceStatus, ...], kind: str, said: str) -> None:
    html = verdict(publication(statuses=statuses))
    assert words(html) == said
    assert re.findall(r'class="(\w+)"', html) == ([kind] if kind else [])


def test_the_verdict_names_each_engine_once_for_each_state() -> None:
    ranks = [("one", "0", "m"), ("one", "1", "m"), ("two", "0", "m"), ("three", "0", "m")]
    values = [value(THRASHING, float(rank[0] != "three"), rank=rank) for rank in ranks]
    assert words(verdict(publication(*values))) == "the engine answers thrashing: one, two"


def test_sequences_in_host_memory_are_told_on_top_as_long_as_they_are_there() -> None:
    there = (value(SWAPPED, 2.0), value(SWAPPED, 1.0, rank=("host:1", "1", "tiny")))
    assert words(verdict(publication(*there))) == "the engine answers swapped out: host:1"
    back = (value(SWAPPED, 0.0), value(SWAPPED, 5.0, peak=True))
    assert words(verdict(publication(*back))) == "the engine answers"


def test_what_others_wrote_is_escaped() -> None:
    evil = value(THRASHING, 1.0, rank=(EVIL, EVIL, EVIL))
    other = value(THRASHING, 1.0, rank=(EVIL, "1", "m"))
    shown = publication(evil, other, statuses=(status(EVIL, 5.0, up=False),))
    html = strip(shown, ages_of_old(shown)) + verdict(shown)
    assert "<script" not in html
    assert unescape(html).count(EVIL) == 5
