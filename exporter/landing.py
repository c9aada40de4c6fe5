"""The landing page: what the sidecar sees right now, for a person with a browser and no dashboard.

One self-contained page: no assets from elsewhere, readable on a phone, everything escaped.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape

from exporter.cycle import Value
from exporter.landing_assets import SCRIPT, STYLE
from exporter.observation import SourceStatus
from exporter.publication import Publication
from exporter.signal import PEAK_SECONDS, Kind, Scope, Signal
from exporter.source_signals import SIGNAL_INFO

_SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_SCRIPT_HASH}'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_PEAK = f"peak {PEAK_SECONDS:g} s"
_LONG_LABEL = 16
"""Characters; what is longer may be broken over lines on a narrow screen."""
_SECTIONS = {
    Scope.RANK: "Engines, by rank",
    Scope.ENGINE: "Engines as a whole",
    Scope.SOURCE: "Sources",
    Scope.SIDECAR: "The sidecar itself",
}


def landing_page(publication: Publication) -> bytes:
    """Give the page as UTF-8 HTML, made once for each publication."""
    if publication.page is None:
        publication.page = _page(publication).encode()
    return publication.page


def _page(publication: Publication) -> str:
    snapshot = publication.snapshot
    at = (
        datetime.fromtimestamp(snapshot.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if snapshot.at else "never"
    )
    state = '<b class="ok">ready</b>' if snapshot.ready else '<b class="bad">no source is fresh</b>'
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><title>thrashold</title>'
        '<noscript><meta http-equiv="refresh" content="5"></noscript>'
        f"<style>{STYLE}</style></head><body>"
        "<header><h1>thrashold</h1><p>KV cache signals of LLM engines, once a second</p>"
        '<nav><a href="/metrics">metrics</a> <a href="/-/ready">ready</a> <a href="/-/healthy">healthy</a></nav>'
        '</header><p id="lost" class="bad" hidden>The sidecar does not answer; this page stands still.</p>'
        f'<main><p class="state">{state} <time>{at}</time></p>{_sources(publication)}'
        f"{_signals(snapshot.values)}</main><script>{SCRIPT}</script></body></html>"
    )


def _sources(publication: Publication) -> str:
    if not publication.statuses:
        return '<p class="hint">No source has been looked at yet.</p>'
    rows = "".join(_source_row(each, publication.snapshot.at) for each in publication.statuses)
    return (
        '<section class="card wide"><h2>Sources</h2><table class="sources"><thead><tr><th>source<th>state'
        f'<th class="n">age<th class="n">read<th class="n">errors</thead><tbody>{rows}</tbody></table></section>'
    )


def _source_row(status: SourceStatus, now: float) -> str:
    state = '<b class="ok">up</b>' if status.answering else '<b class="bad">down</b>'
    age = "never" if status.last_at is None else _age(max(0.0, now - status.last_at))
    read = "" if status.read_seconds is None else _seconds(status.read_seconds)
    reasons = ", ".join(f"{count} x {reason}" for reason, count in status.errors)
    row = (
        f'<tr><td class="name">{escape(status.name)} <small>{escape(status.kind)}</small><td>{state}'
        f'<td class="n">{age}<td class="n">{read}'
        f'<td class="n" title="{escape(reasons)}">{sum(count for _, count in status.errors)}'
    )
    if status.last_error:
        row += f'<tr class="error"><td colspan="5">{escape(status.last_error)}'
    return row


@dataclass(slots=True)
class _Rows:
    """The values of one signal, each with its peak beside it."""

    now: dict[tuple[str, ...], float] = field(default_factory=dict)
    peak: dict[tuple[str, ...], float] = field(default_factory=dict)


def _signals(values: Iterable[Value]) -> str:
    found: dict[Signal, _Rows] = {}
    seen: dict[str, set[str]] = {}
    for signal, labels, value, is_peak in values:
        # What it tells of each signal stands beside the signal already.
        if signal is not SIGNAL_INFO:
            rows = found.setdefault(signal, _Rows())
            (rows.peak if is_peak else rows.now)[labels] = value
            for name, label in zip(signal.scope.labels, labels, strict=False):
                seen.setdefault(name, set()).add(label)
    # One engine, rank or model on the whole page is said once, not in every row.
    constant = {name: next(iter(labels)) for name, labels in seen.items() if len(labels) == 1}
    parts = []
    for scope, title in _SECTIONS.items():
        cards = "".join(
            _card(signal, rows, constant) for signal, rows in found.items() if signal.scope is scope
        )
        if cards:
            said = " · ".join(f"{name} {constant[name]}" for name in scope.labels if name in constant)
            parts.append(f'<h2>{title} <small>{escape(said)}</small></h2><div class="cards">{cards}</div>')
    return "".join(parts) or '<p class="hint">No signals yet.</p>'


def _card(signal: Signal, rows: _Rows, constant: Mapping[str, str]) -> str:
    sure = signal.confidence
    columns = [place for place, name in enumerate(signal.label_names) if name not in constant]
    alone, table = ("", _table(signal, rows, columns)) if columns else (_alone(signal, rows), "")
    return (
        f'<section class="card"><header><h3>{escape(signal.full_name).replace("_", "_<wbr>")} '
        f'<span class="tag {sure.value}" title="{escape(sure.meaning)}">{sure.value.replace("_", " ")}</span></h3>'
        f"{alone}</header>"
        f"<p>{escape(signal.help)}</p>{table}</section>"
    )


def _alone(signal: Signal, rows: _Rows) -> str:
    """Write the only value a signal has: it needs no table."""
    parts = [f'<b title="{value!r}">{_shown(signal, value)}</b>' for value in rows.now.values()]
    parts += [
        f'<small title="{value!r}">{_PEAK} {_shown(signal, value)}</small>' for value in rows.peak.values()
    ]
    return f'<p class="alone">{" ".join(parts)}</p>'


def _table(signal: Signal, rows: _Rows, columns: Sequence[int]) -> str:
    # An info metric says all in its labels; its value is always 1.
    valued = not signal.name.endswith("_info")
    head = "".join(f"<th>{escape(signal.label_names[place])}" for place in columns)
    head += '<th class="n">value' if valued else ""
    head += f'<th class="n">{_PEAK}' if rows.peak else ""
    body = []
    for labels in dict.fromkeys((*rows.now, *rows.peak)):
        cells = "".join(_label_cell(labels[place]) for place in columns)
        cells += _cell(signal, rows.now.get(labels)) if valued else ""
        cells += _cell(signal, rows.peak.get(labels)) if rows.peak else ""
        body.append(f"<tr>{cells}")
    return f"<table><thead><tr>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def _label_cell(label: str) -> str:
    return f'<td class="long">{escape(label)}' if len(label) > _LONG_LABEL else f"<td>{escape(label)}"


def _cell(signal: Signal, value: float | None) -> str:
    if value is None:
        return '<td class="n">'
    return f'<td class="n" title="{value!r}">{_shown(signal, value)}'


def _shown(signal: Signal, value: float) -> str:
    """Write ``value`` in the unit that the signal's name tells, short enough to read at a glance."""
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "-∞"}.get(value, "NaN")
    name = signal.name.removesuffix("_total") if signal.kind is Kind.COUNTER else signal.name
    if name.endswith("_ratio"):
        return f"{value * 100:.1f} %"
    if name.endswith("_per_second"):
        return _shown_bytes(value) + "/s" if "bytes" in name else _plain(value) + "/s"
    if name.endswith("_bytes") or "bytes_per_" in name:
        return _shown_bytes(value)
    return _seconds(value) if name.endswith("_seconds") else _plain(value)


def _shown_bytes(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":  # noqa: PLR2004 - a binary step
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("the loop ends at TiB")


def _seconds(value: float) -> str:
    # Three digits make 1000 ms of what is nearer to a second.
    return f"{value * 1000:.3g} ms" if 0 < abs(value) < 0.9995 else _age(value)  # noqa: PLR2004


def _age(value: float) -> str:
    if abs(value) < 120:  # noqa: PLR2004 - two minutes and less read best in seconds
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def _plain(value: float) -> str:
    whole = value == int(value) or abs(value) >= 10_000  # noqa: PLR2004 - four digits tell enough
    text = f"{value:,.0f}" if whole else f"{value:,.4g}"
    return text.replace(",", "\N{THIN SPACE}")
