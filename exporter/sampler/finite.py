"""Keeps NaN and infinity out of what the sampler tells."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.reasons import Reason

Group = TypeVar("Group")


def finite(value: Group) -> Group:
    """``value`` with each number that is none taken out.

    A field that may be unknown becomes None, a pair of a word and such a number goes. Raises ReadError
    where the value says nothing without it.
    """
    if not isinstance(value, tuple) or _is_sound(value):  # as almost always: nothing is to be built anew
        return value
    cleaned: Group = _cleaned(value)
    return cleaned


def _is_sound(values: tuple[object, ...]) -> bool:
    for value in values:
        if isinstance(value, float):
            if not math.isfinite(value):
                return False
        elif isinstance(value, tuple) and not _is_sound(value):
            return False
    return True


def _is_wrong(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _cleaned(value: Any) -> Any:  # noqa: ANN401 - any of the tuples of a sample
    if not isinstance(value, tuple):
        if _is_wrong(value):
            raise ReadError(Reason.BAD_VALUE, Remedy.RETRY, f"the library tells {value}")
        return value
    if not hasattr(value, "_fields"):
        pairs = [each for each in value if not (isinstance(each, tuple) and any(map(_is_wrong, each)))]
        return tuple(_cleaned(each) for each in pairs)
    fields: Any = value
    unknown = fields._field_defaults
    return fields._make(
        None if _is_wrong(each) and unknown.get(name, each) is None else _cleaned(each)
        for name, each in zip(fields._fields, fields, strict=True)
    )
