"""What the demo tells: which signals it shows, and which lines, once crossed, it speaks of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from drill.sidecar import Reading

# The lines. Those of usage, swap and token interval are drawn by the incident's runbook: under 80 %
# look at compute or network, over 90 % it is memory; anything swapped breaks the invariant; at 2 s a
# token clients time out and come again. Those of tokens per preemption are the sidecar's own bounds
# of `thrashing`: about 2 in the incident, 570 to 760 on real engines that are merely full.
USAGE_IS_MEMORY = 0.90
USAGE_IS_NOT_MEMORY = 0.80
SWAPPED_ALLOWED = 0
TOKEN_INTERVAL_SECONDS = 2.0
THRASH_TOKENS_PER_PREEMPTION = 50
PLAIN_TOKENS_PER_PREEMPTION = 200
DEMAND_FITS = 1.0


def number(value: float) -> str:
    """Write a plain number short."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"  # noqa: PLR2004 - digits


def percent(ratio: float) -> str:
    """Write a ratio as a whole percentage."""
    return f"{ratio:.0%}"


def seconds(value: float) -> str:
    """Write a duration with its unit."""
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.1f} s"


def size(value: float) -> str:
    """Write bytes with a decimal unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:  # noqa: PLR2004 - the step of decimal units
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def minute(elapsed: float) -> str:
    """Write seconds as m:ss."""
    return f"{int(elapsed) // 60}:{int(elapsed) % 60:02d}"


@dataclass(frozen=True, slots=True)
class Row:
    """A signal on the screen.

    ``show`` words its value; it may look at further signals. ``top`` is what fills the sparkline (None:
    the largest value seen). ``window`` is the trailing time the signal speaks of, so that it is absent
    before; ``absent`` says why it may be absent afterwards.
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
    Row("sequences running", "sequences", _plain(number), {"state": "running"}, short="running"),
    Row("  waiting", "sequences", _plain(number), {"state": "waiting"}, short="waiting"),
    Row(
        "  swapped out",
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
        absent="under 5 preempted",
        crossed=lambda value: value < THRASH_TOKENS_PER_PREEMPTION,
    ),
    Row("work done again", "wasted_work_ratio", _plain(percent), short="wasted", top=1.0, window=30.0),
    Row("swapped out so far", "swap_bytes_estimate_total", _plain(size), short="swap", absent="no swap seen"),
    Row("tail fragmentation", "tail_fragmentation_tokens", _tail, {"bound": "expected"}, short="tail"),
    Row(
        "ping-pong, at least",
        "pingpong_ratio",
        _proven,
        {"method": "bound"},
        "ping-pong",
        top=1.0,
        window=30.0,
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
    ),
    Row(
        "thrashing",
        "thrashing",
        _plain(lambda value: "yes" if value else "no"),
        short="thrashing",
        top=1.0,
        crossed=lambda value: value > 0,
    ),
)


@dataclass(frozen=True, slots=True)
class Event:
    """A line that was crossed, ``at`` seconds into the demo, in plain words."""

    at: float
    key: str
    text: str
    is_good: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """Something worth a word the first time it is so: ``say`` gives the word, or None while it isn't."""

    key: str
    say: Callable[[Reading], str | None]
    after: str = ""
    """The key of the line that must have been crossed before."""
    is_good: bool = False


def _demand(reading: Reading) -> str | None:
    demand = reading.get("kv_demand_ratio")
    if demand is None or demand <= DEMAND_FITS:
        return None
    usage = reading.get("kv_usage_ratio") or 0.0
    return f"asked for {demand:.1f} x the KV pool, while usage still says {percent(usage)}"


def _memory(reading: Reading) -> str | None:
    usage, waiting = reading.get("kv_usage_ratio"), reading.get("sequences", state="waiting")
    if usage is None or not waiting or usage <= USAGE_IS_MEMORY:
        return None
    return (
        f"KV usage {percent(usage)}, {number(waiting)} waiting: memory, not compute. Shed load at the gateway"
    )


def _invariant(reading: Reading) -> str | None:
    swapped = reading.get("swapped_sequences")
    if swapped is None or swapped <= SWAPPED_ALLOWED:
        return None
    return f"{number(swapped)} swapped out: zero-swap invariant broken. Drain, restart this worker"


def _preempted(reading: Reading) -> str | None:
    total = reading.get("preemptions_total")
    return f"preemptions begin: {number(total)} so far" if total else None


def _worth(reading: Reading) -> str | None:
    each = reading.get("tokens_per_preemption")
    if each is None:
        return None
    if each < THRASH_TOKENS_PER_PREEMPTION:
        return f"only {number(each)} tokens per preemption: thrash"
    kind = "full, but not thrashing" if each >= PLAIN_TOKENS_PER_PREEMPTION else "close to thrash"
    return f"{number(each)} tokens per preemption: {kind} (that is below {THRASH_TOKENS_PER_PREEMPTION})"


def _slow(reading: Reading) -> str | None:
    gap = reading.get("token_interval_seconds")
    if gap is None or gap <= TOKEN_INTERVAL_SECONDS:
        return None
    return f"{seconds(gap)} between tokens: clients time out and come again"


def _first_token(reading: Reading) -> str | None:
    first = reading.get("ttft_p99_seconds")
    return f"1 request in 100 waits over {seconds(first)} for its first token" if first is not None else None


def _relieved(reading: Reading) -> str | None:
    usage, waiting = reading.get("kv_usage_ratio"), reading.get("sequences", state="waiting")
    if usage is None or waiting is None or waiting > 0 or usage >= USAGE_IS_NOT_MEMORY:
        return None
    return f"KV usage {percent(usage)} and nothing waits: the pressure is off"


def _left(reading: Reading) -> str | None:
    left = reading.get("client_aborts_total")
    return f"{number(left)} clients had left before their answer was done; vLLM counts none" if left else None


LINES: tuple[Line, ...] = (
    Line("demand", _demand),
    Line("memory", _memory),
    Line("swap", _invariant),
    Line("preemptions", _preempted),
    Line("tokens per preemption", _worth),
    Line("token interval", _slow),
    Line("first token", _first_token, after="memory"),
    Line("relieved", _relieved, after="memory", is_good=True),
    # V0 leaves a preempted request and an abandoned one indistinguishable until the queue is empty
    Line("clients", _left, after="relieved"),
)


def new_events(before: tuple[Event, ...], elapsed: float, reading: Reading) -> tuple[Event, ...]:
    """The lines that ``reading`` crosses for the first time, given the events ``before``."""
    said = {event.key for event in before}
    found = []
    for line in LINES:
        if line.key in said or (line.after and line.after not in said):
            continue
        text = line.say(reading)
        if text is not None:
            found.append(Event(elapsed, line.key, text, line.is_good))
    return tuple(found)
