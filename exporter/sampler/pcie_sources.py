"""Which of a GPU's sources of PCIe traffic can be read now: probed, left alone where they fail, tried again later."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeVar

from exporter.sampler.backend import ReadError, Remedy

Read = TypeVar("Read")
_FAILURES = 3
_FIRST_PAUSE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 3600.0


class Sources:
    """The state of each source by name.

    ``trouble`` is the newest odd failure since it was cleared.
    """

    __slots__ = ("_failures", "_pauses", "_refusals", "_until", "trouble")

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}
        self._pauses: dict[str, float] = {}
        self._until: dict[str, float] = {}
        self._refusals: dict[str, ReadError] = {}
        self.trouble: ReadError | None = None

    def is_usable(self, name: str, now: float) -> bool:
        """Whether it is worth asking."""
        return name not in self._refusals and now >= self._until.get(name, -inf)

    def refusal(self, *names: str) -> ReadError | None:
        """Why none of them is ever to be had, if that is so."""
        errors = [self._refusals[name] for name in names if name in self._refusals]
        return errors[-1] if len(errors) == len(names) else None

    def read(
        self, name: str, read: Callable[[], Read], now: float, *, has_other: bool = False
    ) -> Read | None:
        """What the source gives, or None. Raises ReadError where the GPU or the library is gone.

        Where it ``has_other`` to take its place, it is left alone after it failed three times in a row.
        """
        if not self.is_usable(name, now):
            return None
        try:
            value = read()
        except ReadError as error:
            if error.remedy in {Remedy.DEVICE_DOWN, Remedy.REOPEN}:
                raise
            if error.remedy == Remedy.DROP:
                self._refusals[name] = error
            elif error.remedy == Remedy.RETRY:
                self.trouble = error
                self._failures[name] = self._failures.get(name, 0) + 1
                if has_other and self._failures[name] >= _FAILURES:
                    self.pause(name, now)
            return None
        self._failures[name] = 0
        return value

    def pause(self, name: str, now: float) -> None:
        """Leave it alone for a while, longer each time."""
        pause = self._pauses.get(name, _FIRST_PAUSE_SECONDS)
        self._failures[name], self._until[name] = 0, now + pause
        self._pauses[name] = min(2 * pause, _LONGEST_PAUSE_SECONDS)
