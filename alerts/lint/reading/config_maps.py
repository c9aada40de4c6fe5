"""Boards and rule files that a ConfigMap of Kubernetes holds, each a text of its own within the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from alerts.lint.reading.document import Node, Scalar, Table, spots
from alerts.lint.reading.source import Source

_SUFFIXES = (".json", ".yml", ".yaml")


def held(source: Source, documents: Iterable[Node]) -> Iterator[Source]:
    """The texts of all ConfigMaps of a file whose keys end as files do that can be read."""
    for document in documents:
        if not isinstance(document, Table):
            continue
        yield from held(source, document.tables("items"))
        if document.text("kind") != "ConfigMap":
            continue
        for key, value in document.scalars("data").items():
            if key.endswith(_SUFFIXES) and isinstance(value.value, str):
                yield _within(source, value, value.value)


def _within(source: Source, scalar: Scalar, text: str) -> Source:
    return replace(Source.of(source.name, text), outer=source, spots=spots(source, scalar))
