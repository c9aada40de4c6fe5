"""``thrashold exporter --check``: reads each source once and says, for a person, what it gives and what is missing."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from exporter.cycle import CycleSettings, initial, step
from exporter.derive.blocks import KV_BYTES_PER_TOKEN
from exporter.derive.pcie import PCIE_BYTES, PCIE_RATE, PCIE_SATURATION
from exporter.derive.phenomenon import EngineFacts
from exporter.derive.ranks import IMBALANCE
from exporter.dialects.gateways import of_gateway_kind
from exporter.dialects.registry import of_kind
from exporter.ending import run_loop
from exporter.facts import bytes_keys, with_all_told
from exporter.gateway_offers import GATEWAY_SIGNALS, gateway_offers, gateway_unknown
from exporter.gateway_sample import GatewaySample
from exporter.live import read_all_once
from exporter.observation import Observation
from exporter.oddities import in_words
from exporter.offers import SIGNALS, needed, offers
from exporter.pcie_hint import hint, without_pcie_bytes
from exporter.sample import EngineSample
from exporter.signal import Signal
from exporter.sources.quiet import logging_from
from exporter.sources.source import Source

WIDTH = 118
BY_SETTINGS = "in a --config FILE (docs/settings.md)"
OF_NO_USE = "told by settings alone, and nothing else is made of it here"
NOT_THERE = "its page has no"
PCIE_OF_BYTES = (PCIE_BYTES, PCIE_RATE, PCIE_SATURATION)
EVENTS = "made of events that this engine doesn't have"


@dataclass(frozen=True, slots=True)
class Lack:
    """Signals that are missing for one reason."""

    why: str
    signals: tuple[Signal, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One source: what it is, whether it answers, how much it gives, and what it doesn't."""

    source: str
    kind: str
    answer: str
    gives: str
    oddities: tuple[str, ...] = ()
    lacks: tuple[Lack, ...] = ()


def checked(made: Callable[[], Sequence[Source]], facts: Mapping[str, EngineFacts]) -> tuple[str, int]:
    """Make all sources and read each once; the table, and the exit code: 0 where all answered, else 1."""
    # what a source would log of its read stands in the table
    with logging_from(logging.ERROR):
        sources = made()
        run_loop(read_all_once(sources))
    observations = [source.observe() for source in sources]
    lines = [line_of(each, facts) for each in observations]
    return "\n".join(table(lines)) + "\n", int(not all(each.status.answering for each in observations))


def line_of(observation: Observation, facts: Mapping[str, EngineFacts]) -> Line:
    """What there is to say of one source."""
    status, sample = observation.status, observation.engine
    if not status.answering:
        return Line(status.name, status.kind, status.last_error or "did not answer", "")
    if status.last_error and status.last_at is None:
        return Line(status.name, status.kind, status.last_error, "")
    seconds = "answered" if status.read_seconds is None else f"answered in {status.read_seconds:.2f} s"
    if observation.gateway is not None:
        return _gateway_line(status.name, seconds, observation.gateway)
    if sample is None:
        untold = without_pcie_bytes(observation.gpus) if status.kind == "nvml" else ()
        lack = (Lack(hint(untold), PCIE_OF_BYTES),) if untold else ()
        return Line(status.name, status.kind, seconds, _given_now(observation), lacks=lack)
    known = facts.get(sample.engine) or EngineFacts()
    given = offers(sample, known)
    kind = f"{of_kind(sample.kind).title} {sample.generation}".rstrip()
    gives = f"{len(given)} of {len(SIGNALS)} signals"
    return Line(status.name, kind, seconds, gives, sample.notes, lacks(sample, known, given))


def lacks(
    sample: EngineSample, facts: EngineFacts, given: frozenset[Signal] | None = None
) -> tuple[Lack, ...]:
    """The signals that an engine doesn't give, by why: the engine's words for what it doesn't tell, or settings."""
    given = offers(sample, facts) if given is None else given
    all_told = with_all_told(facts)
    by_settings = offers(sample, all_told) - given
    keys = bytes_keys(sample)
    settable = f"set {', '.join(keys[:-1])} or {keys[-1]} {BY_SETTINGS}"
    reasons = dict(of_kind(sample.kind).absences)
    found: dict[str, list[Signal]] = {}
    for signal in SIGNALS:
        if signal in given:
            continue
        if signal in by_settings:
            why = OF_NO_USE if by_settings == {KV_BYTES_PER_TOKEN} else settable
        elif signal is IMBALANCE and len({rank.rank for rank in sample.ranks}) < 2:  # noqa: PLR2004 -- one is always even
            why = "there is one rank"
        else:
            why = _why(needed(signal, sample, all_told), reasons)
        found.setdefault(why, []).append(signal)
    return tuple(Lack(why, tuple(signals)) for why, signals in found.items())


def _why(unknown: Sequence[str], reasons: Mapping[str, str]) -> str:
    """The engine's reason for the first of the fields that are missing: without that one the others are of no use."""
    return reasons.get(unknown[0], _not_there(unknown[0])) if unknown else EVENTS


def _not_there(field: str) -> str:
    return f"{NOT_THERE} {field.removesuffix('_total').replace('_', ' ')}"


def _gateway_line(name: str, answer: str, sample: GatewaySample) -> Line:
    """A gateway: what it gives while it is busy, and why not the rest."""
    dialect = of_gateway_kind(sample.kind)
    reasons, given = dict(dialect.absences), gateway_offers(sample)
    found: dict[str, list[Signal]] = {}
    for signal in GATEWAY_SIGNALS:
        if signal not in given:
            field = gateway_unknown(signal, sample)
            found.setdefault(reasons.get(field, _not_there(field)), []).append(signal)
    lacking = tuple(Lack(why, tuple(signals)) for why, signals in found.items())
    gives = f"{len(given)} of {len(GATEWAY_SIGNALS)} signals"
    return Line(name, f"{dialect.title} gateway", answer, gives, sample.notes, lacking)


def _given_now(observation: Observation) -> str:
    """Of a source that is no engine: what one cycle makes of it, or what a probe makes exact of an engine's signals."""
    if observation.probes:
        ranks = len(observation.probes)
        told = ", ".join(dict.fromkeys(part for probe in observation.probes for part in probe.told))
        return f"{ranks} {'rank' if ranks == 1 else 'ranks'}, exact: {told or 'nothing'}"
    moment = observation.status.last_at or 0.0
    _, snapshot = step(initial(CycleSettings()), moment, [observation])
    about_it = {
        value.signal for value in snapshot.values if not value.signal.name.startswith(("source_", "signal_"))
    }
    about_it = {signal for signal in about_it if signal.scope.labels}
    gpus = (
        f"{sum(gpu.up for gpu in observation.gpus)} of {len(observation.gpus)} GPUs, "
        if observation.gpus
        else ""
    )
    return f"{gpus}{len(about_it)} {'signal' if len(about_it) == 1 else 'signals'}"


def table(lines: Sequence[Line]) -> Iterator[str]:
    """The lines as columns, and below them what each source lacks."""
    head = Line("SOURCE", "KIND", "ANSWER", "GIVES")
    rows = [(each.source, each.kind, each.answer, each.gives) for each in (head, *lines)]
    # a failure is a sentence: it may be longer than its column
    short = [row for row in rows if row[3]]
    widths = [max(len(row[place]) for row in (rows if place < 2 else short)) for place in range(4)]  # noqa: PLR2004
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for line in lines:
        if line.oddities:
            yield f"\n{line.source} is odd"
        for oddity in line.oddities:
            yield _paragraph(in_words(oddity))
        if line.lacks:
            yield f"\n{line.source} lacks"
        for lack in line.lacks:
            yield _paragraph(f"{lack.why}: {', '.join(signal.name for signal in lack.signals)}")


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False)
