from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from exporter.catalogue import PHENOMENA, SIGNALS
from exporter.gateway_sample import GatewaySample
from exporter.gpu_sample import (
    GpuHealth,
    GpuMemory,
    GpuSample,
    GpuUtilisation,
    NvLink,
    PcieLink,
    PcieTraffic,
)
from exporter.kv_events_sample import KvEventsSample
from exporter.probe_sample import ProbeSample
from exporter.reference import reference
from exporter.sample import EngineSample, RankSample
from exporter.signal import Kind, Scope, Signal

GPU_TUPLES = (GpuSample, GpuMemory, GpuUtilisation, PcieTraffic, PcieLink, NvLink, GpuHealth)
ROOT = Path(__file__).resolve().parents[2]


def test_names_are_unique() -> None:
    names = [signal.name for signal in SIGNALS]
    assert len(names) == len(set(names))
    phenomena = [phenomenon.name for phenomenon in PHENOMENA]
    assert len(phenomena) == len(set(phenomena))


@pytest.mark.parametrize("signal", SIGNALS, ids=lambda signal: signal.name)
def test_names_follow_the_practice_of_prometheus(signal: Signal) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", signal.name)
    assert signal.name.endswith("_total") == (signal.kind is Kind.COUNTER)
    for label in signal.label_names:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", label)
        assert label not in {"le", "quantile"}
    assert len(set(signal.label_names)) == len(signal.label_names)
    assert not re.search(r"_(ms|milliseconds|percent|perc|kb|mb|gb)\b", signal.name)


@pytest.mark.parametrize("signal", SIGNALS, ids=lambda signal: signal.name)
def test_every_signal_says_what_it_is_and_how_it_comes_about(signal: Signal) -> None:
    assert signal.help.endswith(".")
    assert len(signal.help) > 30
    assert signal.method
    assert not signal.method.endswith(".")


@pytest.mark.parametrize(
    "signal",
    [signal for signal in SIGNALS if signal.scope in {Scope.RANK, Scope.ENGINE, Scope.GPU, Scope.GATEWAY}],
    ids=lambda signal: signal.name,
)
def test_inputs_are_fields_of_a_sample(signal: Signal) -> None:
    kinds = (EngineSample, RankSample, KvEventsSample, ProbeSample, GatewaySample)
    known = {field.name for kind in kinds for field in fields(kind)}
    known |= {field for kind in GPU_TUPLES for field in kind._fields}
    assert set(signal.inputs) <= known
    assert signal.inputs or signal.name == "engine_info"


def test_the_reference_is_fresh() -> None:
    assert (ROOT / "docs" / "signals.md").read_text(encoding="utf-8") == reference(), "run: make docs"
