"""How a GPU fares: errors, throttling, temperature, and what its driver says to do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from exporter.derive.phenomenon import EngineFacts, Phenomenon, where_new
from exporter.gpu_sample import MOST_XIDS, OTHER_XID, GpuHealth, GpuSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Total, Window

RESET_XIDS = frozenset({"48", "62", "64", "74", "79", "95", "119", "120"})
"""After these the GPU has to be reset. Source: NVIDIA's XID catalogue."""

_FROM_ZERO = "rises of the driver's counters, summed from 0: what came before the sidecar is not in it"

XID_ERRORS = Signal(
    "gpu_xid_errors_total",
    Kind.COUNTER,
    Scope.GPU,
    "XID errors that the driver reported, by number, since the sidecar started. "
    f"{', '.join(sorted(RESET_XIDS, key=int))} need a reset of the GPU; 13, 31 and 43 are faults of the application. "
    "A number has no series before its first error: ask gpu_xid_last_timestamp_seconds whether there was one. "
    f"Beyond {MOST_XIDS} different numbers of a GPU, the rest are told together, as other.",
    Confidence.MEASURED,
    "events of the driver, counted by the reader",
    ("xids_total",),
    labels=("xid",),
)
XID_LAST = Signal(
    "gpu_xid_last_timestamp_seconds",
    Kind.GAUGE,
    Scope.GPU,
    "When the newest XID error was reported, in seconds since the epoch. Absent as long as there was none.",
    Confidence.MEASURED,
    "the time of the driver's event",
    ("xid_last_at",),
)
PCIE_ERRORS = Signal(
    "gpu_pcie_errors_total",
    Kind.COUNTER,
    Scope.GPU,
    "Errors of the GPU's PCIe link, by kind: replay is a packet sent again, the others are those of PCIe's error "
    "reporting. Counted from when the sidecar started.",
    Confidence.MEASURED,
    _FROM_ZERO,
    ("pcie_errors_total",),
    labels=("kind",),
)
ECC_ERRORS = Signal(
    "gpu_ecc_errors_total",
    Kind.COUNTER,
    Scope.GPU,
    "Errors of the GPU's memories that ECC corrected or could not correct. Counted from when the sidecar started. Of "
    "uncorrected ones drain the GPU and reset it; if they come again, have it exchanged.",
    Confidence.MEASURED,
    _FROM_ZERO,
    ("ecc_errors_total",),
    labels=("kind",),
)
REMAPPED_ROWS = Signal(
    "gpu_remapped_rows",
    Kind.GAUGE,
    Scope.GPU,
    "Rows of device memory that were remapped after correctable or uncorrectable errors. pending: 1 when one waits for "
    "a reset; failed: 1 when one could not be remapped and the GPU is to be replaced.",
    Confidence.MEASURED,
    "the driver's figures",
    ("remapped_rows",),
    labels=("state",),
)
THROTTLE = Signal(
    "gpu_throttle_seconds_total",
    Kind.COUNTER,
    Scope.GPU,
    "Seconds in which the GPU ran slower than it could, by reason. Counted from when the sidecar started. Of heat look "
    "to fans and air, of power to the limit that is set and to the supply.",
    Confidence.MEASURED,
    _FROM_ZERO,
    ("throttle_seconds_total",),
    labels=("reason",),
)
TEMPERATURE = Signal(
    "gpu_temperature_celsius",
    Kind.GAUGE,
    Scope.GPU,
    "Temperature of the GPU's core. Above its limit it slows down: gpu_throttle_seconds_total tells.",
    Confidence.MEASURED,
    "the driver's figure",
    ("temperature_celsius",),
)
POWER = Signal(
    "gpu_power_watts",
    Kind.GAUGE,
    Scope.GPU,
    "Power that the GPU draws. At its limit it slows down: gpu_throttle_seconds_total tells.",
    Confidence.MEASURED,
    "the driver's figure",
    ("power_watts",),
)
RECOVERY = Signal(
    "gpu_recovery_action",
    Kind.GAUGE,
    Scope.GPU,
    "What the driver says has to be done to the GPU: 0 nothing, 1 reset it, 2 reboot the node, 3 drain what talks to "
    "its peers, 4 drain and reset, 5 recover IMEX, 6 reset the bus, 7 reboot the system.",
    Confidence.MEASURED,
    "the driver's code",
    ("recovery_action",),
)
PERSISTENCE = Signal(
    "gpu_persistence_mode",
    Kind.GAUGE,
    Scope.GPU,
    "1 while the driver keeps the GPU initialised when nobody uses it, else 0: then each first use takes seconds.",
    Confidence.MEASURED,
    "the driver's setting",
    ("persistence_mode",),
    is_state=True,
)

Totals = Mapping[str, Total]


class ErrorState(NamedTuple):
    """Our own totals by what they count.

    All of it is read every few seconds and changes once a month: ``told`` is what was last said of
    ``health``, and holds as long as nothing differs.
    """

    pcie_errors: Totals
    ecc_errors: Totals
    throttle_seconds: Totals
    health: GpuHealth | None = None
    told: tuple[Point, ...] = ()


def _errors(
    window: Window[GpuSample], _facts: EngineFacts, state: ErrorState
) -> tuple[ErrorState, tuple[Point, ...]]:
    health, restarted = window.newest.health, window.restarted()
    if health is None:
        return state, ()
    rest = health._replace(temperature_celsius=None, power_watts=None)
    if restarted or rest != state.health:
        state = ErrorState(
            _fed(state.pcie_errors, health.pcie_errors_total, restarted=restarted),
            _fed(state.ecc_errors, health.ecc_errors_total, restarted=restarted),
            _fed(state.throttle_seconds, health.throttle_seconds_total, restarted=restarted),
            rest,
        )
        state = state._replace(told=tuple(_told(state, health)))
    return state, state.told


def _told(state: ErrorState, health: GpuHealth) -> Iterator[Point]:
    for signal, counters, totals in (
        (PCIE_ERRORS, health.pcie_errors_total, state.pcie_errors),
        (ECC_ERRORS, health.ecc_errors_total, state.ecc_errors),
        (THROTTLE, health.throttle_seconds_total, state.throttle_seconds),
    ):
        for name, _ in counters:
            if name in totals:
                yield Point(signal, (name,), totals[name].value)
    for name, rows in health.remapped_rows:
        if _can_be(rows):
            yield Point(REMAPPED_ROWS, (name,), rows)
    if health.recovery_action is not None:
        yield Point(RECOVERY, (), float(health.recovery_action))
    if health.persistence_mode is not None:
        yield Point(PERSISTENCE, (), float(health.persistence_mode))


def _can_be(value: float) -> bool:
    return 0.0 <= value < math.inf


def _fed(totals: Totals, counters: Iterable[tuple[str, float]], *, restarted: bool) -> Totals:
    """Our totals after the driver's: each begins at 0 where the driver's stands when it is first seen."""
    fed = {
        name: totals.get(name, Total()).fed(count, restarted=restarted)
        for name, count in counters
        if _can_be(count)
    }
    return {**totals, **fed}


_READERS_KEPT = 4
"""Two sources of a GPU take turns where one of them fails; each may begin anew meanwhile."""


class Seen(NamedTuple):
    """Events of one XID so far, and the times of the samples that told of the first and of the newest one."""

    events: float = 0.0
    first_at: float = 0.0
    newest_at: float = 0.0


class XidState(NamedTuple):
    """Events so far by XID, and when the newest one came.

    ``missed`` are, by reader and XID, the events so far that the reader itself didn't count; readers are told apart by
    when they began, the one that told last being the last.
    """

    xids: Mapping[int, Seen]
    missed: Mapping[float, Mapping[int, float]]
    last_at: float | None = None


def _health(window: Window[GpuSample], _facts: EngineFacts, state: XidState) -> tuple[XidState, list[Point]]:
    now = window.newest
    if now.xids_total or now.xid_last_at is not None:
        state = _xids(now, state)
    # a GPU that is lost has no health any more, but the XID that tells why
    points = [
        Point(XID_ERRORS, ("other" if xid == OTHER_XID else str(xid),), seen.events)
        for xid, seen in state.xids.items()
    ]
    if state.last_at is not None:
        points.append(Point(XID_LAST, (), state.last_at))
    if now.health is not None:
        celsius, watts = now.health.temperature_celsius, now.health.power_watts
        if celsius is not None and _can_be(celsius):
            points.append(Point(TEMPERATURE, (), celsius))
        if watts is not None and _can_be(watts):
            points.append(Point(POWER, (), watts))
    return state, points


def _xids(now: GpuSample, state: XidState) -> XidState:
    """With what the reader has counted since.

    A reader counts from 0 what it saw itself: what it counts comes on top of what was there before it began. Of two
    that see the same events side by side, as NVML and dcgm-exporter, each event counts once, whoever tells of it.
    """
    reader = now.reader_started_at
    missed, xids = dict(state.missed.get(reader, {})), dict(state.xids)
    for xid, count in _bounded(now.xids_total, state.xids):
        seen = xids.get(xid, Seen(first_at=now.at))
        if xid not in missed:
            missed[xid] = _missed(seen, count, reader)
        total = missed[xid] + count
        if total > seen.events:
            xids[xid] = Seen(total, seen.first_at, now.at)
        elif xid not in xids:
            xids[xid] = seen  # one that was there before our time: told of, as no event
    others = [(each, of) for each, of in state.missed.items() if each != reader]
    last_at = state.last_at if now.xid_last_at is None else now.xid_last_at
    return XidState(xids, dict([*others, (reader, missed)][-_READERS_KEPT:]), last_at)


def _bounded(counts: Iterable[tuple[int, float]], known: Mapping[int, Seen]) -> list[tuple[int, float]]:
    """The counts that can be; those of numbers beyond ``MOST_XIDS``, each of which would be a series, in one."""
    told: dict[int, float] = {}
    room = MOST_XIDS - len(known)
    for xid, count in counts:
        if not _can_be(count):
            continue
        place = xid
        if xid not in known:
            room -= 1
            place = xid if room >= 0 else OTHER_XID
        told[place] = told.get(place, 0.0) + count
    return list(told.items())


def _missed(seen: Seen, count: float, reader: float) -> float:
    """How many of the events ``seen`` a reader that began at ``reader`` has not counted, as it is first heard."""
    if reader > seen.newest_at:
        return seen.events
    return 0.0 if reader <= seen.first_at else max(0.0, seen.events - count)


def _errors_looked_at(window: Window[GpuSample]) -> tuple[object, ...] | None:
    return None if window.restarted() else (window.newest.health,)


def _health_looked_at(window: Window[GpuSample]) -> tuple[object, ...]:
    now = window.newest
    return (now.health, now.xids_total, now.xid_last_at, now.reader_started_at)


ERRORS = where_new(
    Phenomenon(
        "gpu_errors",
        (PCIE_ERRORS, ECC_ERRORS, REMAPPED_ROWS, THROTTLE, RECOVERY, PERSISTENCE),
        _errors,
        ErrorState({}, {}, {}),
    ),
    _errors_looked_at,
)
HEALTH = where_new(
    Phenomenon("gpu_health", (XID_ERRORS, XID_LAST, TEMPERATURE, POWER), _health, XidState({}, {})),
    _health_looked_at,
)
