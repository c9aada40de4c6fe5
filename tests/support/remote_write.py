"""Prometheus's remote write 1.0: series with their samples as protobuf, in snappy's framing without compression."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

_LABELS, _SAMPLES, _SERIES = 0x0A, 0x12, 0x0A
_SAMPLE_BYTES = 16
_MILLISECOND_BYTES = 6
"""Of a time from 2004 to 2109 as a varint."""
_SAMPLE = np.dtype(
    [
        ("field", "u1"),
        ("length", "u1"),
        ("value_field", "u1"),
        ("value", "<f8"),
        ("time_field", "u1"),
        ("time", "u1", (_MILLISECOND_BYTES,)),
    ]
)
_LITERAL_BYTES = 1 << 16


def body(series: Iterable[tuple[Mapping[str, str], bytes]]) -> bytes:
    """Of one request: labels, ``__name__`` among them, and samples as ``samples`` makes them."""
    return _snappy(b"".join(_field(_SERIES, _labels(labels) + made) for labels, made in series))


def samples(times: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> bytes:
    """Of a series: rising milliseconds since 1970, and as many values. Several series may share them."""
    # all have the same length, so that an array can be laid out as they are
    made = np.zeros(len(times), _SAMPLE)
    made["field"], made["length"] = _SAMPLES, _SAMPLE_BYTES
    made["value_field"], made["value"] = 0x09, values
    made["time_field"] = 0x10
    for place in range(_MILLISECOND_BYTES):
        more = 0x80 if place < _MILLISECOND_BYTES - 1 else 0
        made["time"][:, place] = times >> 7 * place & 0x7F | more
    return made.tobytes()


def _labels(labels: Mapping[str, str]) -> bytes:
    pairs = sorted(labels.items())
    return b"".join(
        _field(_LABELS, _field(0x0A, name.encode()) + _field(0x12, value.encode())) for name, value in pairs
    )


def _field(tag: int, content: bytes) -> bytes:
    return bytes([tag]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _snappy(content: bytes) -> bytes:
    """A block of literals only."""
    parts = [_varint(len(content))]
    for start in range(0, len(content), _LITERAL_BYTES):
        part = content[start : start + _LITERAL_BYTES]
        parts += [b"\xf4", struct.pack("<H", len(part) - 1), part]
    return b"".join(parts)
