"""The landing page: what the sidecar sees right now, for a person with a browser and no dashboard.

One self-contained page: no assets from elsewhere, readable on a phone, everything escaped. On top a
strip answers whether an engine is in trouble (``landing_strip``); below stands every signal there is.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import escape

from exporter.derive.inventory import GPU_INFO
from exporter.landing_assets import SCRIPT, STYLE
from exporter.landing_gateways import gateway_table
from exporter.landing_gpus import gpu_table, gpus_of
from exporter.landing_strip import ages_of_old, answers, how_old, present, strip, verdict
from exporter.landing_values import age, raised, said, seconds, shown
from exporter.observation import SourceStatus
from exporter.publication import Publication
from exporter.recorder_signals import RECORDER_UP
from exporter.signal import PEAK_SECONDS, Scope, Signal
from exporter.snapshot import Value
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
    Scope.GATEWAY: "Gateways",
    Scope.GPU: "GPUs",
    Scope.SOURCE: "Sources",
    Scope.SIDECAR: "The sidecar itself",
}
_OF_ENGINES = (Scope.RANK, Scope.ENGINE)
"""Scopes whose first label is the engine."""


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
    old = ages_of_old(publication)
    records = any(value.signal is RECORDER_UP for value in snapshot.values)
    recording = ' <a href="/api/v1/recorder">last hour, recorded</a>' if records else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><title>thrashold</title>'
        '<noscript><meta http-equiv="refresh" content="5"></noscript>'
        f"<style>{STYLE}</style></head><body>"
        "<header><h1>thrashold</h1><p>KV cache signals of LLM engines, once a second</p>"
        '<nav><a href="/metrics">metrics</a> <a href="/-/ready">ready</a> <a href="/-/healthy">healthy</a>'
        f"{recording}</nav>"
        '</header><p id="lost" class="bad" hidden>The sidecar does not answer; this page stands still.</p>'
        f'<main><p class="state">{verdict(publication)} <time>{at}</time></p>'
        f"{_warnings(snapshot.warnings)}"
        f"{strip(publication, old)}{gateway_table(snapshot.values)}{gpu_table(snapshot.values, snapshot.at)}"
        f"{_sources(publication)}{_signals(snapshot.values, old)}</main>"
        f"<script>{SCRIPT}</script></body></html>"
    )


def _warnings(lines: Sequence[str]) -> str:
    return "".join(f'<p class="state"><b class="bad">{escape(line)}</b></p>' for line in lines)


def _sources(publication: Publication) -> str:
    if not publication.statuses:
        return '<p class="hint">No source has been looked at yet.</p>'
    now = present(publication)
    rows = "".join(_source_row(each, now) for each in publication.statuses)
    return (
        '<section class="card wide"><h2>Sources</h2><table class="rows"><thead><tr><th>source<th>state'
        f'<th class="n">age<th class="n">read<th class="n">errors</thead><tbody>{rows}</tbody></table></section>'
    )


def _source_row(status: SourceStatus, now: float) -> str:
    state = '<b class="ok">up</b>' if answers(status, now) else '<b class="bad">down</b>'
    last = "never" if status.last_at is None else age(max(0.0, now - status.last_at))
    read = "" if status.read_seconds is None else seconds(status.read_seconds)
    reasons = ", ".join(f"{count} x {reason}" for reason, count in status.errors)
    # On a phone the heads are gone and each cell says itself what it is.
    row = (
        f'<tr><td class="name">{escape(status.name)} <small>{escape(status.kind)}</small><td>{state}'
        f'<td class="n" data-is="age">{last}<td class="n" data-is="read">{read}'
        f'<td class="n" data-is="errors" title="{escape(reasons)}">{sum(count for _, count in status.errors)}'
    )
    if status.last_error:
        row += f'<tr class="error"><td colspan="5">{escape(status.last_error)}'
    return row


@dataclass(slots=True)
class _Rows:
    """The values of one signal, each with its peak beside it."""

    now: dict[tuple[str, ...], float] = field(default_factory=dict)
    peak: dict[tuple[str, ...], float] = field(default_factory=dict)

    @property
    def engines(self) -> set[str]:
        """The engines spoken of, where the signal is one of engines."""
        return {labels[0] for labels in (*self.now, *self.peak)}


@dataclass(frozen=True, slots=True)
class _Notes:
    """What is said of engines and GPUs wherever they stand: how old numbers are, and what people call a UUID."""

    old: Mapping[str, float]
    gpus: Mapping[str, str]


def _signals(values: Sequence[Value], old: Mapping[str, float]) -> str:
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
    notes = _Notes(old, {gpu.uuid: gpu.title for gpu in gpus_of(values)})
    parts = []
    for scope, title in _SECTIONS.items():
        cards = "".join(
            _card(signal, rows, constant, notes) for signal, rows in found.items() if signal.scope is scope
        )
        if cards:
            said_once = " · ".join(f"{name} {constant[name]}" for name in scope.labels if name in constant)
            parts.append(
                f'<h2>{title} <small>{escape(said_once)}</small></h2><div class="cards">{cards}</div>'
            )
    return "".join(parts) or '<p class="hint">No signals yet.</p>'


def _card(signal: Signal, rows: _Rows, constant: Mapping[str, str], notes: _Notes) -> str:
    sure, old = signal.confidence, notes.old
    columns = [place for place, name in enumerate(signal.label_names) if name not in constant]
    kinds, note = ["card"], ""
    if any(raised(signal, value) for value in rows.now.values()):
        kinds.append("alarm")
    engines = rows.engines if signal.scope in _OF_ENGINES else set()
    if engines and engines <= old.keys():
        kinds.append("old")
    if len(engines) == 1 and engines <= old.keys():
        (engine,) = engines
        # The card says it for all of its rows.
        note = f' <span class="age">{how_old(old[engine])}</span>'
        notes = replace(notes, old={})
    alone, table = ("", _table(signal, rows, columns, notes)) if columns else (_alone(signal, rows), "")
    return (
        f'<section class="{" ".join(kinds)}"><header><h3>{escape(signal.full_name).replace("_", "_<wbr>")} '
        f'<span class="tag {sure.value}" title="{escape(sure.meaning)}">{sure.value.replace("_", " ")}</span>{note}'
        f"</h3>{alone}</header><p>{escape(signal.help)}</p>{table}</section>"
    )


def _alone(signal: Signal, rows: _Rows) -> str:
    """Write the only value a signal has: it needs no table."""
    parts = [
        f'<b{_bad(signal, value)} title="{value!r}">{said(signal, labels, value)}</b>'
        for labels, value in rows.now.items()
    ]
    parts += [
        f'<small title="{value!r}">{_PEAK} {shown(signal, value)}</small>' for value in rows.peak.values()
    ]
    return f'<p class="alone">{" ".join(parts)}</p>'


def _table(signal: Signal, rows: _Rows, columns: Sequence[int], notes: _Notes) -> str:
    # An info metric says all in its labels; its value is always 1.
    valued = not signal.name.endswith("_info")
    head = "".join(f"<th>{escape(signal.label_names[place])}" for place in columns)
    head += '<th class="n">value' if valued else ""
    head += f'<th class="n">{_PEAK}' if rows.peak else ""
    # the one place where a UUID is to be found
    called = {} if signal is GPU_INFO else notes.gpus
    body = []
    for labels in dict.fromkeys((*rows.now, *rows.peak)):
        age_of_row = notes.old.get(labels[0]) if signal.scope in _OF_ENGINES else None
        cells = [_label_cell(labels[place], called) for place in columns]
        if age_of_row is not None:
            cells[0] += f' <span class="age">{how_old(age_of_row)}</span>'
        if valued:
            cells.append(_cell(signal, labels, rows.now.get(labels)))
        if rows.peak:
            cells.append(_cell(signal, labels, rows.peak.get(labels)))
        body.append(f"<tr{'' if age_of_row is None else ' class=old'}>{''.join(cells)}")
    return f"<table><thead><tr>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def _label_cell(label: str, called: Mapping[str, str]) -> str:
    if label in called:
        return f'<td title="{escape(label)}">{escape(called[label])}'
    return f'<td class="long">{escape(label)}' if len(label) > _LONG_LABEL else f"<td>{escape(label)}"


def _cell(signal: Signal, labels: tuple[str, ...], value: float | None) -> str:
    if value is None:
        return '<td class="n">'
    return f'<td class="n" title="{value!r}"><span{_bad(signal, value)}>{said(signal, labels, value)}</span>'


def _bad(signal: Signal, value: float) -> str:
    return ' class="bad"' if raised(signal, value) else ""
