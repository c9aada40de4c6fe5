"""The bytes of a recording: ticks and chunks of a minute, encoded and decoded without any I/O.

A tick is one cycle as it comes: series numbers, float32 for gauges, float64 for counters. A chunk is
the ticks of one minute turned into columns, one a series. A column holds the differences of
neighbouring bit patterns (of neighbouring whole numbers, for a counter that counts in those); all
first bytes stand together, then all second bytes and so on, since that is what zlib finds patterns in.

Gauges are rounded to float32 in the tick already, so that a value never changes when its tick is
folded: 24 bits, a relative error of at most 6e-8 between 1.2e-38 and 3.4e38, infinity above that. Counters are exact.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

CHUNK_MILLISECONDS = 60_000
"""What one chunk spans, from a whole minute to the next."""

_GAUGE, _WHOLE, _DOUBLE = 0, 1, 2
_KIND_BITS, _CONSTANT, _PARTIAL = 0x0F, 0x40, 0x80
_LARGEST_WHOLE = float(1 << 53)
_LEVEL, _MEMORY_LEVEL = 6, 6
"""The second makes blocks of 4096 bytes, so that planes as unlike as noise and zeros have codes of their own."""
_TICK_HEAD = struct.Struct("<II")
_CHUNK_HEAD = struct.Struct("<IIII")
_TYPECODES = {16: "H", 32: "I", 64: "Q"}


class FormatError(ValueError):
    """Bytes that no encoder of this version has written."""


class Tick(NamedTuple):
    """One cycle: ``at`` in milliseconds since the epoch, the values by the number of their series."""

    at: int
    gauges: Mapping[int, float]
    counters: Mapping[int, float]


class Column(NamedTuple):
    """One series in a chunk: its values at the chunk's ticks ``places``, at all of them where that is None.

    Gauges are an array of float32 (typecode f), which is all that is known of them; counters one of float64 (d).
    """

    places: tuple[int, ...] | None
    values: array[float]


class Chunk(NamedTuple):
    """A minute: ``times`` of its ticks in seconds since the epoch, and columns by number of series."""

    times: array[float]
    columns: Mapping[int, Column]


def encode_tick(gauges: Mapping[int, float], counters: Mapping[int, float]) -> bytes:
    """Encode the values of one cycle by number of series; the time stands beside it, in the row."""
    return b"".join(
        (
            _TICK_HEAD.pack(len(gauges), len(counters)),
            _packed("I", gauges),
            _packed("I", counters),
            _packed("f", gauges.values()),
            _packed("d", counters.values()),
        )
    )


def decode_tick(at: int, data: bytes) -> Tick:
    """Decode what ``encode_tick`` made. Raises FormatError."""
    try:
        gauges, counters = _TICK_HEAD.unpack_from(data)
    except struct.error as error:
        raise FormatError(f"a tick of {len(data)} bytes has no head") from error
    rest = _Bytes(data, _TICK_HEAD.size)
    gauge_ids, counter_ids = rest.take("I", gauges), rest.take("I", counters)
    tick = Tick(
        at,
        dict(zip(gauge_ids, rest.take("f", gauges), strict=True)),
        dict(zip(counter_ids, rest.take("d", counters), strict=True)),
    )
    rest.end()
    return tick


def chunk_start(at: int) -> int:
    """The start of the chunk that a tick ``at`` belongs to, both in milliseconds since the epoch."""
    return at - at % CHUNK_MILLISECONDS


def encode_chunk(start: int, ticks: Sequence[Tick]) -> bytes:
    """Encode the ticks of the minute from ``start`` on, in order of time; at least one.

    Raises ValueError for a tick outside that minute.
    """
    offsets = [tick.at - start for tick in ticks]
    if not offsets or min(offsets) < 0 or max(offsets) >= CHUNK_MILLISECONDS:
        raise ValueError(f"not the ticks of one minute from {start} on: {offsets}")
    gauges = _columns(tick.gauges for tick in ticks)
    counters = _columns(tick.counters for tick in ticks)
    numbers = sorted({*gauges, *counters})
    kinds = bytearray()
    masks: list[bytes] = []
    elements: dict[int, list[int]] = {32: [], 64: []}
    for number in numbers:
        places, values = gauges[number] if number in gauges else counters[number]
        kind, bits = (_GAUGE, _patterns(values, "f")) if number in gauges else _counter_bits(values)
        width = _width(kind)
        if bits.count(bits[0]) == len(bits):
            kind |= _CONSTANT
            bits = bits[:1]
        if len(places) < len(ticks):
            kind |= _PARTIAL
            mask = sum(1 << place for place in places)
            masks.append(mask.to_bytes(_mask_size(len(ticks)), "little"))
        kinds.append(kind)
        elements[width].extend(_differences(bits, width))
    raw = b"".join(
        (
            _CHUNK_HEAD.pack(len(ticks), len(numbers), len(elements[32]), len(elements[64])),
            _planes(_differences(offsets, 16), 16),
            _planes(_differences(numbers, 32), 32),
            kinds,
            *masks,
            _planes(elements[32], 32),
            _planes(elements[64], 64),
        )
    )
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS, _MEMORY_LEVEL)
    return packer.compress(raw) + packer.flush()


def decode_chunk(start: int, data: bytes, wanted: Container[int] | None = None) -> Chunk:
    """Decode what ``encode_chunk`` made, only the series ``wanted`` where given. Raises FormatError."""
    try:
        raw = zlib.decompress(data)
        ticks, series, narrow, wide = _CHUNK_HEAD.unpack_from(raw)
    except (zlib.error, struct.error) as error:
        raise FormatError(f"a chunk can't be decompressed: {error}") from error
    rest = _Bytes(raw, _CHUNK_HEAD.size)
    offsets = rest.planes(16, ticks)
    numbers = rest.planes(32, series)
    kinds = rest.raw(series)
    masks = {
        number: int.from_bytes(rest.raw(_mask_size(ticks)), "little")
        for number, kind in zip(numbers, kinds, strict=True)
        if kind & _PARTIAL
    }
    sections = {32: _Section(rest.raw(4 * narrow), 32), 64: _Section(rest.raw(8 * wide), 64)}
    rest.end()
    columns: dict[int, Column] = {}
    for number, kind in zip(numbers, kinds, strict=True):
        mask = masks.get(number)
        count = ticks if mask is None else mask.bit_count()
        section = sections[_width(kind & _KIND_BITS)]
        size = 1 if kind & _CONSTANT else count
        if wanted is not None and number not in wanted:
            section.skip(size)
            continue
        places = None if mask is None else tuple(place for place in range(ticks) if mask >> place & 1)
        values = _values(kind & _KIND_BITS, section.take(size))
        columns[number] = Column(places, values * count if kind & _CONSTANT else values)
    return Chunk(array("d", [(start + offset) / 1000 for offset in offsets]), columns)


def _columns(ticks: Iterable[Mapping[int, float]]) -> dict[int, tuple[list[int], list[float]]]:
    """Turn values by series, a mapping a tick, into places and values a series."""
    ticks = list(ticks)
    always = set(ticks[0]).intersection(*ticks[1:])  # nearly all: little comes and goes within a minute
    places = list(range(len(ticks)))
    columns = {number: (places, [values[number] for values in ticks]) for number in always}
    for place, values in enumerate(ticks):
        for number in values.keys() - always:
            some_places, some_values = columns.setdefault(number, ([], []))
            some_places.append(place)
            some_values.append(values[number])
    return columns


def _counter_bits(values: Sequence[float]) -> tuple[int, list[int]]:
    # whole numbers rise by small steps, which their float64 patterns don't
    if all(-_LARGEST_WHOLE <= value <= _LARGEST_WHOLE and value.is_integer() for value in values):
        return _WHOLE, [int(value) & 0xFFFF_FFFF_FFFF_FFFF for value in values]
    return _DOUBLE, _patterns(values, "d")


def _width(kind: int) -> int:
    return 32 if kind == _GAUGE else 64


def _patterns(values: Sequence[float], typecode: str) -> list[int]:
    """The bit patterns of floats of 4 (``f``) or 8 (``d``) bytes."""
    return list(_unpacked("I" if typecode == "f" else "Q", _packed(typecode, values)))


def _values(kind: int, bits: Sequence[int]) -> array[float]:
    if kind == _WHOLE:
        return array("d", [float(each - (1 << 64) if each >> 63 else each) for each in bits])
    if kind not in {_GAUGE, _DOUBLE}:
        raise FormatError(f"a column is of the unknown kind {kind}")
    inner, outer = ("I", "f") if kind == _GAUGE else ("Q", "d")
    values: array[float] = array(outer)
    values.frombytes(array(inner, bits).tobytes())
    return values


def _differences(values: Sequence[int], width: int) -> list[int]:
    """The first value, then each less the one before it, modulo 2 to the ``width``."""
    mask = (1 << width) - 1
    return [*values[:1], *((after - before) & mask for before, after in pairwise(values))]


def _sums(differences: Sequence[int], width: int) -> list[int]:
    mask = (1 << width) - 1
    return [each & mask for each in accumulate(differences)]


def _planes(values: Sequence[int], width: int) -> bytes:
    """Write all lowest bytes, then all second ones, and so on."""
    data = _packed(_TYPECODES[width], values)
    step = width // 8
    return b"".join(data[place::step] for place in range(step))


def _from_planes(planes: Sequence[bytes], width: int) -> list[int]:
    step = width // 8
    data = bytearray(step * len(planes[0]))
    for place, plane in enumerate(planes):
        data[place::step] = plane
    return list(_unpacked(_TYPECODES[width], bytes(data)))


def _packed(typecode: str, values: Iterable[float]) -> bytes:
    packed = array(typecode, values)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def _unpacked(typecode: str, data: bytes) -> array[int]:
    unpacked: array[int] = array(typecode)
    unpacked.frombytes(data)
    if sys.byteorder == "big":
        unpacked.byteswap()
    return unpacked


def _mask_size(ticks: int) -> int:
    return (ticks + 7) // 8


class _Bytes:
    """Bytes taken from the front, piece by piece; FormatError where there are too few or some are left."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place

    def raw(self, size: int) -> bytes:
        piece = self._data[self._place : self._place + size]
        if len(piece) < size:
            raise FormatError(f"ends {size - len(piece)} bytes too early")
        self._place += size
        return piece

    def take(self, typecode: str, count: int) -> array[int]:
        return _unpacked(typecode, self.raw(count * array(typecode).itemsize))

    def planes(self, width: int, count: int) -> list[int]:
        return _Section(self.raw(count * width // 8), width).take(count)

    def end(self) -> None:
        if self._place < len(self._data):
            raise FormatError(f"goes on for {len(self._data) - self._place} bytes too many")


class _Section:
    """All elements of one width, byte by byte apart; taken series by series."""

    def __init__(self, data: bytes, width: int) -> None:
        self._width, self._place = width, 0
        size = len(data) // (width // 8)
        self._planes = [data[each * size : (each + 1) * size] for each in range(width // 8)]

    def skip(self, count: int) -> None:
        self._place += count

    def take(self, count: int) -> list[int]:
        """Take ``count`` differences and give what they sum up to."""
        planes = [plane[self._place : self._place + count] for plane in self._planes]
        if any(len(plane) < count for plane in planes):
            raise FormatError("a column ends too early")
        self._place += count
        return _sums(_from_planes(planes, self._width), self._width)
