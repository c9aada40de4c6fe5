"""Short ways from a dcgm-exporter's text to what becomes of it, read after read."""

from __future__ import annotations

from pathlib import Path

from exporter.dialects.dcgm import Memory, follow
from exporter.dialects.dcgm_page import interpret
from exporter.exposition import Reader
from exporter.gpu_sample import GpuSample, PcieTraffic

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "dcgm"
AT = 1_796_000_000.0
UUID = "GPU-0"


def fixture(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def text(*, uuid: str = UUID, more: str = "", **fields: str | float) -> str:
    """A page of one GPU: ``DEV_GPU_UTIL=50`` is DCGM_FI_DEV_GPU_UTIL; ``more`` are further labels."""
    labels = f'{{gpu="0",UUID="{uuid}",device="nvidia0"{more}}}'
    return "".join(f"DCGM_FI_{name}{labels} {value}\n" for name, value in fields.items())


class Story:
    """One exporter read again and again, as its source does."""

    def __init__(self) -> None:
        self._reader = Reader(interpret)
        self.memory = Memory()

    def reads(self, page: str | bytes, seconds: float = 0.0) -> tuple[GpuSample, ...]:
        """What is shown after a read that begins ``seconds`` into the story."""
        body = page.encode() if isinstance(page, str) else page
        self.memory = follow(self.memory, self._reader.read(body), AT + seconds)
        return self.memory.samples

    def read(self, seconds: float = 0.0, **fields: str | float) -> GpuSample:
        """The same for a page of one GPU."""
        (only,) = self.reads(text(**fields), seconds)
        return only


def first(page: str | bytes) -> tuple[GpuSample, ...]:
    """What is shown after the first read of a text."""
    return Story().reads(page)


def one(**fields: str | float) -> GpuSample:
    """What is shown after the first read of a page of one GPU."""
    return Story().read(**fields)


def traffic(gpu: GpuSample) -> PcieTraffic:
    """Its PCIe group, which has to be there."""
    assert gpu.pcie is not None
    return gpu.pcie


def rates(gpu: GpuSample) -> tuple[float | None, float | None]:
    """Its PCIe bytes a second, out and in."""
    return traffic(gpu).out_bytes_per_second, traffic(gpu).in_bytes_per_second


def disagreements(gpu: GpuSample) -> float | None:
    """Intervals in which two sources of its PCIe bytes disagreed."""
    return traffic(gpu).disagreements_total
