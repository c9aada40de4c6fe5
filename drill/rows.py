"""The signals that the demo shows, a row each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from drill.sidecar import Reading
from drill.story import (
    DEMAND_FITS,
    SWAPPED_ALLOWED,
    TOKEN_INTERVAL_SECONDS,
    USAGE_IS_MEMORY,
)
from drill.words import number, percent, seconds, size


@dataclass(frozen=True, slots=True)
class Row:
    """A signal on the screen.

    ``show`` words its value; it may look at further signals. ``top`` is what fills the sparkline (None:
    the largest value seen). ``window`` is the trailing time the signal speaks of, so that it is absent
    before; ``absent`` says why it may be absent afterwards. On a short screen the row with the most
    ``spare`` gives way first.
    """

    title: str
    signal: str
    show: Callable[[float, Reading], str]
    labels: Mapping[str, str] = field(default_factory=dict)
    short: str = ""
    top: float | None = None
    window: float = 0.0
    absent: str = "absent"
    crossed: Callable[[float], bool] = lambda _: False
    spare: int = 0

    def value(self, reading: Reading) -> float | None:
        """The value in ``reading``, or None while it is absent."""
        return reading.get(self.signal, **self.labels)


def _swapped(value: float, reading: Reading) -> str:
    peak = reading.get("swapped_sequences_peak")
    return number(value) + (f"  (peak {number(peak)})" if peak else "")


def _usage(value: float, reading: Reading) -> str:
    peak = reading.get("kv_usage_ratio_peak")
    return percent(value) + (f"  (peak {percent(peak)})" if peak is not None else "")


def _preemptions(value: float, reading: Reading) -> str:
    rate = reading.get("preemptions_per_second")
    return number(value) + (f"  ({rate:.1f}/s)" if rate is not None else "")


def _tail(value: float, reading: Reading) -> str:
    low = reading.get("tail_fragmentation_tokens", bound="low")
    high = reading.get("tail_fragmentation_tokens", bound="high")
    known = low is not None and high is not None
    return number(value) + (f" [{low:.0f}..{high:.0f}]" if known else "") + " tok"


def _proven(value: float, _reading: Reading) -> str:
    return f">= {percent(value)}" if value > 0 else "0: not proven"


def _plain(word: Callable[[float], str]) -> Callable[[float, Reading], str]:
    return lambda value, _reading: word(value)


ROWS: tuple[Row, ...] = (
    Row(
        "KV cache in use",
        "kv_usage_ratio",
        _usage,
        short="KV",
        top=1.0,
        crossed=lambda value: value > USAGE_IS_MEMORY,
    ),
    Row(
        "KV asked for / pool",
        "kv_demand_ratio",
        _plain(lambda value: f"{value:.2f} x"),
        short="demand",
        crossed=lambda value: value > DEMAND_FITS,
    ),
    Row("sequences running", "sequences", _plain(number), {"state": "running"}, short="running", spare=1),
    Row("sequences waiting", "sequences", _plain(number), {"state": "waiting"}, short="waiting"),
    Row(
        "sequences swapped",
        "swapped_sequences",
        _swapped,
        short="swapped",
        crossed=lambda value: value > SWAPPED_ALLOWED,
    ),
    Row("preemptions so far", "preemptions_total", _preemptions, short="preempted"),
    Row(
        "tokens / preemption",
        "tokens_per_preemption",
        _plain(number),
        short="tokens/preemption",
        window=30.0,
        absent="too few preempted",
    ),
    Row(
        "moved or recomputed",
        "wasted_work_ratio",
        _plain(lambda value: f"{percent(value)} of tokens"),
        short="moved or recomputed",
        top=1.0,
        window=30.0,
    ),
    Row("swapped out so far", "swap_bytes_estimate_total", _plain(size), short="swap", absent="no swap seen"),
    Row(
        "tail fragmentation", "tail_fragmentation_tokens", _tail, {"bound": "expected"}, short="tail", spare=2
    ),
    Row(
        "ping-pong, at least",
        "pingpong_ratio",
        _proven,
        {"method": "bound"},
        "ping-pong",
        top=1.0,
        window=30.0,
        spare=3,
    ),
    Row(
        "time between tokens",
        "token_interval_seconds",
        _plain(seconds),
        short="token gap",
        window=30.0,
        crossed=lambda value: value > TOKEN_INTERVAL_SECONDS,
    ),
    Row("first token, p99", "ttft_p99_seconds", _plain(seconds), short="TTFT p99", window=60.0),
    Row("clients that left", "client_aborts_total", _plain(number), short="left"),
    Row(
        "slow first tokens",
        "slo_events_total",
        _plain(number),
        {"slo": "ttft", "good": "false"},
        short="slow starts",
        spare=4,
    ),
    Row(
        "thrashing",
        "thrashing",
        _plain(lambda value: "yes" if value else "no"),
        short="thrashing",
        top=1.0,
        window=30.0,
        absent="not known yet",
        crossed=lambda value: value > 0,
    ),
)


def most_telling(count: int) -> tuple[Row, ...]:
    """``count`` of the rows, in their order: those with the least to spare, the first of them before the last."""
    by_worth = sorted(ROWS, key=lambda row: row.spare)
    kept = {row.title for row in by_worth[:count]}
    return tuple(row for row in ROWS if row.title in kept)
