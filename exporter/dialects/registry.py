"""The dialects we know. A new one is one line here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from exporter.dialects.dialect import Dialect
from exporter.dialects.vllm import VllmDialect

DIALECTS: tuple[Dialect[Any], ...] = (VllmDialect(),)
"""In the order they are asked: an engine's own names come before those of whoever passes them on."""


def detect(names: Collection[str]) -> Dialect[Any] | None:
    """The dialect of an endpoint with series of these names; None when nobody knows them."""
    return next((dialect for dialect in DIALECTS if dialect.recognises(names)), None)
