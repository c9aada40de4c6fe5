"""Field values: the call succeeds whatever becomes of a single field, so each is judged by itself.

Ids are literals: the binding's constants come and go with its version. Up to 199 they are the same in every
driver; above, releases have moved them, and a wrong one gives a number that looks right.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_char
from functools import lru_cache
from math import isfinite
from struct import Struct
from typing import NamedTuple

from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.nvml_errors import error_of_code
from exporter.sampler.nvml_library import Library

PCIE_OUT_BYTES = 197
PCIE_IN_BYTES = 198
NVLINK_OUT_KIB = 138
NVLINK_IN_KIB = 139
ALL_LINKS = 0xFFFFFFFF

PCIE_ERRORS = {
    94: "replay",
    173: "correctable",
    174: "naks_received",
    175: "receiver",
    176: "bad_tlp",
    177: "naks_sent",
    178: "bad_dllp",
    179: "non_fatal",
    180: "fatal",
    181: "unsupported_request",
    182: "lcrc",
    183: "lane",
}
REMAPPED_ROWS = {142: "correctable", 143: "uncorrectable", 144: "pending", 145: "failed"}
THROTTLE_NANOSECONDS = {
    74: "power",
    75: "thermal",
    76: "sync_boost",
    77: "board_limit",
    78: "low_utilization",
    79: "reliability",
    80: "application_clocks",
    81: "base_clocks",
}

_RECOVERY_ACTION = {"570": 230, "575": 230, "580": 230, "590": 230, "595": 230, "615": 230}
"""By the driver's branch: read in nvidia-ml-py of that branch, 570.86 to 615.71. 560 has no such field."""

_FIELD = Struct("@IIqqIi8s")
"""nvmlFieldValue_t: fieldId, scopeId, timestamp, latencyUsec, valueType, nvmlReturn, value (nvml.h)."""
_MEMBERS = tuple(map(Struct, ("@d", "@I", "@L", "@Q", "@q", "@i", "@H")))
"""Of the union, by valueType. The others hold what lay there before (icl-utk-edu/papi#564)."""
_BLANKS = {1: 0xFFFFFFFF, 2: 0xFFFFFFFFFFFFFFFF, 3: 0xFFFFFFFFFFFFFFFF, 6: 0xFFFF}
"""All ones stand for not available, where a type is unsigned."""
_CALL = "nvmlDeviceGetFieldValues"


class FieldAnswer(NamedTuple):
    """One field: ``value`` or, where there is none, ``error``. ``stamp`` in seconds, of the driver's clock."""

    value: float
    error: ReadError | None
    stamp: float | None


def recovery_action_field(driver: str) -> int | None:
    """The field that tells which recovery a GPU wants, for a driver whose ids are known."""
    return _RECOVERY_ACTION.get(driver.partition(".")[0])


def field_values(
    library: Library, handle: object, fields: Sequence[int | tuple[int, int]], *, wraps: bool = False
) -> list[FieldAnswer]:
    """An answer for each field, in order; (id, scope) is one of a link. ``wraps``: all ones are a value too.

    The buffer is new and zeroed in each call: drivers add ECC counts to what lies in it (NVIDIA/go-nvml#46).
    Raises ReadError where the whole call fails.
    """
    buffer = (c_char * (_FIELD.size * len(fields))).from_buffer_copy(_laid_out(tuple(fields)))
    library.fill(_CALL, handle, len(fields), buffer)
    answers = []
    for number, _, stamp, _, kind, code, union in _FIELD.iter_unpack(buffer):
        value, error = 0.0, None
        try:
            value = _value(number, kind, code, union, wraps=wraps)
        except ReadError as failure:
            error = failure
        answers.append(FieldAnswer(value, error, stamp / 1e6 if stamp > 0 else None))
    return answers


@lru_cache(maxsize=64)
def _laid_out(fields: tuple[int | tuple[int, int], ...]) -> bytes:
    """What asks for them: ids and scopes, the rest zero."""
    wanted = (each if isinstance(each, tuple) else (each, 0) for each in fields)
    return b"".join(_FIELD.pack(number, scope, 0, 0, 0, 0, b"") for number, scope in wanted)


def _value(number: int, kind: int, code: int, union: bytes, *, wraps: bool) -> float:
    if code:
        raise error_of_code(f"{_CALL} {number}", code)
    if kind >= len(_MEMBERS):
        raise ReadError("bad_value", Remedy.DROP, f"{_CALL} {number}: a value of the unknown type {kind}")
    value: float = _MEMBERS[kind].unpack_from(union)[0]
    if (kind == 0 and not isfinite(value)) or (not wraps and value == _BLANKS.get(kind)):
        raise ReadError("no_data", Remedy.SKIP, f"{_CALL} {number}: blank")
    return value
