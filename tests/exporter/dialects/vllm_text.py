"""Short ways from a vLLM's text to what the dialect makes of it."""

from __future__ import annotations

from collections.abc import Mapping

from exporter.dialects.vllm import VllmDialect
from exporter.exposition import Reader
from exporter.sample import EngineSample, RankSample

AT = 1_796_000_000.0
V1_LABELS = 'engine="0",model_name="m"'
V0_LABELS = 'model_name="m"'


def engine(body: str | bytes) -> EngineSample:
    """One read of a text, by a dialect and a reader that have seen nothing before."""
    dialect = VllmDialect()
    raw = body.encode() if isinstance(body, str) else body
    return dialect.sample(
        Reader(dialect.interpret).read(raw + b"\n"), engine="worker", at=AT, read_seconds=0.04
    )


def rank(body: str | bytes) -> RankSample:
    """The one rank of a text."""
    (only,) = engine(body).ranks
    return only


def v1(**values: float) -> str:
    """Lines of V1 series by their names without prefix, one engine."""
    return lines(V1_LABELS, **values)


def v0(**values: float) -> str:
    """The same of V0."""
    return lines(V0_LABELS, **values)


def lines(labels: str, **values: float) -> str:
    """Lines of series that share their labels."""
    return "".join(f"vllm:{name}{{{labels}}} {value}\n" for name, value in values.items())


def cache_config(**labels: str | float) -> str:
    """A ``cache_config_info`` line."""
    return f"vllm:cache_config_info{{{inside(labels)}}} 1.0\n"


def inside(labels: Mapping[str, str | float]) -> str:
    """Labels as they stand between the braces."""
    return ",".join(f'{name}="{value}"' for name, value in labels.items())
