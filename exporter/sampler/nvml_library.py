"""The one door to NVIDIA's Python binding: its functions by name, its errors as ReadError."""

from __future__ import annotations

import importlib
from ctypes import Array, c_char
from types import ModuleType
from typing import Any

from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.nvml_errors import error_of_code, read_error
from exporter.sampler.reasons import Reason


class Library:
    """The binding, loaded. ``driver`` is the driver's version once it is known.

    Functions are called by name, so that one that the binding or the driver lacks costs its own metric.
    """

    __slots__ = ("_binding", "driver")

    def __init__(self, binding: ModuleType) -> None:
        self._binding = binding
        self.driver = ""

    def call(self, name: str, *arguments: object, **named: object) -> Any:  # noqa: ANN401 - what ctypes gives
        """What the function gives. Raises ReadError."""
        try:
            return getattr(self._binding, name)(*arguments, **named)
        except Exception as error:
            raise read_error(name, error) from error

    def fill(self, name: str, *arguments: object) -> None:
        """Have a function of the driver's own library fill what it is given, past the binding's. Raises ReadError.

        For what is asked each second and more often: the binding takes ten times as long to lay out a structure as
        the driver to fill it, and longer still to look into it.
        """
        try:
            code: int = self._binding._nvmlGetFunctionPointer(name)(*arguments)  # noqa: SLF001 - there in every release
        except Exception as error:
            raise read_error(name, error) from error
        if code:
            raise error_of_code(name, code)

    def filled(self, name: str, handle: object, asked: bytes) -> Array[c_char]:
        """``asked``, the bytes of a structure, as such a function has filled it for ``handle``. Raises ReadError."""
        buffer = (c_char * len(asked)).from_buffer_copy(asked)
        self.fill(name, handle, buffer)
        return buffer

    def new(self, name: str) -> Any:  # noqa: ANN401 - a structure of ctypes
        """A structure of the binding, zeroed. Raises ReadError where it has none of this name."""
        return self.call(name)


def loaded() -> Library:
    """Find the binding. Raises ReadError where it isn't installed, or isn't NVIDIA's."""
    try:
        binding = importlib.import_module("pynvml")
    except ImportError as error:
        raise ReadError(Reason.NO_BINDING, Remedy.REOPEN, "import pynvml: not found") from error
    except Exception as error:
        raise read_error("import pynvml", error) from error
    if not hasattr(binding, "nvmlDeviceGetFieldValues"):
        raise ReadError(Reason.WRONG_BINDING, Remedy.REOPEN, "import pynvml: this is not NVIDIA's binding")
    return Library(binding)
