"""GPUs as a conformance run recorded them (``make real-gpu``), to be played again by the fake library."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from drill.fake_nvml.block import MAX_FIELDS, Feature
from drill.fake_nvml.control import Control
from drill.fake_nvml.profiles import Driver, Profile

FORMAT = 1
_LIVELY = {3, 4, 5, 6, 83, 138, 139, 140, 141, 185, 186, 197, 198}
"""Fields that go on by themselves: the fake reckons them, from what flows and what is used."""


class RecordingError(ValueError):
    """The file is not such a recording; the message says which and why."""


@dataclass(frozen=True, slots=True)
class RecordedField:
    """A field's answer; ``value`` has no meaning where ``code`` isn't 0."""

    id: int
    scope: int
    code: int
    type: int
    value: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """One GPU under its driver."""

    driver: Driver
    profile: Profile
    fields: tuple[RecordedField, ...]

    def give(self, control: Control, device: int) -> None:
        """Let the GPU answer its fields as recorded, which ``profile`` alone doesn't say."""
        for field in self.fields:
            control.field(device, field.id, field.value, kind=field.type, scope=field.scope, code=field.code)


def load(file: Path) -> Recorded:
    """Read a recording. Raises RecordingError."""
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        if told.get("format") != FORMAT:
            raise RecordingError(f"{file}: format {told.get('format')!r}, and not {FORMAT}")
        fields = tuple(RecordedField(**field) for field in told["fields"] if field["id"] not in _LIVELY)
        driver = Driver(**{**told["driver"], "hidden": tuple(told["driver"]["hidden"])})
        return Recorded(driver, _profile(told["profile"], file), fields[:MAX_FIELDS])
    except (OSError, AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise RecordingError(f"{file}: not a recording of a GPU: {type(error).__name__}: {error}") from error


def _profile(told: dict[str, Any], file: Path) -> Profile:
    lacks = reduce(or_, (Feature[name] for name in told["lacks"]), Feature(0))
    return Profile(**{**told, "lacks": lacks, "source": f"recorded: {file.name}"})
