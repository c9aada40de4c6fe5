"""Reads a dcgm-exporter's /metrics on fixed ticks and keeps its GPUs."""

from __future__ import annotations

import logging
from collections.abc import Callable

from exporter.dialects.dcgm import Memory, follow, stands_still
from exporter.dialects.dcgm_page import interpret
from exporter.exposition import Reader
from exporter.gpu_settings import DcgmSettings
from exporter.observation import Observation
from exporter.sources.endpoint import Endpoint, Reply
from exporter.sources.failure import DCGM, Reason
from exporter.sources.gpu_roll import GpuRoll
from exporter.sources.lookalike_dcgm import not_dcgm
from exporter.sources.page import PageSource
from exporter.sources.xid_words import XidWords

NAME = "dcgm"

_WORTH_A_WORD_SECONDS = 10.0
"""Nothing on a page moving for this long is no idle GPU, whose power is never quite the same, but the exporter."""

_log = logging.getLogger(__name__)


class DcgmSource(PageSource[Memory]):
    """The GPUs of one dcgm-exporter, which may be those of several hosts.

    ``clock`` gives seconds since the epoch and never jumps. A GPU that was on the page and is missing is
    down, and is told of for an hour; so are all of them where the page lists none any more.
    """

    def __init__(self, settings: DcgmSettings, clock: Callable[[], float], interval_seconds: float) -> None:
        super().__init__(NAME, NAME, Endpoint(settings, clock, DCGM), interval_seconds, _log)
        self._reader = Reader(interpret)
        self._memory = Memory()
        self._roll = GpuRoll()
        self._told_slow = False
        self._xids = XidWords(_log)
        self._hung_seconds: float | None = None
        """The step over which the exporter stood still: it says nothing of how seldom it collects."""

    def observe(self) -> Observation:
        """The GPUs as they were last read, and how the reading goes."""
        return Observation(self._status(NAME), gpus=self._roll.gpus)

    def _understand(self, reply: Reply) -> Memory:
        body = self._text(reply)
        memory = follow(self._memory, self._reader.read(body), reply.at)
        if not memory.shown:
            names: set[str] = set()
            Reader(lambda series: names.add(series.name)).read(body)
            reason, problem, remedy = not_dcgm(body, names)
            if reason is Reason.NO_GPUS:
                self._roll = self._roll.after((), reply.at)
            raise self._refusal(reason, problem, remedy)
        self._roll = self._roll.after(memory.samples, reply.at)
        self._xids.take(memory.samples)
        stood_still, self._memory = stands_still(self._memory), memory.only(self._roll.samples)
        if stands_still(memory):
            minutes = (reply.at - (memory.changed_at or reply.at)) / 60
            raise self._refusal(
                Reason.STALE,
                f"its numbers have stood still for {minutes:.0f} min: its host engine hangs",
                "restart it (dcgm-exporter, and nv-hostengine where that runs by itself)",
            )
        if stood_still:
            self._hung_seconds = memory.step_seconds
        elif memory.step_seconds != self._hung_seconds:
            self._say_once_where_slow(memory)
        return self._memory

    def _what(self, result: Memory) -> str:
        gpus = sum(not sample.identity.parent_uuid for sample in result.samples)
        return f"{gpus} {'GPU' if gpus == 1 else 'GPUs'} of dcgm-exporter"

    def _greet(self, result: Memory) -> None:
        """Say once what is missing and why: it looks like a fault and is a choice of the exporter's."""
        whole = [sample for sample in result.samples if not sample.identity.parent_uuid]
        if all(sample.pcie is None for sample in whole):
            _log.info(
                "%s: nothing of PCIe on the page: its signals stay absent until dcgm-exporter's counters file has"
                " DCGM_FI_PROF_PCIE_TX_BYTES and DCGM_FI_PROF_PCIE_RX_BYTES and the GPU has them (docs/gpus.md)",
                NAME,
            )

    def _say_once_where_slow(self, memory: Memory) -> None:
        step = memory.step_seconds
        if memory.slow and step is not None and step > _WORTH_A_WORD_SECONDS and not self._told_slow:
            self._told_slow = True
            _log.warning(
                "%s: its numbers moved after %.0f s: rates are means over that time and peaks are not seen;"
                " start dcgm-exporter with --collect-interval 1000 (docs/gpus.md)",
                NAME,
                step,
            )
