"""One GPU's reads in parts: a part that the driver doesn't have is asked for once, the others go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.nvml_errors import NO_PERMISSION, error_of_code
from exporter.sampler.nvml_library import Library

Read = TypeVar("Read")
_FORBIDDEN = error_of_code("", NO_PERMISSION).reason
_FATAL = (Remedy.DEVICE_DOWN, Remedy.REOPEN)


class Parts:
    """What is known of the parts of one GPU's groups.

    ``left_out`` counts the failed reads of each (part, reason). What the driver doesn't have isn't one, nor what can't
    be had just now.
    """

    __slots__ = ("_never", "handle", "left_out", "library")

    def __init__(self, library: Library, handle: object) -> None:
        self.library = library
        self.handle = handle
        self.left_out: dict[tuple[str, str], int] = {}
        self._never: dict[str, ReadError] = {}

    def call(self, name: str, *arguments: object) -> Any:  # noqa: ANN401 - what ctypes gives
        """What a function of the library says of this GPU. Raises ReadError."""
        return self.library.call(name, self.handle, *arguments)

    def known(self, part: str, read: Callable[[], Read]) -> Read | None:
        """What ``read`` gives, or None. Raises ReadError only where all of the GPU or the library is gone."""
        if part in self._never:
            return None
        try:
            return read()
        except ReadError as error:
            self.note(part, error)
            return None

    def number(self, part: str, function: str, least: float, most: float, *arguments: object) -> float | None:
        """A number that has to lie within bounds: all ones and uninitialised memory don't."""

        def read() -> float:
            value = float(self.call(function, *arguments))
            return within(part, value, least, most)

        return self.known(part, read)

    def note(self, part: str, error: ReadError) -> None:
        """A part failed. Raises it where it says that all of the GPU or the library is gone."""
        if error.remedy in _FATAL:
            raise error
        if error.remedy == Remedy.SKIP:
            return
        if error.remedy == Remedy.DROP:
            self._never[part] = error
            if error.reason != _FORBIDDEN:
                return
        place = (part, error.reason)
        self.left_out[place] = self.left_out.get(place, 0) + 1

    def is_never(self, part: str) -> bool:
        """Whether the driver said that it doesn't have this part."""
        return part in self._never

    def refusal(self, *parts: str) -> ReadError | None:
        """Why none of ``parts`` is ever to be had, if that is so."""
        errors = [self._never[part] for part in parts if part in self._never]
        return errors[0] if errors and len(errors) == len(parts) else None


def within(part: str, value: float, least: float, most: float) -> float:
    """``value``, if it can be true. Raises ReadError."""
    if not least <= value <= most:
        raise ReadError("bad_value", Remedy.RETRY, f"{part} is {value:g}, which can't be")
    return value
