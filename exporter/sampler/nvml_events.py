"""XID errors, as the driver tells them: of whole GPUs only."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from ctypes import c_void_p, cast
from typing import Any

from exporter.sampler.backend import Event, ReadError, Remedy
from exporter.sampler.nvml_errors import GPU_IS_LOST, TIMEOUT, error_of_code
from exporter.sampler.nvml_library import Library

_XID = 0x8
"""nvmlEventTypeXidCriticalError."""
_TIMEOUT = error_of_code("", TIMEOUT).reason
_LOST = error_of_code("", GPU_IS_LOST).reason


class XidEvents:
    """The XIDs of ``gpus``, handles with their UUIDs. One thread waits, another may ``close``."""

    __slots__ = ("_gpus", "_library", "_refused", "_set", "_uuids", "_wanted")

    def __init__(self, library: Library, gpus: Sequence[tuple[Any, str]]) -> None:
        self._library = library
        self._gpus = self._wanted = tuple(gpus)
        self._set: Any = None
        self._uuids: dict[int | None, str] = {}
        self._refused: ReadError | None = None
        self._register()

    def next(self, seconds: float) -> Event | None:
        """The next XID, None where none came. Raises ReadError: with DROP where no GPU tells of any."""
        if self._wanted != self._gpus:
            self._gpus = self._wanted
            self.close()
            self._register()
        if self._set is None:
            if self._refused is not None and self._refused.remedy == Remedy.DROP:
                raise self._refused
            time.sleep(seconds)
            self._register()
            return None
        try:
            data = self._library.call("nvmlEventSetWait_v2", self._set, round(seconds * 1000))
        except ReadError as error:
            if error.reason == _TIMEOUT:
                return None
            if error.reason != _LOST:
                raise
            # a set with a lost GPU in it says so at once, for ever: the others go on in a new one
            self.close()
            self._register()
            time.sleep(seconds)  # the driver may take the lost one into the new set too
            return None
        uuid = self._uuids.get(_address(data.device))
        return None if uuid is None or data.eventType != _XID else Event(uuid, int(data.eventData))

    def watch(self, gpus: Sequence[tuple[Any, str]]) -> None:
        """From the next wait on, the XIDs of these."""
        self._wanted = tuple(gpus)

    def close(self) -> None:
        """Free the set. Raises nothing."""
        freed, self._set = self._set, None
        if freed is not None:
            with suppress(ReadError):  # it is gone already
                self._library.call("nvmlEventSetFree", freed)

    def _register(self) -> None:
        """Ask for the XIDs of all GPUs that have them."""
        created = self._library.call("nvmlEventSetCreate")
        self._uuids = {}
        for handle, uuid in self._gpus:
            try:
                self._library.call("nvmlDeviceRegisterEvents", handle, _XID, created)
            except ReadError as error:
                self._refused = error
            else:
                self._uuids[_address(handle)] = uuid
        self._set = created
        if not self._uuids:
            self.close()


def _address(handle: Any) -> int | None:  # noqa: ANN401 - a pointer of ctypes
    return cast(handle, c_void_p).value
