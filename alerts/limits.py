"""What a key of settings means and may be, as its annotation says it."""

from __future__ import annotations

import typing
from collections.abc import Iterator

from msgspec import Meta

from exporter.settings_schema import fields_of


def limits(kind: type) -> Iterator[tuple[str, list[Meta]]]:
    """Each key of a dataclass of settings, with what its annotation says of it."""
    for name, annotation in fields_of(kind).items():
        yield name, [each for each in typing.get_args(annotation) if isinstance(each, Meta)]


def meaning(metas: list[Meta]) -> str:
    """Its description."""
    return next(each.description for each in metas if each.description)


def span(metas: list[Meta]) -> str:
    """From where to where a number may be."""
    low = next((f"above {each.gt:g}" for each in metas if each.gt is not None), "")
    low = low or next((f"{each.ge:g}" for each in metas if each.ge is not None), "")
    high = next((f"{each.le:g}" for each in metas if each.le is not None), "")
    return f"{low} to {high}"
