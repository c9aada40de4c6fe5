"""Which figures of an incident agree with each other, and which can't: one rule each, a note with numbers or nothing.

A postmortem that is written from a wall of panels puts figures side by side that were never compared: blocks that
can't have filled the link, bytes of another dtype, a percentile above all buckets, more sessions than there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from alerts.thresholds import THRESHOLDS
from analysis.frame import Values
from analysis.incident import measures
from analysis.incident.buckets import QUANTILES, saturated_label
from analysis.incident.phase import Incident
from analysis.incident.subject import Fold, Subject, rises
from analysis.incident.unit import count, duration, percent, seconds, size
from exporter.derive.aborts import CLIENT_ABORTS
from exporter.derive.attribution import IMPOSSIBLE
from exporter.derive.blocks import KV_BLOCK_TOKENS, KV_BLOCKS, KV_BYTES_PER_TOKEN
from exporter.derive.fragmentation import RESERVE_RATIO, TAIL_BYTES, TAIL_TOKENS, USED_RATIO
from exporter.derive.gateway import REQUESTS
from exporter.derive.latency import SATURATED, TPOT_P99
from exporter.derive.pcie import PCIE_BYTES
from exporter.derive.preemption import PREEMPTIONS
from exporter.derive.swap import SWAP_BYTES, SWAP_ESTIMATE, SWAP_TIER_BYTES, SWAP_TIER_USED, SWAPPED
from exporter.derive.traffic import SEQUENCES
from exporter.gateway_sample import Outcome
from exporter.pcie import HEADER_FACTOR
from exporter.signal import Signal

TOLERANCE = 0.15
"""Figures this near to each other agree: sources are read at different instants."""
_WORTH_BYTES = 1e9
"""Of PCIe traffic in all, below which nobody asks whose it was."""
_TWICE = 2.0
_GONE = (Outcome.CLIENT_LEFT, Outcome.TIMEOUT)


@dataclass(frozen=True, slots=True)
class Note:
    """``title``: what is compared. ``contradicts``: both can't be true; else one says something of the other."""

    title: str
    words: str
    contradicts: bool
    signals: tuple[Signal, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A subject from the begin of an incident to its end: places ``begin`` to before ``end``."""

    subject: Subject
    begin: int
    end: int

    @classmethod
    def of(cls, subject: Subject, incident: Incident) -> Stretch:
        """Of an incident; of one that goes on all that there is."""
        at = subject.frame.times
        last = incident.end.at if incident.end is not None else float(at[-1])
        begin, end = np.searchsorted(at, (incident.begin.at, last + subject.frame.step_seconds / 2))
        return cls(subject, int(begin), max(int(begin) + 1, int(end)))

    def most(self, values: Values) -> float | None:
        """The largest known; None where nothing is."""
        part = values[self.begin : self.end]
        return None if np.isnan(part).all() else float(np.nanmax(part))

    def rose(self, signal: Signal, **where: str) -> float | None:
        """What the counters of a signal rose by, all together; None: there are none."""
        found = [values for _, values in self.subject.series(signal, **where)]
        return float(sum(np.nansum(rises(each)[self.begin : self.end]) for each in found)) if found else None

    def folded(self, signal: Signal, fold: Fold, **where: str) -> Values:
        """As ``Subject.folded``, of all of the history."""
        return self.subject.folded(signal, fold, **where)


Rule = Callable[[Stretch], Note | None]


def consistency(subject: Subject, incident: Incident) -> tuple[Note, ...]:
    """All rules over an incident; what agrees and says nothing more gives no note. Contradictions first."""
    stretch = Stretch.of(subject, incident)
    notes = [note for rule in RULES if (note := rule(stretch)) is not None]
    return tuple(sorted(notes, key=lambda note: not note.contradicts))


def swap_against_pcie(stretch: Stretch) -> Note | None:
    """Whether the blocks that were moved can be what the PCIe links carried, and how much of it they explain."""
    title = "swapped blocks against PCIe bytes"
    carried = stretch.rose(PCIE_BYTES)
    moved, signal = stretch.rose(SWAP_BYTES), SWAP_BYTES
    if moved is None:
        out, signal = stretch.rose(SWAP_ESTIMATE), SWAP_ESTIMATE
        moved = None if out is None else 2 * out
    if carried is None or moved is None or carried < _WORTH_BYTES:
        return None
    watched = _watched_share(stretch)
    if watched is None:
        return None
    expected = moved * watched * HEADER_FACTOR
    told = f"{size(moved)} were moved by swap or offload"
    if signal is SWAP_ESTIMATE:
        told += " (estimated from preemptions)"
    told += f", {size(expected)} of it over the links that were watched; these carried {size(carried)}"
    if expected > carried * (1 + TOLERANCE):
        words = (
            f"{told}: that can't be. The swap figure is {percent(expected / carried - 1)} too high at least."
        )
        return Note(title, words, contradicts=True, signals=(signal, PCIE_BYTES))
    if expected < carried * (1 - TOLERANCE):
        rest = carried - expected
        words = f"{told}: swap explains {percent(expected / carried)} of it, and {size(rest)} were something else."
        return Note(title, words, contradicts=False, signals=(signal, PCIE_BYTES))
    return None


def preempted_was_recomputed(stretch: Stretch) -> Note | None:
    """What became of preempted sequences where nothing was moved: an engine that doesn't swap computes them again."""
    preempted = stretch.rose(PREEMPTIONS)
    moved = [
        stretch.rose(SWAP_BYTES),
        stretch.rose(SWAP_ESTIMATE),
        stretch.most(stretch.folded(SWAPPED, Fold.MAX)),
    ]
    if not preempted or any(moved):
        return None
    words = (
        f"{count(preempted)} preemptions, and as far as engines tell nothing was swapped, nor did anything come back"
        " from a tier below: what these sequences held was thrown away and computed again."
    )
    signals = (PREEMPTIONS, SWAPPED, SWAP_BYTES)
    return Note("preemptions against swapping", words, contradicts=False, signals=signals)


def _watched_share(stretch: Stretch) -> float | None:
    """Of what engines move altogether, the part over the GPUs that are watched: a GPU's share of a token each."""
    whole = stretch.folded(KV_BYTES_PER_TOKEN, Fold.MAX, scope="model")
    each = stretch.folded(KV_BYTES_PER_TOKEN, Fold.MAX, scope="gpu")
    share = each / whole
    if np.isnan(share).all():
        return None
    gpus = {key.label("uuid") for key, _ in stretch.subject.series(PCIE_BYTES)}
    engines = {key.label("engine") for key, _ in stretch.subject.series(KV_BYTES_PER_TOKEN)}
    # engines have as many GPUs each as are watched of all, as far as anybody tells
    return min(1.0, float(np.nanmedian(share)) * max(1.0, len(gpus) / max(1, len(engines))))


def impossible_share(stretch: Stretch) -> Note | None:
    """What the sidecar itself found impossible: more swapped than the link carried."""
    most = stretch.most(stretch.folded(IMPOSSIBLE, Fold.MAX))
    if not most:
        return None
    words = (
        "An engine's own counters of moved bytes were above what its GPUs' links carried in the same minute:"
        " the GPUs of an engine in the sidecar's settings aren't those that it runs on, or there are more of them."
    )
    return Note("swap bytes above PCIe bytes", words, contradicts=True, signals=(IMPOSSIBLE,))


def tail_dtype(stretch: Stretch) -> Note | None:
    """Whether the bytes of empty tails are their tokens times the bytes of a token."""
    slots = stretch.folded(TAIL_TOKENS, Fold.SUM, bound="expected")
    held = stretch.folded(TAIL_BYTES, Fold.SUM, bound="expected")
    each = stretch.folded(KV_BYTES_PER_TOKEN, Fold.MAX, scope="model")
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(slots > 0, held / (slots * each), np.nan)[stretch.begin : stretch.end]
    if np.isnan(ratio).all():
        return None
    found = float(np.nanmedian(ratio))
    if abs(found - 1) <= TOLERANCE:
        return None
    kinds = {0.5: "keys without values, or a dtype of half the size", 2.0: "a dtype of twice the size"}
    why = next(
        (words for factor, words in kinds.items() if abs(found / factor - 1) <= TOLERANCE), "another model"
    )
    words = f"Bytes in empty tails are {count(found)} times tokens times bytes a token: {why}."
    return Note(
        "tail bytes against the dtype", words, contradicts=True, signals=(TAIL_BYTES, KV_BYTES_PER_TOKEN)
    )


def tail_share(stretch: Stretch) -> Note | None:
    """Tails that are large beside what is free, and nothing beside what is used: no cause."""
    reserve = stretch.most(stretch.folded(RESERVE_RATIO, Fold.MAX))
    used = stretch.most(stretch.folded(USED_RATIO, Fold.MAX))
    if reserve is None or used is None:
        return None
    if reserve < THRESHOLDS.tail_reserve_ratio or used >= THRESHOLDS.tail_used_ratio:
        return None
    words = (
        f"Empty tails of blocks were up to {percent(reserve)} of what was free, since next to nothing was:"
        f" of what was used they were {percent(used)} at most. They are no cause."
    )
    return Note("tail waste against the pool", words, contradicts=False, signals=(RESERVE_RATIO, USED_RATIO))


def above_top_bucket(stretch: Stretch) -> Note | None:
    """Quantiles that lay above the engine's top bucket: there is no figure of them, whatever a panel shows."""
    told = []
    for signal in QUANTILES:
        floors = stretch.folded(SATURATED, Fold.MAX, of=saturated_label(signal))
        part = slice(stretch.begin, stretch.end)
        above = np.nan_to_num(floors[part]) > 0
        if not above.any():
            continue
        top = float(np.nanmax(stretch.folded(signal, Fold.MAX)[part][above]))
        lasted = duration(float(np.count_nonzero(above)) * stretch.subject.frame.step_seconds)
        told.append(f"{saturated_label(signal)} lay above its top bucket ({seconds(top)}) for {lasted}")
    if not told:
        return None
    words = (
        f"{'; '.join(told)}: it was more, and nobody knows how much. Any figure above the bound is made up."
    )
    return Note("quantiles above the top bucket", words, contradicts=False, signals=(SATURATED,))


def gaps_that_ended(stretch: Stretch) -> Note | None:
    """A mean gap far above the 99th percentile: the histogram holds only gaps that have ended."""
    part = slice(stretch.begin, stretch.end)
    mean = measures.INTERVAL.read(stretch.subject)[part]
    high = measures.PACE_P99.read(stretch.subject)[part]
    both = (mean > _TWICE * high) & (mean > THRESHOLDS.token_interval_seconds)
    if not both.any():
        return None
    place = int(np.argmax(np.where(both, mean, -np.inf)))
    words = (
        f"The mean gap between tokens was {seconds(float(mean[place]))} while p99 TPOT read"
        f" {seconds(float(high[place]))}: a histogram holds only gaps that have ended, and sequences stood still."
        " p99 TPOT was too good by then."
    )
    return Note(
        "TPOT against the mean gap", words, contradicts=True, signals=(TPOT_P99, measures.INTERVAL.signal)
    )


def sessions_against_capacity(stretch: Stretch) -> Note | None:
    """Whether so many sessions can be in the pools at once, by what a sequence holds."""
    sessions = stretch.most(measures.SESSIONS.read(stretch.subject))
    slots = stretch.folded(KV_BLOCK_TOKENS, Fold.MAX)
    used = stretch.folded(KV_BLOCKS, Fold.SUM, state="used") * slots
    running = stretch.folded(SEQUENCES, Fold.SUM, state="running")
    room = stretch.most(stretch.folded(KV_BLOCKS, Fold.SUM, state="total") * slots)
    part = slice(stretch.begin, stretch.end)
    busy = (running[part] > 0) & ~np.isnan(used[part])
    if sessions is None or not room or not busy.any():
        return None
    each = float(np.median(used[part][busy] / running[part][busy]))
    if each <= 0 or sessions * each <= room * (1 + TOLERANCE):
        return None
    words = (
        f"{count(sessions)} sessions at {count(round(each))} tokens each are {count(sessions * each)} tokens, and the"
        f" pools hold {count(room)}: {count(int(room / each))} of them run at once, the others wait or are thrown out."
    )
    return Note("sessions against KV capacity", words, contradicts=False, signals=(SEQUENCES, KV_BLOCKS))


def held_against_in_flight(stretch: Stretch) -> Note | None:
    """Engines that hold more sequences than clients wait for."""
    waited_for = measures.SESSIONS.read(stretch.subject)
    held = stretch.folded(SEQUENCES, Fold.SUM)
    part = slice(stretch.begin, stretch.end)
    more = held[part] - waited_for[part]
    if np.isnan(more).all() or float(np.nanmax(more)) <= TOLERANCE * float(np.nanmax(held[part])):
        return None
    place = int(np.nanargmax(more))
    words = (
        f"Engines held {count(float(held[part][place]))} sequences while gateways waited for"
        f" {count(float(waited_for[part][place]))}: the others were for clients that had left."
    )
    return Note(
        "sequences against requests in flight",
        words,
        contradicts=False,
        signals=(SEQUENCES, measures.SESSIONS.signal),
    )


def left_against_noticed(stretch: Stretch) -> Note | None:
    """Clients that gateways saw leave, and engines that weren't told."""
    gone = [stretch.rose(REQUESTS, outcome=each.value) for each in _GONE]
    noticed = stretch.rose(CLIENT_ABORTS)
    left = sum(each for each in gone if each is not None)
    if noticed is None or not left or noticed >= left * (1 - TOLERANCE):
        return None
    words = (
        f"Gateways counted {count(left)} requests whose client left or whose time was up; engines noticed"
        f" {count(noticed)}. The rest was worked on for nobody, or ended before it was begun."
    )
    return Note(
        "clients that left against aborts", words, contradicts=False, signals=(REQUESTS, CLIENT_ABORTS)
    )


def swap_set_but_inert(stretch: Stretch) -> Note | None:
    """Swap space that is set up and never used, though sequences were preempted."""
    room = stretch.most(stretch.folded(SWAP_TIER_BYTES, Fold.MAX))
    preempted = stretch.rose(PREEMPTIONS)
    if not room or not preempted:
        return None
    used = [stretch.most(stretch.folded(each, Fold.MAX)) for each in (SWAPPED, SWAP_TIER_USED)]
    if any(used) or stretch.rose(SWAP_BYTES, direction="in") or all(each is None for each in used):
        return None
    words = (
        f"{size(room)} are set up to swap to, {count(preempted)} sequences were preempted, and none was ever swapped:"
        " they were computed again. The setting is inert; vLLM V0 swaps with --preemption-mode swap alone."
    )
    return Note(
        "swap set but inert", words, contradicts=False, signals=(SWAP_TIER_BYTES, SWAPPED, PREEMPTIONS)
    )


RULES: Sequence[Rule] = (
    swap_against_pcie,
    preempted_was_recomputed,
    impossible_share,
    tail_dtype,
    tail_share,
    above_top_bucket,
    gaps_that_ended,
    sessions_against_capacity,
    held_against_in_flight,
    left_against_noticed,
    swap_set_but_inert,
)
