"""Pages of gateways, and gateways made up."""

from __future__ import annotations

import tarfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from exporter.dialects.envoy import EnvoyDialect
from exporter.dialects.gateway_dialect import Asked
from exporter.exposition import Reader
from exporter.gateway_sample import GatewaySample, Outcome

_FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "gateways"


@lru_cache(maxsize=1)
def _captured() -> dict[str, bytes]:
    with tarfile.open(_FOLDER / "envoy-1.40.0.tar.xz") as tar:
        return {
            member.name.partition("envoy-1.40.0/")[2].removesuffix(".prom"): opened.read()
            for member in tar
            if (opened := tar.extractfile(member)) is not None
        }


def envoy_page(name: str) -> bytes:
    """One captured page, as in ``whole/03-err``."""
    return _captured()[name]


def envoy_names() -> list[str]:
    return sorted(_captured())


def written(name: str) -> bytes:
    """One written page, as in ``litellm-1.110``."""
    return (_FOLDER / f"{name}.prom").read_bytes()


def envoy_sample(body: bytes | str, at: float = 0.0, **asked: str) -> GatewaySample:
    dialect = EnvoyDialect()
    text = body.encode() if isinstance(body, str) else body
    return dialect.sample(Reader(dialect.interpret).read(text), Asked("g", **asked), at=at, read_seconds=0.0)


def gateway(at: float, **fields: Any) -> GatewaySample:  # noqa: ANN401 -- any field of a sample
    return GatewaySample(at, fields.pop("name", "g"), "envoy", **fields)


def ended(sample: GatewaySample) -> dict[str, float]:
    """How requests ended, those ways that none did left out."""
    return {outcome.value: count for outcome, count in sample.outcomes_total if count}


def outcomes(**counts: float) -> tuple[tuple[Outcome, float], ...]:
    """All outcomes, 0 where none is given."""
    return tuple((each, counts.get(each.value, 0.0)) for each in Outcome)
