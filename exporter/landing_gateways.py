"""The gateways on the landing page: a row each, with what tells a retry storm from a busy hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.gateway import BREAKER_OPEN, INFLIGHT, INFO, PENDING, REQUESTS
from exporter.derive.orphans import ORPHANS
from exporter.gateway_sample import Outcome
from exporter.landing_values import shown
from exporter.signal import Scope, Signal
from exporter.snapshot import Value

_ABSENT = "—"
_COLUMNS: tuple[tuple[str, Signal], ...] = (
    ("in flight", INFLIGHT),
    ("pending", PENDING),
    ("attempts a success", AMPLIFICATION),
    ("orphans", ORPHANS),
)
_HINT = (
    "Attempts a success: 1 where everybody is served at once, over the trailing minute. Orphans: what engines work on"
    " though nobody waits. How requests ended is counted since the sidecar started."
)


@dataclass(slots=True)
class _Gateway:
    """What is known of one gateway: values by signal and labels, gauges with one value under none."""

    kind: str = ""
    values: dict[tuple[Signal, tuple[str, ...]], float] = field(default_factory=dict)


def gateway_table(values: Sequence[Value]) -> str:
    """The table, or nothing where no gateway is read."""
    gateways: dict[str, _Gateway] = {}
    for signal, labels, value, is_peak in values:
        if signal.scope is not Scope.GATEWAY or is_peak:
            continue
        gateway = gateways.setdefault(labels[0], _Gateway())
        if signal is INFO:
            gateway.kind = labels[1]
        gateway.values[signal, labels[1:]] = value
    if not gateways:
        return ""
    heads = "".join(f'<th class="n">{title}' for title, _ in _COLUMNS)
    rows = "".join(_row(name, gateway) for name, gateway in gateways.items())
    return (
        '<section class="card wide"><h2>Gateways</h2><table class="rows"><thead><tr><th>gateway<th>ended'
        f'{heads}</thead><tbody>{rows}</tbody></table><p class="hint">{_HINT}</p></section>'
    )


def _row(name: str, gateway: _Gateway) -> str:
    cells = "".join(f'<td class="n" data-is="{title}">{_cell(signal, gateway)}' for title, signal in _COLUMNS)
    open_breakers = [
        " ".join(labels)
        for (signal, labels), value in gateway.values.items()
        if signal is BREAKER_OPEN and value
    ]
    note = f" <b>breaker at its limit: {escape(', '.join(open_breakers))}</b>" if open_breakers else ""
    return (
        f'<tr><td class="name">{escape(name)} <small>{escape(gateway.kind)}</small>{note}'
        f'<td data-is="ended">{_ended(gateway)}{cells}'
    )


def _cell(signal: Signal, gateway: _Gateway) -> str:
    value = gateway.values.get((signal, ()))
    if value is None:
        return _ABSENT
    # "150.0 %" of attempts reads worse than 1.5
    return f"{value:.3g}" if signal is AMPLIFICATION else shown(signal, value)


def _ended(gateway: _Gateway) -> str:
    """How requests ended, those ways that none did left out but for the good one."""
    counts = {each: gateway.values.get((REQUESTS, (each.value,))) for each in Outcome}
    told = [
        f"{shown(REQUESTS, count)} {each.value}"
        for each, count in counts.items()
        if count is not None and (count or each is Outcome.OK)
    ]
    return escape(", ".join(told)) or _ABSENT
