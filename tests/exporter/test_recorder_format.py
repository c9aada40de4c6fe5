from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.recorder_format import (
    CHUNK_MILLISECONDS,
    FormatError,
    Tick,
    chunk_start,
    decode_chunk,
    decode_tick,
    encode_chunk,
    encode_tick,
)

START = 1_800_000_000_000
GAUGES = st.dictionaries(st.integers(1, 40), st.floats(width=64))
WHOLE = st.integers(-(1 << 53), 1 << 53).map(float)
COUNTERS = st.dictionaries(st.integers(41, 80), st.one_of(st.floats(width=64), WHOLE, st.just(-0.0)))


@st.composite
def minutes(draw: st.DrawFn) -> list[Tick]:
    offsets = sorted(draw(st.sets(st.integers(0, CHUNK_MILLISECONDS - 1), min_size=1, max_size=20)))
    return [Tick(START + offset, draw(GAUGES), draw(COUNTERS)) for offset in offsets]


def rounded(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def same(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))


@given(GAUGES, COUNTERS)
def test_a_tick_comes_back(gauges: dict[int, float], counters: dict[int, float]) -> None:
    tick = decode_tick(START, encode_tick(gauges, counters))
    assert list(tick.gauges) == list(gauges)
    assert list(tick.counters) == list(counters)
    for number, value in gauges.items():
        assert same(tick.gauges[number], rounded(value))
    for number, value in counters.items():
        assert same(tick.counters[number], value)


@given(minutes())
def test_a_minute_comes_back_with_its_gaps(ticks: list[Tick]) -> None:
    chunk = decode_chunk(START, encode_chunk(START, ticks))
    assert list(chunk.times) == [tick.at / 1000 for tick in ticks]
    assert set(chunk.columns) == {number for tick in ticks for number in (*tick.gauges, *tick.counters)}
    for number, (places, values) in chunk.columns.items():
        expected = [
            (place, rounded(tick.gauges[number]) if number in tick.gauges else tick.counters[number])
            for place, tick in enumerate(ticks)
            if number in tick.gauges or number in tick.counters
        ]
        assert (places or tuple(range(len(ticks)))) == tuple(place for place, _ in expected)
        assert (places is None) == (len(expected) == len(ticks))
        assert len(values) == len(expected)
        assert all(same(value, told) for value, (_, told) in zip(values, expected, strict=True))


@given(minutes())
def test_folding_changes_no_value(ticks: list[Tick]) -> None:
    as_written = [decode_tick(tick.at, encode_tick(tick.gauges, tick.counters)) for tick in ticks]
    chunk = decode_chunk(START, encode_chunk(START, as_written))
    for number, (places, values) in chunk.columns.items():
        for place, value in zip(places or range(len(ticks)), values, strict=True):
            tick = as_written[place]
            assert same(value, {**tick.gauges, **tick.counters}[number])


@given(st.lists(st.floats(1e-30, 1e30), min_size=1, max_size=60))
def test_a_gauge_is_off_by_at_most_a_rounding_of_float32(values: list[float]) -> None:
    ticks = [Tick(START + place, {1: value}, {}) for place, value in enumerate(values)]
    chunk = decode_chunk(START, encode_chunk(START, ticks))
    for value, told in zip(chunk.columns[1].values, values, strict=True):
        assert abs(value - told) <= told * 2.0**-24


@given(minutes(), st.sets(st.integers(1, 80)))
def test_only_what_is_wanted_is_decoded_and_is_the_same(ticks: list[Tick], wanted: set[int]) -> None:
    data = encode_chunk(START, ticks)
    every, some = decode_chunk(START, data).columns, decode_chunk(START, data, wanted).columns
    assert set(some) == set(every) & wanted
    for number, column in some.items():
        assert column.places == every[number].places
        assert column.values.tobytes() == every[number].values.tobytes()


def test_a_quiet_minute_of_200_series_takes_next_to_nothing() -> None:
    ticks = [Tick(START + 1000 * place, dict.fromkeys(range(200), 0.25), {}) for place in range(60)]
    assert len(encode_chunk(START, ticks)) < 1500


@given(minutes(), st.data())
def test_bytes_of_nobody_are_refused(ticks: list[Tick], data: st.DataObject) -> None:
    chunk = encode_chunk(START, ticks)
    with pytest.raises(FormatError):
        decode_chunk(START, chunk[: data.draw(st.integers(0, len(chunk) - 1))])
    tick = encode_tick(ticks[0].gauges, ticks[0].counters)
    with pytest.raises(FormatError):
        decode_tick(START, tick[: data.draw(st.integers(0, len(tick) - 1))])
    with pytest.raises(FormatError):
        decode_tick(START, tick + b"x")


def test_a_chunk_holds_one_minute() -> None:
    assert chunk_start(START + 59_999) == START
    assert chunk_start(START + 60_000) == START + 60_000
    for ticks in ([], [Tick(START - 1, {}, {})], [Tick(START + 60_000, {}, {})]):
        with pytest.raises(ValueError, match="not the ticks of one minute"):
            encode_chunk(START, ticks)
