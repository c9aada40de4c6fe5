"""The GPUs on the landing page: one row each, beside the engines that run on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from exporter.derive.attribution import IMPOSSIBLE, SWAP_SHARE
from exporter.derive.gpu_health import RECOVERY, RESET_XIDS, XID_ERRORS, XID_LAST
from exporter.derive.gpu_memory import GPU_MEMORY_TOTAL, GPU_MEMORY_USED
from exporter.derive.inventory import ENGINE_GPU_INFO, GPU_DOWN_INFO, GPU_INFO, GPU_UP
from exporter.derive.pcie import PCIE_DOWNGRADED, PCIE_LINK, PCIE_RATE, PCIE_SATURATION, PCIE_SOURCE
from exporter.derive.starvation import SATURATED_FROM, STARVED
from exporter.landing_values import STATES, raised, shown
from exporter.landing_values import age as duration
from exporter.signal import PEAK_SECONDS, Scope, Signal
from exporter.snapshot import Value

_ABSENT = '<span class="none">—</span>'
_DIRECTIONS = ("in", "out")
_REMEDIES = {
    1: "reset it",
    2: "reboot the node",
    3: "drain its peers",
    4: "drain and reset",
    5: "recover IMEX",
    6: "reset the bus",
    7: "reboot the system",
}
"""What the codes of gpu_recovery_action ask for."""
_DOWN = {
    "": "down",
    "gpu_lost": "lost",
    "gpu_ill": "ill",
    "hung": "hangs",
    "stale": "stands still",
    "gone": "gone",
}
"""What a GPU that is down is called, by why; else by the reader's own reason."""
STARVED_FROM = 0.5
"""Of a minute: a GPU that stands still for PCIe that long has become what its link is, and not what it could do."""
_EXPLAINED = (
    "Bars: the fuller direction of the PCIe link over the trailing 10 s; the dark line is the peak of "
    f"{PEAK_SECONDS:g} s, the notch is at {SATURATED_FROM * 100:.0f} %, from where on a link counts as full "
    "(gpu_starved_ratio). What it is of: all that the link can carry one way, or while it is downgraded what it still "
    "can, and who counts the bytes."
)


@dataclass(slots=True)
class Gpu:
    """What is known of one GPU: values by signal and the labels beyond its UUID, now and as peaks.

    ``of``: whose it is, where another machine has a GPU of the same index.
    """

    uuid: str
    now: dict[tuple[Signal, tuple[str, ...]], float] = field(default_factory=dict)
    peak: dict[tuple[Signal, tuple[str, ...]], float] = field(default_factory=dict)
    of: str = ""

    def value(self, signal: Signal, *labels: str) -> float | None:
        """The value of ``signal`` now, if any."""
        return self.now.get((signal, labels))

    def labels(self, signal: Signal) -> list[tuple[str, ...]]:
        """The labels under which ``signal`` has values."""
        return [labels for each, labels in self.now if each is signal]

    @property
    def info(self) -> Mapping[str, str]:
        """What gpu_info tells."""
        told = next(iter(self.labels(GPU_INFO)), ("",) * len(GPU_INFO.labels))
        return dict(zip(GPU_INFO.labels, told, strict=True))

    @property
    def down_word(self) -> str:
        """What has become of one that is down, in a word or two."""
        (reason,) = next(iter(self.labels(GPU_DOWN_INFO)), ("",))
        return _DOWN.get(reason) or f"down: {reason.replace('_', ' ')}"

    @property
    def index(self) -> str:
        """Its number on its machine; empty for a MIG instance and where it isn't told."""
        info = self.info
        return "" if info["parent_uuid"] else info["index"]

    @property
    def title(self) -> str:
        """What people call it: its index; a MIG instance or a GPU without one goes by its UUID."""
        return f"GPU {self.index}{f' of {self.of}' if self.of else ''}" if self.index else self.uuid


def gpus_of(values: Iterable[Value]) -> list[Gpu]:
    """All GPUs that anything is told of, machine by machine, by index, and then in the order in which they are told of.

    A sidecar may read the GPUs of several machines, which all have a GPU 0: they go by their engine as well, or by
    their UUID where that doesn't tell them apart.
    """
    found: dict[str, Gpu] = {}
    engines: dict[str, str] = {}
    for signal, labels, value, is_peak in values:
        if signal.scope is Scope.GPU:
            gpu = found.setdefault(labels[0], Gpu(labels[0]))
            (gpu.peak if is_peak else gpu.now)[signal, labels[1:]] = value
        elif signal is ENGINE_GPU_INFO:
            engines.setdefault(labels[1], labels[0])
    times = Counter(gpu.index for gpu in found.values())
    times_of = Counter((gpu.index, engines.get(gpu.uuid)) for gpu in found.values())
    for gpu in found.values():
        if gpu.index and times[gpu.index] > 1:
            engine = engines.get(gpu.uuid)
            gpu.of = engine if engine and times_of[gpu.index, engine] == 1 else gpu.uuid
    return sorted(found.values(), key=_place)


def gpu_table(values: Sequence[Value], now: float) -> str:
    """The table at ``now`` (seconds since the epoch), or nothing where there is no GPU."""
    gpus = gpus_of(values)
    if not gpus:
        return ""
    names = {gpu.info["name"] for gpu in gpus if not gpu.info["parent_uuid"]}
    # eight of the same kind need not say it eight times
    alike = names.pop() if len(names) == 1 else ""
    starved = starving(values)
    rows = "".join(_row(gpu, alike, now, starved.get(gpu.uuid)) for gpu in gpus)
    return (
        f'<section class="card wide"><h2>GPUs <small>{escape(alike)}</small></h2>'
        '<table class="rows gpus"><thead><tr><th>GPU<th class="n">memory<th class="n">PCIe in<th class="n">PCIe out'
        f'<th class="use">PCIe link in use<th>of</thead><tbody>{rows}</tbody></table>'
        f'{_swap_shares(values, gpus)}<p class="hint">{escape(_EXPLAINED)}</p></section>'
    )


def starving(values: Iterable[Value]) -> dict[str, float]:
    """Those GPUs that stand still for PCIe, by UUID, each with the share of the trailing minute."""
    found: dict[str, float] = {}
    for signal, labels, value, _ in values:
        if signal is STARVED and value >= STARVED_FROM:
            found[labels[1]] = max(value, found.get(labels[1], 0.0))
    return found


def _swap_shares(values: Sequence[Value], gpus: Sequence[Gpu]) -> str:
    """How much of what goes over PCIe each engine's swap explains, or why that isn't known."""
    shares: dict[str, dict[str, float]] = {}
    for signal, labels, value, _ in values:
        if signal is SWAP_SHARE:
            shares.setdefault(labels[0], {})[labels[1]] = value
        elif signal is ENGINE_GPU_INFO:
            shares.setdefault(labels[0], {})
    too_much = {labels[0] for signal, labels, value, _ in values if signal is IMPOSSIBLE and value}
    down = [gpu.title for gpu in gpus if gpu.value(GPU_UP) == 0]
    lines = []
    for engine, told in shares.items():
        if told:
            said = ", ".join(
                f"{each} {shown(SWAP_SHARE, told[each])}" for each in _DIRECTIONS if each in told
            )
        elif engine in too_much:
            said = "more than they carried: these are not its GPUs, or not all of them"
        elif down:
            said = f"not known while a GPU of it may be down: {', '.join(down)}"
        else:
            said = "not known (a minute is needed, and an engine that counts what it swaps in bytes)"
        lines.append(f'<p class="hint">of PCIe, explained by swap of {escape(engine)}: {escape(said)}</p>')
    return "".join(lines)


def _place(gpu: Gpu) -> tuple[str, bool, int, bool]:
    info = gpu.info
    index = info["index"]
    return (gpu.of, not index.isdecimal(), int(index) if index.isdecimal() else 0, bool(info["parent_uuid"]))


def _row(gpu: Gpu, alike: str, now: float, starved: float | None) -> str:
    name = "" if gpu.info["name"] == alike else f" <small>{escape(gpu.info['name'])}</small>"
    notes = list(_troubles(gpu, now))
    if starved is not None:
        notes.append(f'<b class="bad">waits for PCIe {shown(STARVED, starved)} of a minute</b>')
    troubles = " " + " · ".join(notes)
    return (
        f'<tr><td class="name" title="{escape(gpu.uuid)}">{escape(gpu.title)}{name}{troubles}'
        f'<td class="n" data-is="memory">{_memory(gpu)}'
        + "".join(f'<td class="n" data-is="PCIe {each}">{_rate(gpu, each)}' for each in _DIRECTIONS)
        + f'<td class="use" data-is="link in use">{_bar(gpu)}<td data-is="of">{_link(gpu)}'
    )


def _link(gpu: Gpu) -> str:
    """What it carries, and who counts what goes over it."""
    link = gpu.value(PCIE_LINK)
    source = "".join(f" <small>{escape(labels[0])}</small>" for labels in gpu.labels(PCIE_SOURCE))
    return (_ABSENT if link is None else shown(PCIE_LINK, link)) + source


def _memory(gpu: Gpu) -> str:
    used, total = gpu.value(GPU_MEMORY_USED), gpu.value(GPU_MEMORY_TOTAL)
    if used is None:
        return _ABSENT
    of = "" if total is None else f" <small>of {shown(GPU_MEMORY_TOTAL, total)}</small>"
    return shown(GPU_MEMORY_USED, used) + of


def _rate(gpu: Gpu, direction: str) -> str:
    rate, peak = gpu.value(PCIE_RATE, direction), gpu.peak.get((PCIE_RATE, (direction,)))
    high = "" if peak is None else f" <small>peak {shown(PCIE_RATE, peak)}</small>"
    return (_ABSENT if rate is None else shown(PCIE_RATE, rate)) + high


def _bar(gpu: Gpu) -> str:
    shares = [share for each in _DIRECTIONS if (share := gpu.value(PCIE_SATURATION, each)) is not None]
    if not shares:
        return _ABSENT
    share = max(shares)
    peaks = [gpu.peak.get((PCIE_SATURATION, (each,))) or 0.0 for each in _DIRECTIONS]
    high = max(share, *peaks)
    text = f"{share * 100:.0f} % of the link, peak {high * 100:.0f} %"
    full = " full" if share >= SATURATED_FROM else ""
    return (
        f'<svg class="bar{full}" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{text}">'
        f'<rect class="room" width="100" height="8"/><rect class="used" width="{share * 100:.1f}" height="8"/>'
        f'<rect class="high" x="{min(99.0, high * 100):.1f}" width="1" height="8"/>'
        f'<rect class="notch" x="{SATURATED_FROM * 100:.1f}" width=".5" height="8"/></svg> '
        f"{share * 100:.0f} % <small>peak {high * 100:.0f} %</small>"
    )


def _troubles(gpu: Gpu, now: float) -> Iterable[str]:
    if gpu.value(GPU_UP) == 0:
        yield f'<b class="bad">{escape(gpu.down_word)}</b>'
    value = gpu.value(PCIE_DOWNGRADED)
    if value is not None and raised(PCIE_DOWNGRADED, value):
        yield f'<b class="bad">{STATES[PCIE_DOWNGRADED].word}</b>'
    remedy = _REMEDIES.get(int(gpu.value(RECOVERY) or 0))
    if remedy is not None:
        yield f'<b class="bad">the driver says: {remedy}</b>'
    last = gpu.value(XID_LAST)
    if last is not None:
        # one that stood there before our time is told of as no event
        xids = [labels[0] for labels in gpu.labels(XID_ERRORS) if gpu.value(XID_ERRORS, *labels)]
        mark = ' class="bad"' if RESET_XIDS.intersection(xids) else ""
        numbers = escape(", ".join(sorted(xids, key=lambda xid: (len(xid), xid))))
        yield f"<b{mark}>XID {numbers}</b> <small>last {duration(max(0.0, now - last))} ago</small>"
