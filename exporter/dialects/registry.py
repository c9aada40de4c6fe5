"""The dialects we know. A new one is one line here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from exporter.dialects.dialect import Dialect
from exporter.dialects.dynamo import DynamoDialect
from exporter.dialects.llamacpp import LlamacppDialect
from exporter.dialects.sglang import SglangDialect
from exporter.dialects.tgi import TgiDialect
from exporter.dialects.trtllm import TrtllmDialect
from exporter.dialects.vllm import VllmDialect

ENGINES: tuple[Dialect[Any], ...] = (
    VllmDialect(),
    SglangDialect(),
    TrtllmDialect(),
    LlamacppDialect(),
    TgiDialect(),
)
PASSING_ON: tuple[Dialect[Any], ...] = (DynamoDialect(),)
"""Whose pages may hold the series of the engine behind them: those go first."""
DIALECTS: tuple[Dialect[Any], ...] = (*ENGINES, *PASSING_ON)


def detect(names: Collection[str]) -> Dialect[Any] | None:
    """The dialect of an endpoint with series of these names; None when nobody knows them.

    Of several engines the one that most of the names are of.
    """
    speaking = [dialect for dialect in ENGINES if dialect.recognises(names)]
    if not speaking:
        return next((dialect for dialect in PASSING_ON if dialect.recognises(names)), None)
    return max(speaking, key=lambda dialect: sum(dialect.recognises((name,)) for name in names))


def of_kind(kind: str) -> Dialect[Any]:
    """The dialect that samples of this kind come from. Raises LookupError for none of ours."""
    for dialect in DIALECTS:
        if dialect.kind == kind:
            return dialect
    raise LookupError(f"no dialect is called {kind}")


def others_beside(found: Dialect[Any], names: Collection[str]) -> tuple[Dialect[Any], ...]:
    """Engines whose names stand on the page beside those of ``found``, which alone is read."""
    if found not in ENGINES:
        return ()
    return tuple(dialect for dialect in ENGINES if dialect is not found and dialect.recognises(names))
