"""What to do next: the page of the finding, the gateway's setting where load is the trouble, a longer look."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from alerts.causes import Cause
from alerts.runbooks import BASE, page_url, runbook_url
from alerts.thresholds import Thresholds
from alerts.triage.findings import Certainty
from alerts.triage.look import Envoy, Look
from alerts.triage.steps.backpressure import limit_of
from alerts.triage.suspected import SPARE_SECONDS
from alerts.triage.verdict import Verdict
from exporter.derive.blocks import KV_LEAK, KV_USAGE
from exporter.derive.preemption import PREEMPTION_RATE, THRASHING
from exporter.derive.prefill import HEAD_OF_LINE
from exporter.derive.stalls import FROZEN
from exporter.derive.traffic import SEQUENCES
from exporter.signal import Signal

ACTIONS, TRIAGE = "actions", "triage"
"""Pages that alerts share."""
_CLAMP = {
    Cause.OVERLOAD,
    Cause.SWAP_THRASH,
    Cause.RECOMPUTE_THRASH,
    Cause.OFFLOAD_THRASH,
    Cause.RETRY_STORM,
    Cause.ORPHANS,
    Cause.SLO_MISSED,
    Cause.TAIL_WASTE,
    Cause.PREFIX_COLLAPSE,
    Cause.LONG_PROMPTS,
    Cause.GATEWAY_BREAKER,
}
"""Causes that a breaker's limit eases: a lower one, or, where it is the trouble, one that fits."""
_UNLIMITED = 'curl -sX POST "$ENVOY/runtime_modify?engines_limit_enforced=0"'
_RATE_LIMIT = "lets all in at once, where Envoy's rate limit has this key; else raise its token_bucket"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A question that this look was too short for, and the seconds of one that isn't."""

    what: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Next:
    """``commands`` are for a shell, ``page`` is the runbook's, ``notes`` say what a command needs."""

    page: str
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def unknowns(look: Look, thresholds: Thresholds) -> tuple[Unknown, ...]:
    """Only what could be: whether it thrashes is no question of a calm pool in which nobody is preempted."""
    if look.own is None:
        return ()
    found: dict[str, Unknown] = {}
    for known in look.subjects().ranks:
        running, waiting = (known.value(SEQUENCES, state) or 0.0 for state in ("running", "waiting"))
        usage = known.value(KV_USAGE) or 0.0
        busy = usage >= thresholds.kv_usage_calm_ratio
        pressed = busy or bool(known.value(PREEMPTION_RATE))
        asked: tuple[tuple[Signal, bool, str], ...] = (
            (THRASHING, pressed, "whether it thrashes"),
            (FROZEN, bool(running), "whether it stands still"),
            (HEAD_OF_LINE, bool(waiting) and not busy, "whether a prefill blocks the queue"),
            (KV_LEAK, bool(usage) and not running and not waiting, "whether blocks leak"),
        )
        for signal, matters, what in asked:
            if matters and known.value(signal) is None:
                found[what] = Unknown(what, math.ceil(signal.window_seconds) + round(SPARE_SECONDS))
    return tuple(found.values())


def next_of(look: Look, verdict: Verdict, thresholds: Thresholds, runbooks: str = BASE) -> Next:
    """After a verdict. ``runbooks``: where their pages are."""
    finding = verdict.finding
    again = longer(look, verdict, thresholds)
    actions = page_url(ACTIONS, runbooks)
    if finding is None:
        return Next(page_url(TRIAGE, runbooks), (again,) if again else ())
    notes: list[str] = []
    commands = [again] if again else []
    cause = finding.alert.cause
    if cause is Cause.GATEWAY_TOO_TIGHT:
        commands += _unlimited(look)
        notes += (_RATE_LIMIT, f"{actions}#clamp-the-gateway")
    elif cause in _CLAMP:
        gateway, gateway_notes = _gateway(look, thresholds, actions)
        commands += gateway
        notes += gateway_notes
    return Next(runbook_url(finding.alert, runbooks), tuple(commands), tuple(notes))


def longer(look: Look, verdict: Verdict, thresholds: Thresholds) -> str:
    """The command of a look that is long enough for what this one can't know; empty where nothing is left."""
    waits = [each.seconds for each in unknowns(look, thresholds)]
    finding = verdict.finding
    if finding is not None:
        # of a finding that is sure nothing more need be known
        waits = [finding.settles_seconds] if finding.certainty is Certainty.POSSIBLE else []
    wait = max(waits, default=0)
    return (
        shlex.join(("thrashold", "triage", *(look.words or (look.url,)), "--wait", f"{wait}")) if wait else ""
    )


def _gateway(look: Look, thresholds: Thresholds, actions: str) -> tuple[list[str], Iterator[str]]:
    limit = limit_of(look, thresholds)
    if limit is None:
        return [], iter(())
    kinds = {gateway.kind for gateway in look.gateways}
    if kinds == {"litellm"}:
        return [], iter((f"LiteLLM has limits by key alone: {actions}#whose-prompts",))
    return _clamped(look, limit), _envoy_notes(look, limit, actions)


def _clamped(look: Look, limit: int) -> list[str]:
    """Facts of Envoy: the runtime key of a cluster's breaker, the admin port's ``runtime_modify``."""
    each = max(1, limit * _engines(look) // max(1, len(look.envoys)))
    commands = []
    for envoy in look.envoys or (Envoy("", ""),):
        # a name from a page goes into a shell: nothing of it may mean anything there
        key = f"circuit_breakers.{quote(envoy.cluster, safe='') or 'CLUSTER'}.default.max_requests"
        commands += [*_at(envoy), f"KEY={key}", f'curl -sX POST "$ENVOY/runtime_modify?$KEY={each}"']
    return commands


def _unlimited(look: Look) -> list[str]:
    return [line for envoy in look.envoys or (Envoy("", ""),) for line in (*_at(envoy), _UNLIMITED)]


def _at(envoy: Envoy) -> list[str]:
    """Where that is known."""
    return [f"ENVOY={shlex.quote(envoy.admin)}"] if envoy.admin else []


def _engines(look: Look) -> int:
    """Behind the gateway; 1 where nobody tells."""
    told = {gateway.backends for gateway in look.gateways if gateway.kind == "envoy" and gateway.backends}
    return int(told.pop()) if len(told) == 1 else 1


def _envoy_notes(look: Look, limit: int, actions: str) -> Iterator[str]:
    engines, envoys = _engines(look), len(look.envoys)
    over = f"the {envoys} Envoys that were read" if envoys > 1 else "your Envoys"
    times = f", times {engines} behind the gateway" if engines > 1 else ": times your engines"
    yield f"{limit} for this engine{times}, over {over}"
    missing = [
        words
        for words, known in (
            ("ENVOY is the URL of its admin port", all(envoy.admin for envoy in look.envoys)),
            ("CLUSTER its name of your engines", all(envoy.cluster for envoy in look.envoys)),
        )
        if not (look.envoys and known)
    ]
    if missing:
        yield f"{', '.join(missing)}; --gateway URL, of that port, fills it in"
    yield f"how, and the way back: {actions}#clamp-the-gateway"
