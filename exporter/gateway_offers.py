"""What a gateway can give: found as for engines, by running its phenomena over a busy minute made up from one read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from exporter.catalogue import GATEWAY_PHENOMENA
from exporter.derivation import run
from exporter.derive.gateway_keys import LONG_PROMPTS
from exporter.derive.phenomenon import EngineFacts
from exporter.gateway_sample import GatewaySample
from exporter.offers import STEP_SECONDS, is_told, moved
from exporter.signal import Signal
from exporter.window import Window

STEPS = 8
"""70 s from first to last: longer than any window of a gateway's."""

GATEWAY_SIGNALS: tuple[Signal, ...] = tuple(
    signal for phenomenon in GATEWAY_PHENOMENA for signal in phenomenon.signals
)
"""All signals that a gateway may give by itself; orphans need the engines behind it as well."""


def gateway_offers(sample: GatewaySample) -> frozenset[Signal]:
    """The signals that a gateway which tells what ``sample`` tells gives while it is busy."""
    window: Window[GatewaySample] = Window()
    memory: Mapping[str, Any] = {}
    given: set[Signal] = set()
    for busy in _busy_time(sample):
        window = window.appended(busy)
        memory, points = run(GATEWAY_PHENOMENA, window, EngineFacts(), memory, _broken)
        given.update(point.signal for group in points.values() for point in group)
    return frozenset(given)


def gateway_unknown(signal: Signal, sample: GatewaySample) -> str:
    """The first of the fields that ``signal`` is made of and that ``sample`` doesn't tell; empty where all are told."""
    if signal is LONG_PROMPTS and sample.keys:
        return "long_prompts"  # told of each key or of none
    return next((field for field in signal.inputs if not is_told(getattr(sample, field))), "")


def _broken(_phenomenon: str, error: Exception) -> None:
    raise error


def _busy_time(sample: GatewaySample) -> Iterator[GatewaySample]:
    """All totals rise; none of the answers came from an engine, so that some were turned away."""
    totals = [field.name for field in fields(sample) if field.name.endswith("_total")]
    for index in range(STEPS):
        changes = {name: moved(name, getattr(sample, name), index) for name in (*totals, "request_time")}
        yield replace(sample, at=sample.at + index * STEP_SECONDS, **changes)
