"""Reads what servers send as JSON: Prometheus's matrix, and VictoriaMetrics's export, which is a line a series.

A general JSON reader makes two objects a sample, which is most of its time. Here it reads the outside alone, labels
with all their escapes among it, and hands over the samples as they stand; those become numbers in one go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from analysis.frame import Key, Values
from analysis.history.samples import Samples

_PUNCTUATION = b'[]"'
_NAME = "__name__"
_MOST_SHOWN = 120


class UnreadableError(Exception):
    """What was sent is no matrix, or no export: what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one answer held. ``warnings``: the server's own; ``histograms``: series of native histograms, left out.

    ``disordered``: series with times that were doubled or didn't rise; of one time the last value stayed.
    """

    series: tuple[Samples, ...] = ()
    warnings: tuple[str, ...] = ()
    histograms: int = 0
    disordered: int = 0


_NOTHING = msgspec.Raw()


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: msgspec.Raw = _NOTHING
    histograms: msgspec.Raw = _NOTHING


class _Data(msgspec.Struct):
    resultType: str  # noqa: N815 - as it is sent
    result: list[_Series]


class _Reply(msgspec.Struct):
    status: str
    data: _Data
    warnings: list[str] | None = None


class _Exported(msgspec.Struct):
    metric: dict[str, str]
    values: msgspec.Raw
    timestamps: list[int]


_REPLY = msgspec.json.Decoder(_Reply)
_EXPORTED = msgspec.json.Decoder(_Exported)
_NUMBERS = msgspec.json.Decoder(list[float | None])
_PAIRS = msgspec.json.Decoder(list[tuple[float, str | float]])
_EXPORTED_VALUES = msgspec.json.Decoder(list[float | str | None])


def read_matrix(body: bytes) -> Answer:
    """The answer to a range selector. Raises UnreadableError."""
    try:
        reply = _REPLY.decode(body)
    except msgspec.DecodeError as error:
        raise UnreadableError(_shortened(error)) from error
    if reply.status != "success" or reply.data.resultType != "matrix":
        raise UnreadableError(f"a {reply.data.resultType[:_MOST_SHOWN]} where a matrix was asked for")
    read = [
        (each.metric, *_pairs(bytes(each.values))) for each in reply.data.result if each.values != _NOTHING
    ]
    histograms = sum(each.histograms != _NOTHING for each in reply.data.result)
    return _answer(read, tuple(reply.warnings or ()), histograms)


def read_export(body: bytes) -> Answer:
    """What ``/api/v1/export`` sends. Raises UnreadableError."""
    read = []
    for line in body.splitlines():
        if not line:
            continue
        try:
            each = _EXPORTED.decode(line)
            values = _exported_values(bytes(each.values))
        except (msgspec.DecodeError, ValueError) as error:
            raise UnreadableError(_shortened(error)) from error
        if len(values) != len(each.timestamps):
            raise UnreadableError(f"{len(values)} values with {len(each.timestamps)} times")
        # division gives the same number that the text of the seconds stands for
        read.append((each.metric, np.array(each.timestamps, dtype=np.float64) / 1000, values))
    return _answer(read, (), 0)


def _pairs(text: bytes) -> tuple[Values, Values]:
    """Times and values of ``[[1435781430.781,"1"],...]``. Raises UnreadableError."""
    # counted, so that what isn't made of pairs can't be taken for them; an infinity is no number in JSON
    samples = text.count(b'"') // 2
    try:
        if text.count(b"[") == samples + 1 and text.count(b'"]') == samples:
            # numpy takes None for NaN
            plain = text.translate(None, _PUNCTUATION).replace(b"NaN", b"null")
            flat = np.array(_NUMBERS.decode(b"[" + plain + b"]"), dtype=np.float64)
            if len(flat) == 2 * samples:
                return flat[::2].copy(), flat[1::2].copy()
    except msgspec.DecodeError:
        pass
    try:
        pairs = _PAIRS.decode(text)
        values = [float(value) for _, value in pairs]
    except (msgspec.DecodeError, ValueError) as error:
        raise UnreadableError(_shortened(error)) from error
    return np.array([at for at, _ in pairs], dtype=np.float64), np.array(values, dtype=np.float64)


def _exported_values(text: bytes) -> Values:
    """Values of an export, where ``null`` stands for NaN and infinities are text."""
    if b'"' not in text:
        return np.array(_NUMBERS.decode(text), dtype=np.float64)
    values = [np.nan if each is None else float(each) for each in _EXPORTED_VALUES.decode(text)]
    return np.array(values, dtype=np.float64)


def _answer(
    read: Iterable[tuple[dict[str, str], Values, Values]], warnings: tuple[str, ...], histograms: int
) -> Answer:
    parts: dict[Key, list[tuple[Values, Values]]] = {}
    for labels, times, values in read:
        named = dict(labels)
        parts.setdefault(Key.of(named.pop(_NAME, ""), named), []).append((times, values))
    series, disordered = [], 0
    for key, each in parts.items():
        times, values = _joined(each)
        if len(times) > 1 and not (np.diff(times) > 0).all():
            disordered += 1
            keep = _rising(times)
            times, values = times[keep], values[keep]
        series.append(Samples(key, times, values))
    return Answer(tuple(series), warnings, histograms, disordered)


def _joined(parts: Sequence[tuple[Values, Values]]) -> tuple[Values, Values]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([times for times, _ in parts]), np.concatenate([values for _, values in parts])


def _rising(times: Values) -> NDArray[np.intp]:
    """Places of the samples in order of their times; of several at one time the one that came last."""
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    last = np.append(ordered[1:] != ordered[:-1], [True])
    return np.asarray(order[last], dtype=np.intp)


def _shortened(error: Exception) -> str:
    return str(error)[:_MOST_SHOWN]
