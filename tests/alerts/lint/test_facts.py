"""What is known of metrics: one table with what the dialects read, whole and without contradictions."""

from __future__ import annotations

import pytest

from alerts.lint.facts.lookup import EXPORTERS, known, verdict
from alerts.lint.facts.metric import Exporter, Kind, Scale, exposed, is_earlier, is_later, release
from alerts.lint.facts.vllm import VLLM
from alerts.lint.settings import LintSettings
from exporter.catalogue import SIGNALS
from exporter.dialects import names, vllm_names
from exporter.dialects.names import Name
from exporter.settings import RefusedError

_PROPOSED = {"kv_cache_token_usage_perc"}
_OF_THE_DIALECT = {names.Kind.COUNTER: Kind.COUNTER, names.Kind.HISTOGRAM: Kind.HISTOGRAM}


@pytest.mark.parametrize(
    "name", [*vllm_names.NAMES, vllm_names.CACHE_CONFIG], ids=lambda name: name.stem + name.part
)
def test_every_name_that_the_dialect_of_vllm_reads_is_in_the_table_and_of_its_type(name: Name) -> None:
    if name.stem in _PROPOSED:
        assert not verdict(f"vllm:{name.stem}", {})
        return
    kind = _OF_THE_DIALECT.get(name.kind, Kind.GAUGE)
    written = name.stem + (names.TOTAL if kind is Kind.COUNTER else name.part)
    found = known(f"vllm:{written}")
    assert found is not None, written
    assert found.metric.kind is kind
    assert (found.metric.scale is Scale.RATIO) == (name.kind is names.Kind.RATIO)


@pytest.mark.parametrize("exporter", EXPORTERS, ids=lambda exporter: exporter.key)
def test_a_table_is_whole(exporter: Exporter) -> None:
    for name, metric in exporter.metrics.items():
        assert name == metric.name
        assert bool(metric.use) == bool(metric.last or metric.gone) or metric.use == "", name
        if metric.last or metric.gone:
            assert metric.use, f"{name} is gone: what now?"
        assert not metric.last or not metric.first or metric.first <= metric.last
        assert [top for _, top in metric.tops] == sorted(top for _, top in metric.tops)
    assert not exporter.metrics.keys() & exporter.wrong.keys()


@pytest.mark.parametrize("metric", VLLM.metrics.values(), ids=lambda metric: metric.name)
def test_a_name_is_alive_from_its_first_release_to_its_last_and_in_no_other(metric: object) -> None:
    metric = VLLM.metrics[metric.name]  # type: ignore[attr-defined]
    series = "vllm:" + exposed(metric)[0]
    assert (verdict(series, {}) is None) == (not metric.last)
    assert verdict(series, {"vllm": metric.first}) is None
    if metric.first > (0, 2, 7):
        before = (
            (*metric.first[:-1], metric.first[-1] - 1) if metric.first[-1] else (0, metric.first[1] - 1, 99)
        )
        assert verdict(series, {"vllm": before}) is not None
    if metric.last:
        assert verdict(series, {"vllm": metric.last}) is None
        assert verdict(series, {"vllm": (0, 33)}) is not None


def test_every_signal_of_ours_is_known_by_the_name_it_is_scraped_under() -> None:
    for signal in SIGNALS:
        assert verdict(signal.full_name, {}) is None
        found = known(signal.full_name)
        assert found is not None
        assert found.metric.kind.value == signal.kind.value


def test_releases_are_compared_as_people_mean_them() -> None:
    assert not is_later(release("0.11.2"), release("0.11"))
    assert is_later(release("0.12"), release("0.11.2"))
    assert not is_earlier(release("0.11"), release("0.11.2"))
    assert is_earlier(release("0.10.2"), release("0.11"))
    assert is_later(release("0.10"), release("0.9"))
    for text in ("", "v1", "1.x", "1.2.3.4.5"):
        with pytest.raises(ValueError, match=r"release|invalid"):
            release(text)


def test_settings_refuse_what_nobody_knows() -> None:
    with pytest.raises(RefusedError, match="nothing is known of nginx"):
        LintSettings(releases={"nginx": "1"})
