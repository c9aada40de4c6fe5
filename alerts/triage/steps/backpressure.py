"""2. Does more come in than goes out? The queue, who turns away, and what to set the gateway to."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.thresholds import Thresholds
from alerts.triage.capacity import fitting
from alerts.triage.known import Known
from alerts.triage.look import Look
from alerts.triage.numbers import count, seconds, short
from alerts.triage.steps.step import Step
from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.gateway import BREAKER_OPEN, INFLIGHT, PENDING, REQUESTS
from exporter.derive.latency import QUEUE_P99, TTFT_P99
from exporter.derive.orphans import ORPHANS
from exporter.derive.traffic import REJECTIONS, SEQUENCES
from exporter.gateway_sample import Outcome

NAME = "backpressure"
_TURNED_AWAY = (Outcome.REJECTED.value, Outcome.OVERFLOW.value)
_IN_VAIN = (*_TURNED_AWAY, Outcome.CLIENT_LEFT.value, Outcome.TIMEOUT.value, Outcome.SERVER_ERROR.value)
_WORDS = {
    Outcome.REJECTED.value: "turned away (429)",
    Outcome.OVERFLOW.value: "turned away (503)",
    Outcome.CLIENT_LEFT.value: "clients left",
    Outcome.TIMEOUT.value: "timed out",
    Outcome.SERVER_ERROR.value: "failed",
}


def backpressure(look: Look, thresholds: Thresholds) -> Step:
    """Of all ranks, and of each gateway that is told of."""
    subjects = look.subjects()
    if not subjects.ranks:
        return Step(NAME, "unknown: nobody tells")
    waiting = _sum(subjects.ranks, "waiting")
    values: dict[str, float | str] = {} if waiting is None else {"waiting": waiting}
    limit = limit_of(look, thresholds)
    if limit is not None:
        values["fitting_requests"] = float(limit)
    lines = [*_queue(subjects.ranks[0])]
    for known in subjects.gateways:
        lines += _gateway(known)
        amplified = known.value(AMPLIFICATION)
        if amplified is not None:
            values["retry_amplification_ratio"] = amplified
    if not subjects.gateways:
        lines.append("no gateway is read: --gateway URL shows whom it turns away")
    if limit is not None:
        lines.append(f"fits at a time: {count(limit)} requests (estimate)")
    alarming = waiting is not None and waiting > thresholds.waiting_sequences
    if waiting is None:
        answer = "unknown: its page tells no queue"
    elif alarming:
        answer = f"QUEUE: {count(waiting)} wait"
    else:
        answer = f"none: {count(waiting)} wait" if waiting else "none: nobody waits"
    return Step(NAME, answer, alarming, tuple(lines), values)


def limit_of(look: Look, thresholds: Thresholds) -> int | None:
    """Requests in flight that the engine carries, its ranks added up; None where one of them isn't known."""
    each = [fitting(look.sample_of(known), known, thresholds) for known in look.subjects().ranks]
    known = [limit for limit in each if limit is not None]
    return sum(known) if known and len(known) == len(each) else None


def _sum(ranks: tuple[Known, ...], state: str) -> float | None:
    told = [number for known in ranks if (number := known.value(SEQUENCES, state)) is not None]
    return sum(told) if told else None


def _queue(known: Known) -> Iterator[str]:
    queued, first = known.value(QUEUE_P99), known.value(TTFT_P99)
    told = [f"{seconds(queued)} in the queue"] if queued is not None else []
    told += [f"{seconds(first)} to the first token"] if first is not None else []
    if told:
        yield f"99 % of the last minute within: {', '.join(told)}"
    refused = known.total(REJECTIONS)
    if refused:
        yield f"the engine's own limits turned away {count(refused)}"


def _gateway(known: Known) -> Iterator[str]:
    inflight, pending = known.value(INFLIGHT), known.value(PENDING)
    told = [f"{count(inflight)} in flight"] if inflight is not None else []
    told += [f"{count(pending)} wait in it"] if pending else []
    if (known.value(BREAKER_OPEN) or 0.0) >= 1:
        told.append("BREAKER OPEN")
    yield f"gateway {known.gateway}: {', '.join(told) or 'read'}"
    rises = {outcome.value: known.rise(REQUESTS, outcome.value) for outcome in Outcome}
    ended = {name: rise.increase for name, rise in rises.items() if rise is not None}
    whole = known.rise(REQUESTS)
    if whole is not None and ended:
        vain = ", ".join(f"{count(ended[name])} {_WORDS[name]}" for name in _IN_VAIN if ended.get(name))
        over = f"{count(sum(ended.values()))} ended in {seconds(whole.seconds)}"
        yield f"  {over}: {vain}" if vain else f"  {over}, none in vain"
    amplified, orphans = known.value(AMPLIFICATION), known.value(ORPHANS)
    more = [f"{short(amplified)} attempts for each answer"] if amplified is not None else []
    more += [f"{count(orphans)} sequences whose client is gone (estimate)"] if orphans else []
    if more:
        yield f"  {', '.join(more)}"
