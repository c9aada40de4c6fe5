"""Runs the real binding on whatever library the loader finds: an expression a line in, its value as JSON out.

Started by the tests as a process of its own. ``gpu(0)`` is a handle; ``begin`` runs an expression in a thread.
"""

# ruff: noqa: ANN401 - what ctypes gives is of no type
from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import pynvml

NAMES: dict[str, Any] = {**vars(pynvml)}
THREADS: dict[int, tuple[threading.Thread, list[object]]] = {}


def of_field(value: Any) -> object:
    """``wide`` is what the widest member of the union says, whichever of them is meant."""
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    return {
        "code": value.nvmlReturn,
        "type": value.valueType,
        "value": getattr(value.value, members[value.valueType]) if value.nvmlReturn == 0 else None,
        "wide": value.value.ullVal,
        "timestamp": value.timestamp,
    }


# how to write each kind of thing that the binding gives; the first that fits holds
KINDS: tuple[tuple[Any, Callable[[Any], object]], ...] = (
    (pynvml.nvmlFriendlyObject, lambda it: {name: plain(member) for name, member in vars(it).items()}),
    (pynvml.c_nvmlFieldValue_t, of_field),
    (pynvml.c_nvmlValue_t, lambda it: it.uiVal),
    (ctypes._Pointer, lambda it: ctypes.cast(it, ctypes.c_void_p).value),  # noqa: SLF001 - a handle
    (ctypes.Structure, lambda it: {name: plain(getattr(it, name)) for name, *_ in it._fields_}),
    (ctypes.Array | list | tuple, lambda it: [plain(member) for member in it]),
    (ctypes._SimpleCData, lambda it: it.value),  # noqa: SLF001 - some calls give one
    (bytes, bytes.decode),
)


def plain(value: Any) -> object:
    return next((write(value) for kind, write in KINDS if isinstance(value, kind)), value)


def evaluated(text: str) -> object:
    try:
        return {"value": plain(eval(text, NAMES))}  # noqa: S307 - our own tests' text
    except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError) as error:
        return {"error": type(error).__name__, "code": getattr(error, "value", None)}


def begin(text: str) -> int:
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(evaluated(text)), daemon=True)
    thread.start()
    assert thread.native_id is not None
    THREADS[thread.native_id] = (thread, answers)
    return thread.native_id


def outcome(number: int, seconds: float) -> object:
    thread, answers = THREADS[number]
    thread.join(seconds)
    return answers[0] if answers else "hangs"


def sample(device: Any) -> Any:
    taken = pynvml.nvmlGpmSampleAlloc()
    pynvml.nvmlGpmSampleGet(device, taken)
    return taken


def metrics(older: Any, newer: Any, *ids: int) -> list[object]:
    """Of each id its own code and its value."""
    asked = pynvml.c_nvmlGpmMetricsGet_t()
    asked.version, asked.numMetrics = pynvml.NVML_GPM_METRICS_GET_VERSION, len(ids)
    asked.sample1, asked.sample2 = older, newer
    for place, number in enumerate(ids):
        asked.metrics[place].metricId = number
    pynvml.nvmlGpmMetricsGet(asked)
    return [[asked.metrics[place].nvmlReturn, asked.metrics[place].value] for place in range(len(ids))]


def reused(device: Any, field: int, times: int) -> list[int]:
    """The same buffer handed in again and again, as a careless caller does."""
    buffer = (pynvml.c_nvmlFieldValue_t * 1)()
    buffer[0].fieldId = field
    read = []
    for _ in range(times):
        pynvml._nvmlGetFunctionPointer("nvmlDeviceGetFieldValues")(device, 1, buffer)  # noqa: SLF001
        read.append(buffer[0].value.ullVal)
    return read


def layout() -> list[str]:
    tell = pynvml.nvmlLib.fakeNvmlLayout
    tell.restype = ctypes.c_char_p
    return tell().decode().splitlines()


def main() -> None:
    NAMES.update(begin=begin, outcome=outcome, sample=sample, metrics=metrics, reused=reused, layout=layout)
    NAMES["gpu"] = pynvml.nvmlDeviceGetHandleByIndex
    NAMES["mig"] = lambda device, index: pynvml.nvmlDeviceGetMigDeviceHandleByIndex(
        pynvml.nvmlDeviceGetHandleByIndex(device), index
    )
    for line in sys.stdin:
        sys.stdout.write(json.dumps(evaluated(line.strip())) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
