"""How fast the reader of the text format is, beside prometheus_client's, in CPU time.

Both read the two largest busy scrapes of vLLM in the repository, a second apart, in turn.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from statistics import median

from prometheus_client.parser import text_string_to_metric_families

from exporter.exposition import Reader, Series
from tests.bench import report
from tests.support.captures import fixture

BAR = 40
_ROUNDS = 15
_READS_A_ROUND = 40
_LARGE = 10_000_000

_UNWANTED = ("kv_block_", "request_params_", "estimated_", "mm_cache_", "corrupted")


def wanted(series: Series) -> str | None:
    """About what a dialect for vLLM asks for."""
    name = series.name
    if name in {"http_requests_total", "process_start_time_seconds"}:
        return name
    if not name.startswith("vllm:") or name.endswith("_created"):
        return None
    return None if name.removeprefix("vllm:").startswith(_UNWANTED) else name


def _cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _warm(bodies: Sequence[bytes]) -> Callable[[], float]:
    """Times one round of a reader that reads ``bodies`` in turn; CPU seconds a read."""
    reader = Reader(wanted)
    turns = list(bodies) * (_READS_A_ROUND // len(bodies))

    def read() -> None:
        for body in turns:
            reader.read(body)

    read()
    return lambda: _cpu_seconds(read) / len(turns)


def _every_value_new(body: bytes) -> bytes:
    """The same text with another value in every sample; longer ones, too, which costs the reader most."""
    return re.sub(rb"(?m)^(?!#)(.*) (\S+)$", lambda m: b"%s %r" % (m[1], float(m[2]) + 1 / 3), body)


def _grown(body: bytes) -> bytes:
    """The text of many engines behind one address."""
    copies = _LARGE // len(body) + 1
    return b"".join(body.replace(b'engine="0"', b'engine="%d"' % rank) for rank in range(copies))


def _consume(text: str) -> None:
    for family in text_string_to_metric_families(text):
        for _ in family.samples:
            pass


def main() -> None:
    """Prints the figures."""
    earlier, later = fixture("vllm-0.32.0/112.prom"), fixture("vllm-0.32.0/113.prom")
    one_more = later + b'vllm:lora_requests_info{max_lora="4",running_lora_adapters="a"} 1.8e+09\n'
    text = later.decode()
    rounds: dict[str, Callable[[], float]] = {
        "ours": _warm([earlier, later]),
        "new": _warm([later, _every_value_new(later)]),
        "line": _warm([later, one_more]),
        "same": _warm([later]),
        "cold": lambda: _cpu_seconds(lambda: Reader(wanted).read(later)),
        "theirs": lambda: _cpu_seconds(lambda: _consume(text)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in rounds}
    for _ in range(_ROUNDS):  # interleaved, so that a busy machine slows all alike
        for name, work in rounds.items():
            seconds[name].append(work())
    typical = {name: median(times) for name, times in seconds.items()}

    ours, theirs = typical["ours"], typical["theirs"]
    ratio = theirs / ours
    report.line(f"  {len(later):,} B: ours {ours * 1e3:.3f} ms, prometheus_client {theirs * 1e3:.2f} ms")
    report.record(
        report.Figure("speed of reading over prometheus_client's", ratio, "x", BAR, better="higher")
    )
    before, after = earlier.split(b"\n"), later.split(b"\n")
    differ = sum(a != b for a, b in zip(before, after, strict=True))
    for name, what in (
        ("ours", f"successive scrapes, {differ} of {len(after) - 1} lines differ"),
        ("same", "the same scrape again"),
        ("new", "every value differs"),
        ("line", "a line more or less each time"),
        ("cold", "a reader's first read"),
    ):
        mine = typical[name]
        report.line(f"  {what}: {mine * 1e3:.3f} ms, ratio {theirs / mine:.1f}x")

    large = _grown(later)
    reader = Reader(wanted)
    first, second = (len(large) / 1e6 / _cpu_seconds(lambda: reader.read(large)) for _ in range(2))
    report.line(f"  {len(large) / 1e6:.1f} MB body: {first:.0f} MB/s at first, {second:.0f} MB/s again")


if __name__ == "__main__":
    report.standalone(main)
