"""Copies of a known size between host and GPU, through CUDA's driver library and nothing else."""

from __future__ import annotations

import ctypes
import threading
import time
from types import TracebackType
from typing import Protocol, Self

CHUNK_BYTES = 256 << 20
SONAME = "libcuda.so.1"


class CopyError(Exception):
    """CUDA isn't here or refused: which call, and what it said."""


class Copier(Protocol):
    """Copies in one direction at a time, by one thread."""

    def to_gpu(self) -> int:
        """Copy once from the host; gives the bytes."""

    def to_host(self) -> int:
        """Copy once to the host; gives the bytes."""

    def finish(self) -> int:
        """Wait for what is under way; gives its bytes, as far as no call has."""


class CudaCopier:
    """Pinned host memory and device memory of ``CHUNK_BYTES`` on the GPU at a PCI bus id. Raises CopyError."""

    def __init__(self, pci_bus_id: str) -> None:
        try:
            self._cuda = ctypes.CDLL(SONAME)
        except OSError as error:
            raise CopyError(f"{SONAME}: {error}") from error
        self._device, context = ctypes.c_int(), ctypes.c_void_p()
        self._host, self._memory = ctypes.c_void_p(), ctypes.c_uint64()
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDeviceGetByPCIBusId", ctypes.byref(self._device), pci_bus_id.encode())
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._context = context
        self._enter()
        self._call("cuMemHostAlloc", ctypes.byref(self._host), ctypes.c_size_t(CHUNK_BYTES), ctypes.c_uint(0))
        self._call("cuMemAlloc_v2", ctypes.byref(self._memory), ctypes.c_size_t(CHUNK_BYTES))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._enter()
        self._call("cuMemFree_v2", self._memory)
        self._call("cuMemFreeHost", self._host)
        self._call("cuDevicePrimaryCtxRelease_v2", self._device)

    def to_gpu(self) -> int:
        self._enter()
        self._call("cuMemcpyHtoD_v2", self._memory, self._host, ctypes.c_size_t(CHUNK_BYTES))
        return CHUNK_BYTES

    def to_host(self) -> int:
        self._enter()
        self._call("cuMemcpyDtoH_v2", self._host, self._memory, ctypes.c_size_t(CHUNK_BYTES))
        return CHUNK_BYTES

    def finish(self) -> int:
        """A copy ends with its call."""
        return 0

    def _enter(self) -> None:
        """A context is a thread's: whichever copies has to have it."""
        self._call("cuCtxSetCurrent", self._context)

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code:
            raise CopyError(f"{name}: CUDA error {code}")


class Copying:
    """Copies in a thread of its own while the block runs; then ``payload_bytes`` in ``seconds``."""

    def __init__(self, copier: Copier, *, to_gpu: bool) -> None:
        self._copier = copier
        self._copy = copier.to_gpu if to_gpu else copier.to_host
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: Exception | None = None
        self.payload_bytes = 0
        self.seconds = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        while not self.payload_bytes and self._thread.is_alive():
            time.sleep(0.001)  # from here on it copies
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    @property
    def bytes_per_second(self) -> float:
        return self.payload_bytes / self.seconds if self.seconds else 0.0

    def _run(self) -> None:
        began = time.monotonic()
        try:
            while not self._ending.is_set():
                self.payload_bytes += self._copy()
            self.payload_bytes += self._copier.finish()
        except Exception as error:  # noqa: BLE001 - told by whoever waits
            self._error = error
        self.seconds = time.monotonic() - began
