"""What a look of a second can only suspect: signals that settle it take longer, and no sidecar has watched so long."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.alert import Alert
from alerts.pack.cache import KV_LEAKING, KV_THRASHING
from alerts.pack.engine import ENGINE_DEADLOCKED, ENGINE_FROZEN
from alerts.pack.latency import DECODE_STALLED
from alerts.pack.swap import KV_OFFLOAD_THRASH
from alerts.thresholds import Thresholds
from alerts.triage.findings import Certainty, Evidence, Finding
from alerts.triage.known import Known, Origin, Told
from alerts.triage.look import Look
from exporter.derive.blocks import (
    IDLE_BLOCKS,
    KV_BLOCKS,
    KV_LEAK,
    KV_USAGE,
    LEAK_AFTER_SECONDS,
    tokens_per_sequence,
)
from exporter.derive.preemption import ENTER_GAIN_RATIO, PREEMPTION_RATE, PREEMPTIONS, RATE_SECONDS, THRASHING
from exporter.derive.prefill import BLOCKED_SECONDS
from exporter.derive.stalls import (
    DEADLOCKED,
    DEADLOCKED_AFTER_SECONDS,
    FROZEN,
    FROZEN_AFTER_SECONDS,
    TOKEN_AGE,
)
from exporter.derive.swap import SWAP_BYTES_RATE
from exporter.derive.traffic import GENERATION_TOKENS, PROMPT_TOKENS, SEQUENCES
from exporter.signal import Confidence, Signal

SPARE_SECONDS = 5.0
"""By which a look should be longer than what it is to settle."""
ENOUGH_PREEMPTED = 2.0
"""Of one sequence thrown out within a second nothing follows."""
_MOST_OF_IT = 0.9


def suspected(look: Look, known: Known, thresholds: Thresholds) -> Iterator[Finding]:
    """Of one rank."""
    running, waiting = (known.value(SEQUENCES, state) for state in ("running", "waiting"))
    if look.own is None or running is None:
        return
    yield from _standing(look, known, running)
    tokens, prompts = known.rise(GENERATION_TOKENS), known.rise(PROMPT_TOKENS)
    computes = any(rise is not None and rise.increase > 0 for rise in (tokens, prompts))
    if known.value(DEADLOCKED) is None and not running and waiting and not computes:
        evidence = (
            _number(known, SEQUENCES, "running", operator="==", bound=0.0),
            _number(known, SEQUENCES, "waiting", operator=">", bound=0.0),
        )
        yield _possible(ENGINE_DEADLOCKED, evidence, DEADLOCKED_AFTER_SECONDS)
    used = known.value(KV_BLOCKS, "used")
    if known.value(KV_LEAK) is None and not running and not waiting and used and used > IDLE_BLOCKS:
        evidence = (
            _number(known, KV_BLOCKS, "used", operator=">", bound=IDLE_BLOCKS),
            _number(known, SEQUENCES, "running", operator="==", bound=0.0),
        )
        yield _possible(KV_LEAKING, evidence, LEAK_AFTER_SECONDS)
    if known.value(THRASHING) is None:
        yield from _thrashing(look, known, thresholds)


def _standing(look: Look, known: Known, running: float) -> Iterator[Finding]:
    """No token all through the look: a hung engine, or a long prefill, which takes prompts in at its end."""
    age = known.value(TOKEN_AGE)
    if known.value(FROZEN) is not None or not running or not age or age < _MOST_OF_IT * look.seconds:
        return
    evidence = (
        _number(known, TOKEN_AGE, operator="while sequences run"),
        _number(known, SEQUENCES, "running", operator=">", bound=0.0),
    )
    took = known.rise(PROMPT_TOKENS)
    if took is not None and took.increase > 0:
        yield _possible(DECODE_STALLED, evidence, BLOCKED_SECONDS)
    else:
        says = "a prefill of long prompts that aren't computed in chunks looks the same"
        yield _possible(ENGINE_FROZEN, evidence, FROZEN_AFTER_SECONDS, says)


def _thrashing(look: Look, known: Known, thresholds: Thresholds) -> Iterator[Finding]:
    """So few tokens for each preemption, in a full pool, that it would be thrashing if it went on."""
    usage, sample = known.value(KV_USAGE), look.sample_of(known)
    preempted, generated = known.rise(PREEMPTIONS), known.rise(GENERATION_TOKENS)
    held = None if sample is None else tokens_per_sequence(sample)
    if usage is None or usage < thresholds.kv_usage_full_ratio or not held:
        return
    if preempted is None or generated is None or preempted.increase < ENOUGH_PREEMPTED:
        return
    gain = generated.increase / preempted.increase / held
    if gain >= ENTER_GAIN_RATIO:
        return
    told = Told(gain, Confidence.ESTIMATE, Origin.LOOK, preempted.seconds, short=True)
    evidence = (
        Evidence("tokens a preemption over those it freed", told, "<", ENTER_GAIN_RATIO),
        _number(known, PREEMPTION_RATE, operator=">", bound=0.0),
    )
    loads = known.value(SWAP_BYTES_RATE, "in")
    yield _possible(KV_OFFLOAD_THRASH if loads else KV_THRASHING, evidence, RATE_SECONDS)


def _possible(alert: Alert, evidence: tuple[Evidence, ...], seconds: float, says: str = "") -> Finding:
    return Finding(alert, Certainty.POSSIBLE, evidence, says, round(seconds + SPARE_SECONDS))


def _number(
    known: Known, signal: Signal, *where: str, operator: str = "", bound: float | None = None
) -> Evidence:
    told = known.told_of(signal, *where)
    name = signal.name + (f'{{{signal.labels[0]}="{where[0]}"}}' if where else "")
    return Evidence(name, told or Told(0.0, Confidence.MEASURED, Origin.LOOK, 0.0), operator, bound)
