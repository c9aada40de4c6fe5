from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.history.history import HistoryError
from analysis.history.server_names import (
    OURS,
    Wanted,
    checked_names,
    is_raw,
    literal,
    matcher,
    selector,
    wanted,
)
from exporter.derive.blocks import KV_USAGE
from exporter.dialects.dcgm_names import field_of
from exporter.dialects.dialect import Dialect
from exporter.dialects.gateway_dialect import GatewayDialect
from exporter.dialects.gateways import GATEWAYS
from exporter.dialects.registry import detect
from exporter.dialects.vllm import VllmDialect
from exporter.exposition import Reader, Series
from exporter.signal import PEAK_SUFFIX
from tests.support import gateways, pages
from tests.support.captures import fixture

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
ENGINES = ["sglang", "sglang-0.5.10-dp2", "tgi", "trtllm", "trtllm-unprefixed", "trtllm-triton"]
ENGINES += ["dynamo-frontend", "dynamo-worker"]


def seen(body: bytes) -> list[Series]:
    """All series of a page."""
    return [series for series, _ in Reader(lambda series: series).read(body)]


def check(body: bytes, dialect: Dialect[Any] | GatewayDialect[Any]) -> Wanted:
    series = seen(body)
    read = {each.name for each in series if dialect.interpret(each) is not None}
    found = wanted([*(each.name for each in series), "up", "node_load1", "python_info"])
    assert read <= {*found.names, *found.shared}
    assert not {"up", "node_load1", "python_info"} & {*found.names, *found.shared}
    assert found.raw
    return found


@pytest.mark.parametrize("name", ENGINES)
def test_all_that_a_dialect_reads_of_an_engines_page_is_asked_for(name: str) -> None:
    body = pages.written(name)
    dialect = detect({each.name for each in seen(body)})
    assert dialect is not None
    check(body, dialect)


def test_all_that_is_read_of_a_real_engine_is_asked_for() -> None:
    check(fixture("vllm-0.32.0/113.prom"), VllmDialect())


def test_of_a_gateway_only_what_is_read_is_asked_for() -> None:
    names = {each.name for each in seen(gateways.envoy_page(gateways.envoy_names()[0]))}
    envoy, litellm = GATEWAYS
    found = check(gateways.envoy_page(gateways.envoy_names()[0]), envoy)
    assert len(found.names) < len(names) / 4
    check(gateways.written("litellm-1.110"), litellm)


def test_a_gpu_exporters_fields_are_told_from_others() -> None:
    body = (FIXTURES / "dcgm" / "h100.prom").read_bytes()
    names = {each.name for each in seen(body)}
    found = wanted(names)
    assert set(found.names) == {name for name in names if field_of(name) is not None}
    assert 0 < len(found.names) < len(names)


def test_names_that_any_process_may_have_are_kept_apart() -> None:
    found = wanted(["vllm:num_requests_running", "process_start_time_seconds", "http_requests_total", "up"])
    assert found == Wanted(
        ("vllm:num_requests_running",),
        ("http_requests_total", "process_start_time_seconds"),
        raw=True,
    )
    assert wanted(["process_start_time_seconds", "up"]) == Wanted((), (), raw=True)


def test_our_signals_go_before_what_they_were_made_of() -> None:
    ours = KV_USAGE.full_name
    assert wanted(["vllm:num_requests_running", ours, ours + PEAK_SUFFIX, "thrashold_of_somebody"]) == Wanted(
        (ours, ours + PEAK_SUFFIX)
    )
    assert not is_raw([ours])
    assert is_raw(["vllm:num_requests_running"])
    assert len(OURS) > 100


def test_a_selector_says_what_it_should() -> None:
    assert selector(["a:b"], ['x="1"']) == '{__name__="a:b",x="1"}'
    assert selector(["a", "b"]) == '{__name__=~"a|b"}'


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ('engine="a b"', 'engine="a b"'),
        ("engine=a", 'engine="a"'),
        (r"pod =~ web-\d+", r'pod=~"web-\\d+"'),
        (r'pod!~"a\\.b|\"c\""', r'pod!~"a\\.b|\"c\""'),
        ("cluster!=", 'cluster!=""'),
    ],
)
def test_matchers_are_taken_as_people_write_them(given: str, made: str) -> None:
    assert matcher(given) == made


@pytest.mark.parametrize("text", ["", "a", "a==b", '1a="b"', 'a="b', 'a="b",c="d"', 'a="b"}', "a b=c"])
def test_what_is_no_matcher_is_refused(text: str) -> None:
    with pytest.raises(HistoryError, match="no matcher"):
        matcher(text)


def test_names_are_checked() -> None:
    assert checked_names(["b", "a", "b"]) == ("a", "b")
    with pytest.raises(HistoryError, match="no name of a series; take labels out"):
        checked_names(['a{b="c"}'])
    with pytest.raises(HistoryError, match="leave names out"):
        checked_names([])


@given(st.text(alphabet=st.characters(exclude_categories=["C"]), max_size=10))
def test_a_value_as_a_regular_expression_means_itself(text: str) -> None:
    unquoted = re.sub(r"\\(.)", r"\1", literal(text))
    assert re.fullmatch(unquoted, text)
